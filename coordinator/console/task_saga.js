// The saga of a task's page, with the current state lit: as a diagram or as a list.
//
//   const part = taskSaga({ choose });  part.element;  part.update(timeline, definition, chosen)

import { choice, panel, whenChanged } from "./controls.js";
import { diagram } from "./diagram.js";
import { stepList } from "./diagram_list.js";
import { fill, h } from "./dom.js";
import { stepsOfTask } from "./step_words.js";

export function taskSaga({ choose }) {
  const drawing = diagram({ choose });
  const list = h("div", { hidden: true });
  const showList = whenChanged(([steps, statuses]) => fill(list, stepList(steps, { statuses, choose })));
  const views = choice({
    label: "Show the saga as", options: [["diagram", "Diagram"], ["list", "List"]], value: "diagram",
    change(view) {
      drawing.element.hidden = view !== "diagram";
      list.hidden = view !== "list";
    },
  });
  const { element } = panel({ title: "Saga", id: "saga", tools: views, content: [drawing.element, list] });
  return {
    element,
    update(timeline, definition, chosen) {
      const steps = stepsOfTask(timeline, definition);
      const statuses = Object.fromEntries(timeline.steps.map((step) => [step.name, step.status]));
      drawing.update(steps, { statuses, chosen });
      showList([steps, statuses]);
    },
  };
}
