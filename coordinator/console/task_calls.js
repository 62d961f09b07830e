// Calls of tools of one task that wait for a person: to be approved, or settled since nobody knows
// how they ended.
//
//   const part = taskCalls({ context, done });  part.element;  part.update(task)
//     done(): something was decided

import { ACTS } from "./act_words.js";
import { read } from "./api.js";
import { panel, whenChanged } from "./controls.js";
import { fill, h } from "./dom.js";
import { age } from "./format.js";
import { icon } from "./icons.js";
import { jsonView } from "./json_view.js";
import { STUCK } from "./status.js";
import { actOn, openActsOn } from "./waiting_acts.js";

const CALLS = new Set(["gate", "unsettled"]);

export function taskCalls({ context, done }) {
  const box = panel({ title: "Calls that wait for a person", id: "calls" });
  box.element.hidden = true;
  const show = whenChanged((calls) => {
    box.element.hidden = !calls.length;
    fill(box.body, calls.map((call) => callView(call, async (word) => (await actOn(word, call, context)) && done())));
  });
  let asked = "";
  return {
    element: box.element,
    async update(task) {
      const state = `${task.version} ${task.updated_at}`;
      if (!mayHaveCalls(task)) return show([]);
      if (state === asked) return null;
      asked = state;
      try {
        const { waiting } = await read("parked", { task: task.task }, { signal: context.signal });
        return show(waiting.filter((each) => CALLS.has(each.kind)));
      } catch (problem) {
        asked = "";
        if (!context.signal.aborted) console.warn(problem.message);
        return null;
      }
    },
  };
}

function mayHaveCalls(task) {
  return STUCK.has(task.status) || task.steps.some((step) => step.waiting_for?.includes("of a call"));
}

function callView(call, press) {
  return h("div", { class: "panel-body stack call" },
    h("p", {}, h("code", {}, call.tool), ` in ${call.step}: ${call.reason}, since `, age(call.since)),
    call.details !== null && jsonView(call.details, { label: `Arguments of ${call.tool}` }),
    h("div", { class: "button-row" }, openActsOn(call).filter((word) => word !== "cancel").map((word) => h("button", {
      class: `button ${ACTS[word].danger ? "button-danger" : ""}`, type: "button", onclick: () => press(word),
    }, icon(ACTS[word].icon), `${ACTS[word].label} the call`))));
}
