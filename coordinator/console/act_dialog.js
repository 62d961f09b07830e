// The dialog of an act on a task: what it is about, what will happen, a note; then it is done, and a
// refusal is shown where it was asked for.
//
//   await askAct("settle", { task, timeline, definition, step }, context) -> whether it was done

import { ACTS, consequences } from "./act_words.js";
import { announce } from "./announce.js";
import { act as request, read } from "./api.js";
import { fieldsOf } from "./act_fields.js";
import { dialog } from "./dialog.js";
import { fill, h } from "./dom.js";

const NOTE_MAX_CHARS = 500;

export async function askAct(act, facts, context) {
  const { title, action, danger } = ACTS[act];
  const fields = await fieldsOf(act, facts, { read, signal: context.signal });
  const happens = h("ul", { class: "what-happens" });
  const problem = h("p", { class: "field-problem", role: "alert", hidden: true });
  const note = h("textarea", { name: "reason", rows: 2, maxlength: NOTE_MAX_CHARS, placeholder: "Why? It is kept in the history." });
  const press = h("button", { class: danger ? "button button-danger" : "button button-main", type: "submit" }, action);
  let done = null;
  const explain = () => fill(happens, consequences(act, { ...facts, ...fields.values() })
    .map((sentence) => h("li", {}, sentence)));
  const form = h("form", {
    class: "dialog-body",
    oninput: explain,
    async onsubmit(event) {
      event.preventDefault();
      press.disabled = true;
      problem.hidden = true;
      try {
        const body = { task: facts.task.task, ...fields.body(), reason: note.value.trim() };
        done = await request(act, body, { signal: context.signal });
        shown.close();
      } catch (error) {
        if (context.signal.aborted) return;
        problem.hidden = false;
        problem.textContent = error.message;
        press.disabled = false;
      }
    },
  },
    fields.elements,
    h("div", {}, h("h3", {}, "What will happen"), happens),
    h("label", { class: "field" }, h("span", {}, "Note"), note),
    problem,
    h("footer", { class: "dialog-foot" },
      h("button", { class: "button", type: "button", onclick: () => shown.close() }, "Back"), press));
  explain();
  const shown = dialog({ title, content: form });
  context.signal.addEventListener("abort", () => shown.close(), { once: true });
  (form.querySelector("input, select, textarea") ?? press).focus();
  await shown.closed;
  if (done) told(act, done, context);
  return done !== null;
}

function told(act, done, context) {
  if (act === "fork") {
    announce(`Forked: task ${done.task}`);
    context.go(`/tasks/${done.task}`);
  } else announce(`${ACTS[act].label}: done. The task is ${done.status.replaceAll("_", " ")}.`);
}
