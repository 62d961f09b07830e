// What a person can do to a task: a dialog for each act, with what will happen, and a note.
//
//   const acts = taskActs({ context, look, done });
//     look() -> { task, timeline, definition } as they are now; done(): something was changed
//   acts.buttons                   the acts that are open, and that the token may do; acts.update(task)
//   acts.ofStep(step)              buttons for one step
//   await acts.ask("retry", { step: "charge" })   as its button does

import { ACTS } from "./act_words.js";
import { whenChanged } from "./controls.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { askAct } from "./act_dialog.js";
import { lookOnly, may } from "./me.js";
import { STUCK } from "./status.js";

const ENDED = new Set(["succeeded", "compensated"]);
const UNSETTLED = new Set(["failed", "unknown", "failed_to_compensate"]);

export function taskActs({ context, look, done }) {
  const buttons = h("div", { class: "button-row" });
  const ask = async (act, about = {}) => (await askAct(act, { ...look(), ...about }, context)) && done();
  const show = whenChanged((acts) => fill(buttons,
    acts.filter(may).map((act) => actButton(act, () => ask(act))), acts.length > 0 && lookOnly(...acts)));
  return {
    ask,
    buttons,
    update: (task) => show(openActs(task)),
    ofStep: (step) => actsOfStep(step, look().task).map((act) =>
      actButton(act, () => ask(act, { step: step.name }), "button-small")),
  };
}

/** The acts that the coordinator says are open, and those that only the dialog can tell of. */
function openActs(task) {
  const open = new Set(task.actions);
  if (!ENDED.has(task.status)) ["signal", "move"].forEach((act) => open.add(act));
  if (ENDED.has(task.status) || STUCK.has(task.status)) open.add("fork");
  return Object.keys(ACTS).filter((act) => open.has(act));
}

function actsOfStep(step, task) {
  const open = new Set(openActs(task));
  const fits = {
    approve: step.kind === "approval" && step.status === "scheduled",
    reject: step.kind === "approval" && step.status === "scheduled",
    retry: UNSETTLED.has(step.status),
    settle: UNSETTLED.has(step.status),
    fork: true,
    signal: step.kind === "wait" && step.status === "scheduled",
  };
  return Object.keys(ACTS).filter((act) => fits[act] && open.has(act) && may(act));
}

function actButton(act, press, size = "") {
  const { label, icon: drawing, danger } = ACTS[act];
  return h("button", {
    class: `button ${danger ? "button-danger" : ""} ${size}`, type: "button", onclick: press, dataset: { act },
  }, icon(drawing), label);
}
