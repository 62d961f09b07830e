// One task: its timeline, saga, steps, history, and what can be done to it. Live.

import { read } from "../api.js";
import { h } from "../dom.js";
import { fresh } from "../fresh.js";
import { serverSettings } from "../server_settings.js";
import { skeleton } from "../states.js";
import { taskActs } from "../task_acts.js";
import { taskCalls } from "../task_calls.js";
import { taskHead } from "../task_head.js";
import { taskHistory } from "../task_history.js";
import { taskSaga } from "../task_saga.js";
import { taskStep } from "../task_step.js";
import { taskTimeline } from "../task_timeline.js";

const OF_INTEREST = ["failed_to_compensate", "unknown", "failed", "compensating", "scheduled"];

export async function page(context) {
  const { task } = context.params;
  const { signal } = context;
  context.title(`Task ${task.slice(0, 8)}`);
  const { trace_link: traceLink } = await serverSettings();
  let now = null; // { task, timeline, definition }
  let chosen = context.query.get("step") ?? "";

  const choose = (step) => context.amend({ step }, { replace: true });
  const acts = taskActs({ context, look: () => now, done: () => live.reload() });
  const head = taskHead({ task, actions: acts.buttons, traceLink });
  const timeline = taskTimeline({ choose, signal });
  const saga = taskSaga({ choose });
  const step = taskStep({ task, signal, acts: acts.ofStep });
  const history = taskHistory({ task, signal });
  const waiting = h("div", { class: "panel" }, skeleton(8));
  const calls = taskCalls({ context, done: () => live.reload() });
  const parts = h("div", { class: "stack", hidden: true }, calls.element, timeline.element,
    h("div", { class: "columns" }, step.element, saga.element), history.element);
  const content = h("div", { class: "stack" }, head.element, waiting, parts);
  context.view.append(content);

  const draw = (found) => {
    now = found;
    waiting.remove();
    parts.hidden = false;
    const nowMs = Date.parse(found.timeline.now);
    chosen ||= ofInterest(found.timeline);
    context.title(`${found.task.saga} ${task.slice(0, 8)}`);
    acts.update(found.task);
    head.update(found.task, found.timeline, nowMs);
    timeline.update(found.timeline, nowMs, chosen);
    saga.update(found.timeline, found.definition, chosen);
    step.update(found.task, found.timeline, found.definition, chosen);
    calls.update(found.task);
    history.update(found.timeline.version);
  };
  const live = fresh(context, { load: loader(task), draw, content, feed: { task } });
  context.onQuery = (query) => {
    chosen = query.get("step") ?? "";
    if (now) draw(now);
  };
}

/** Loads a task with its timeline; its definition only when that is another one than before. */
function loader(task) {
  let key = "";
  let definition = null;
  return async (signal) => {
    const [view, timeline] = await Promise.all([
      read("get", { task }, { signal }), read("timeline", { task }, { signal }),
    ]);
    const wanted = `${view.saga} ${view.saga_version}`;
    if (wanted !== key) {
      const named = { name: view.saga, version: view.saga_version };
      definition = (await read("saga.get", named, { signal })).definition;
      key = wanted;
    }
    return { task: view, timeline, definition };
  };
}

function ofInterest(timeline) {
  for (const status of OF_INTEREST) {
    const found = timeline.steps.find((step) => step.status === status);
    if (found) return found.name;
  }
  return timeline.steps.at(-1)?.name ?? "";
}
