// A saga's steps as a list: what each is, what it comes after, how it is undone. Tells all that the
// diagram shows.
//
//   stepList(steps, { statuses, choose }) -> an element
//     steps as diagram.update takes them, with the policies of the definition if there are
//     choose: (step) => …, if a step leads somewhere

import { facts } from "./controls.js";
import { h } from "./dom.js";
import { statusMark } from "./status.js";
import { policyWords } from "./step_words.js";

export function stepList(steps, { statuses = null, choose = null } = {}) {
  const list = h("ol", { class: "step-list" }, steps.map((step) => h("li", {},
    h("div", { class: "step-list-head" },
      choose
        ? h("button", { class: "link", type: "button", onclick: () => choose(step.name) }, step.name)
        : h("b", {}, step.name),
      statuses && statusMark(statuses[step.name] ?? "waiting"),
      step.pivot && h("span", { class: "tag" }, "point of no return"),
      step.read_only && h("span", { class: "tag" }, "changes nothing")),
    facts(told(step)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Steps in their order" }, list);
}

function told(step) {
  return [
    ["Does", step.action ? h("code", {}, step.action) : kindWords(step)],
    ["After", step.after.length ? step.after.join(", ") : "the start"],
    ["If", step.when && h("code", {}, step.when)],
    ["Undone by", step.compensation && h("code", {}, step.compensation)],
    ["Handed off by", step.handed_off_by],
    ...policyWords(step),
  ];
}

function kindWords(step) {
  switch (step.kind) {
    case "approval": return "waits for a person's approval";
    case "wait": return `waits for the signal ${step.signal || step.name}`;
    case "sleep": return `waits ${step.seconds ?? "some"} s`;
    case "child": return step.saga ? `runs the saga ${step.saga}` : "runs another saga";
    default: return step.kind;
  }
}
