// One step of a task's page: where it stands, and on demand what went in, what came out, and its
// journal. What was opened stays open, and is asked for again only when the step went on.
//
//   const part = taskStep({ task, signal, acts });   acts(step) -> buttons for that step
//   part.element;  part.update(view, timeline, definition, name)   name: "" for no step

import { read } from "./api.js";
import { facts, panel, whenChanged } from "./controls.js";
import { fill, h } from "./dom.js";
import { duration, when } from "./format.js";
import { journalView } from "./journal.js";
import { jsonView } from "./json_view.js";
import { emptyView, problemView, skeleton } from "./states.js";
import { statusMark } from "./status.js";
import { stepsOfTask } from "./step_words.js";
import { taskLink } from "./task_head.js";
import { barTitle, outcomeText } from "./timeline_words.js";

const ATTEMPTS_MAX = 20; // of the latest that are listed; the timeline's table has all

export function taskStep(wanted) {
  return new TaskStep(wanted);
}

class TaskStep {
  #name = "";
  #state = "";
  #parts = [];

  constructor({ task, signal, acts }) {
    Object.assign(this, { task, signal, acts });
    this.box = panel({ title: "Step", id: "step" });
    this.element = this.box.element;
    this.tools = h("div", { class: "button-row" });
    this.about = h("div", { class: "stack" });
    this.box.heading.after(this.tools);
    this.showTools = whenChanged((_, step) => fill(this.tools, statusMark(step.status), this.acts(step)));
    this.showAbout = whenChanged((_, step, line) => fill(this.about, aboutStep(step, line)));
    fill(this.box.body, emptyView({ title: "No step chosen", text: "Choose one in the timeline or in the diagram." }));
  }

  update(view, timeline, definition, name) {
    const step = view.steps.find((each) => each.name === name);
    const line = timeline.steps.find((each) => each.name === name);
    if (!step || !line) return;
    const declared = stepsOfTask(timeline, definition).find((each) => each.name === name);
    if (name !== this.#name) this.#begin(step);
    this.showTools([name, step.status, view.actions], step);
    this.showAbout([step, line, declared], { ...declared, ...step }, line);
    this.#state = JSON.stringify([step.status, step.attempt, step.phase, line.bars.length]);
    for (const part of this.#parts) part.stale(this.#state);
  }

  /** The same answer for all parts, until the step goes on. */
  #once(ask) {
    let [state, answer] = ["", null];
    return () => {
      if (!answer || state !== this.#state) {
        [state, answer] = [this.#state, ask()];
        answer.catch(() => { answer = null; });
      }
      return answer;
    };
  }

  #begin(step) {
    this.#name = step.name;
    this.box.heading.textContent = step.name;
    const whole = this.#once(() => read("step", { task: this.task, step: step.name }, { signal: this.signal }));
    const part = (title, load, show) => new OnDemand({ title, load, show, signal: this.signal });
    this.#parts = [
      part("Input", whole, (answer) => value(answer.input, "Input")),
      part("Results of the steps before", whole, (answer) => value(empty(answer.results) ? null : answer.results, "Results")),
      part("Result", whole, (answer) => value(answer.result, "Result")),
      part("Operation", whole, operationView),
      part("Journal", (signal) => journalView({ task: this.task, step: step.name, signal }), (view) => view),
    ];
    fill(this.box.body, h("div", { class: "panel-body stack" }, this.about, this.#parts.map((each) => each.element)));
  }
}

/** A part that is asked for when it is opened, and again when it is stale and open. */
class OnDemand {
  #state = "";
  #loaded = null;

  constructor({ title, load, show, signal }) {
    Object.assign(this, { load, show, signal });
    this.inside = h("div", {});
    this.element = h("details", { class: "on-demand", ontoggle: () => this.#look() }, h("summary", {}, title), this.inside);
    this.showAnswer = whenChanged((_, shown) => fill(this.inside, shown));
  }

  stale(state) {
    this.#state = state;
    this.#look();
  }

  async #look() {
    if (!this.element.open || this.#loaded === this.#state) return;
    const state = this.#state;
    if (this.#loaded === null) fill(this.inside, skeleton(2));
    this.#loaded = state;
    try {
      const answer = await this.load(this.signal);
      const shown = this.show(answer);
      this.showAnswer(answer instanceof Node ? answer.outerHTML : answer, shown);
    } catch (problem) {
      if (this.signal.aborted) return;
      this.#loaded = null;
      this.showAnswer({ problem: problem.message, at: performance.now() },
        problemView(problem, { retry: () => this.#look() }));
    }
  }
}

function operationView({ operation, phase }) {
  return h("div", { class: "stack" },
    facts([["Operation id", h("code", {}, operation)], ["Of its", phase]]),
    h("p", { class: "muted" }, "All its attempts have this id: a service that dedupes on it does nothing twice."));
}

function empty(results) {
  return Object.keys(results ?? {}).length === 0;
}

function value(given, label) {
  return given === null || given === undefined
    ? h("p", { class: "muted" }, `No ${label.toLowerCase()}`)
    : jsonView(given, { label });
}

function aboutStep(step, line) {
  const attempts = line.bars.filter((bar) => bar.kind === "attempt");
  return [
    step.error && h("div", {}, h("h3", {}, step.error.type),
      step.error.message && h("pre", { class: "error-text", tabindex: "0", role: "region", "aria-label": "Error" }, step.error.message)),
    facts([
      ["Does", step.action ? h("code", {}, step.action) : step.kind],
      ["If", step.when && h("code", {}, step.when)],
      ["Undone by", step.compensation && h("code", {}, step.compensation)],
      ["Waits for", step.waiting_for],
      ["Child", step.child && taskLink(step.child)],
      ["Kept from", line.kept_from && taskLink(line.kept_from)],
      ["Next attempt", step.next_attempt_at && when(step.next_attempt_at)],
      ["Progress", step.progress !== null && step.progress !== undefined && h("code", {}, JSON.stringify(step.progress).slice(0, 300))],
      ["Attempts", attempts.length && attemptList(attempts)],
    ]),
  ];
}

function attemptList(attempts) {
  const left = attempts.length - ATTEMPTS_MAX;
  return h("ol", { class: "attempts" },
    left > 0 && h("li", { class: "muted" }, `${left} earlier`),
    attempts.slice(-ATTEMPTS_MAX).map((bar) => h("li", {}, h("b", {}, barTitle(bar)), `: ${outcomeText(bar)}`,
      h("span", { class: "muted" }, bar.ended_at && ` ${duration(Date.parse(bar.ended_at) - Date.parse(bar.began_at))}`,
        bar.worker && `, ${bar.worker}`))));
}
