// The head of a task's page: what it is, where it stands and why.
//
//   const head = taskHead({ actions, traceLink });   actions: an element with what can be done
//   head.element;  head.update(task, timeline, nowMs)

import { facts, whenChanged } from "./controls.js";
import { fill, h } from "./dom.js";
import { age, count, duration, when } from "./format.js";
import { icon } from "./icons.js";
import { copied } from "./json_view.js";
import { statusMark, STUCK } from "./status.js";
import { traceHref, traceOf } from "./trace.js";

export function taskHead(wanted) {
  return new Head(wanted);
}

class Head {
  constructor({ task, actions, traceLink }) {
    this.traceLink = traceLink;
    this.saga = h("span", {}, "Task");
    this.status = h("span", {});
    this.reason = h("div", { role: "status" });
    this.facts = h("div", { class: "panel-body" });
    this.took = h("span", {});
    this.element = h("div", { class: "stack" },
      h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "/tasks" }, "Tasks"), " / ", task.slice(0, 8)),
      h("header", { class: "page-head" },
        h("div", { class: "task-title" }, h("h1", {}, this.saga, h("span", { class: "hidden" }, ` ${task.slice(0, 8)}`)),
          h("p", { class: "task-id mono" }, task, copyButton(task, "Task id"))),
        this.status, actions),
      this.reason,
      h("section", { class: "panel", "aria-label": "About the task" }, this.facts));
    this.showStatus = whenChanged((status) => fill(this.status, statusMark(status)));
    this.showReason = whenChanged((reasons) => fill(this.reason, reasons.map(reasonNote)));
    this.showFacts = whenChanged((_, task) => fill(this.facts, facts(this.#facts(task), "facts-wide")));
  }

  update(task, timeline, nowMs) {
    this.saga.textContent = task.saga;
    this.showStatus(task.status);
    this.showReason(reasonsOf(task));
    this.showFacts([task.status, task.updated_at, task.due_at, task.usage, task.saga_version], task);
    const end = timeline.settled_at ? Date.parse(timeline.settled_at) : nowMs;
    this.took.textContent = duration(end - Date.parse(timeline.began_at));
  }

  #facts(task) {
    const trace = traceOf(task.task);
    const href = traceHref(this.traceLink, trace);
    const attributes = Object.entries(task.attributes).map(([name, value]) => `${name}=${value}`);
    return [
      ["Saga", h("a", { href: `/sagas/${encodeURIComponent(task.saga)}?version=${task.saga_version}` }, `${task.saga}, version ${task.saga_version}`)],
      ["Submitted", when(task.created_at)],
      ["Last change", age(task.updated_at)],
      ["Took", this.took],
      ["Next due", task.due_at && when(task.due_at)],
      ["Owner", task.owner],
      ["Priority", String(task.priority)],
      ["Attributes", attributes.length && attributes.map((text) => [h("span", { class: "tag" }, text), " "]), "fact-wide"],
      ["Parent", task.parent && taskLink(task.parent), "fact-wide"],
      ["Forked from", task.forked_from && taskLink(task.forked_from), "fact-wide"],
      ["Used", usageText(task)],
      ["Payloads", task.encrypted && "encrypted end to end"],
      ["Trace", [
        href
          ? h("a", { href, target: "_blank", rel: "noopener noreferrer", class: "mono" }, trace)
          : h("span", { class: "mono" }, trace),
        copyButton(trace, "Trace id"),
      ], "fact-wide"],
    ];
  }
}

export function taskLink(id) {
  return h("a", { class: "mono", href: `/tasks/${id}` }, id);
}

export function copyButton(text, label) {
  return h("button", {
    class: "button-quiet", type: "button", "aria-label": `Copy ${label.toLowerCase()}`, title: "Copy",
    onclick: () => copied(text, label),
  }, icon("copy"));
}

function reasonsOf(task) {
  const found = [];
  if (task.reason) found.push([STUCK.has(task.status) ? "stuck" : "told", task.reason]);
  if (task.incident && task.incident !== task.reason) found.push(["stuck", `Incident: ${task.incident}`]);
  return found;
}

function reasonNote([kind, text]) {
  return h("div", { class: kind === "stuck" ? "reason" : "reason reason-quiet" }, icon("alert"),
    h("div", { tabindex: text.length > 400 ? "0" : null }, text));
}

function usageText({ usage, manifest }) {
  if (!usage) return "";
  const of = (limit, text) => (limit ? ` of ${text(limit)}` : "");
  return `${count(usage.tokens)}${of(manifest?.max_tokens, count)} tokens, ` +
    `$${usage.cost_usd.toFixed(4)}${of(manifest?.max_cost_usd, (cost) => `$${cost}`)}`;
}
