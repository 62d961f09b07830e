// Questions in front of the page. The focus goes in, stays in, and returns to where it was; Escape
// closes.
//
// A page may use:
//   const note = await confirm({
//     title: "Cancel 3 tasks?", text: "What they did is undone.", action: "Cancel tasks",
//     danger: true, note: "optional" | "required" | "" ,  fields: elements shown before the note,
//   });
//     -> null if it was closed, else { reason, form } (form: FormData of `fields`)
//   dialog({ title, content, wide })  -> { element, close(), closed: Promise }   anything else

import { h } from "./dom.js";
import { icon } from "./icons.js";

let numbers = 0;

export function dialog({ title, content, wide = false, onclose = null }) {
  const id = `dialog-${(numbers += 1)}`;
  const before = document.activeElement;
  const element = h("dialog", { class: `dialog${wide ? " dialog-wide" : ""}`, "aria-labelledby": id },
    h("header", { class: "dialog-head" },
      h("h2", { id }, title),
      h("button", {
        class: "button-quiet", type: "button", "aria-label": "Close", onclick: () => element.close(),
      }, icon("close"))),
    content);
  const closed = new Promise((resolve) => {
    element.addEventListener("close", () => {
      const answer = onclose?.() ?? null;
      element.remove();
      if (before?.isConnected) before.focus();
      resolve(answer);
    });
  });
  element.addEventListener("click", (event) => event.target === element && element.close());
  document.body.append(element);
  element.showModal();
  return { element, closed, close: () => element.close() };
}

export function confirm({ title, text = "", action, danger = false, note = "", fields = [] }) {
  let answer = null;
  const reason = note && h("textarea", {
    name: "reason", rows: 2, maxlength: 500, required: note === "required",
    placeholder: "Why? It is kept in the history.",
  });
  const form = h("form", {
    method: "dialog",
    class: "dialog-body",
    onsubmit: () => { answer = { reason: reason ? reason.value.trim() : "", form: new FormData(form) }; },
  },
    text && h("p", {}, text),
    fields,
    reason && h("label", { class: "field" }, h("span", {}, note === "required" ? "Note" : "Note (optional)"),
      reason),
    h("footer", { class: "dialog-foot" },
      h("button", { class: "button", type: "button", onclick: () => shown.close() }, "Back"),
      h("button", { class: danger ? "button button-danger" : "button button-main", type: "submit" },
        action)));
  const shown = dialog({ title, content: form, onclose: () => answer });
  (reason || form.querySelector("input, select, button[type=submit]")).focus();
  return shown.closed;
}
