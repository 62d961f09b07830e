// Overview: how the system fares, as figures of now and charts of the last hour.

import { read } from "../api.js";
import { chart, last } from "../chart.js";
import { fill, h } from "../dom.js";
import { age, compact, count, duration } from "../format.js";
import { fresh } from "../fresh.js";
import { figuresOf, FIGURES, seriesOf } from "../overview_figures.js";
import { statusMark, TASK_STATUSES } from "../status.js";

const WAITING_SHOWN = 6;
const POLL_MS = 1_000; // figures are written down some seconds after the events that they count

export async function page(context) {
  context.title("Overview");
  new Overview(context).start();
}

class Overview {
  constructor(context) {
    this.context = context;
    this.figures = FIGURES.map(figure);
    this.charts = {
      throughput: chart({
        title: "Settled tasks", write: compact, series: [
          { name: "Succeeded", tone: "good", shape: "bar" },
          { name: "Compensated", tone: "undone", shape: "bar" },
          { name: "Parked", tone: "warn", shape: "bar" },
          { name: "Submitted", tone: "second", shape: "line" },
        ],
      }),
      latency: chart({
        title: "Duration of tasks", write: duration, rest: last, series: [
          { name: "p95", tone: "third", shape: "dash" },
          { name: "p50", tone: "first", shape: "line" },
        ],
      }),
      failures: chart({
        title: "Failed attempts", write: compact, series: [
          { name: "Failed", tone: "bad", shape: "bar" },
          { name: "Retries", tone: "second", shape: "line" },
        ],
      }),
      recoveries: chart({
        title: "Recoveries", write: compact, series: [{ name: "Taken over or sent again", tone: "first", shape: "bar" }],
      }),
    };
    this.statuses = h("ul", { class: "shares" });
    this.waiting = h("ul", { class: "brief" });
  }

  start() {
    const charts = Object.values(this.charts).map(({ element }) =>
      h("section", { class: "panel" }, element));
    this.content = h("div", { class: "stack" },
      h("section", { class: "panel", "aria-label": "Now" },
        h("div", { class: "figures" }, this.figures.map(({ element }) => element))),
      h("div", { class: "charts" }, charts),
      h("div", { class: "charts" },
        h("section", { class: "panel" },
          h("div", { class: "panel-head" }, h("h2", {}, "Tasks by status")), this.statuses),
        h("section", { class: "panel" },
          h("div", { class: "panel-head" }, h("h2", {}, "Waits for a person"),
            h("a", { href: "/parked" }, "The whole queue")), this.waiting)));
    this.context.view.append(
      h("header", { class: "page-head" }, h("h1", {}, "Overview"), h("span", { class: "muted" }, "Last 60 minutes")),
      this.content);
    this.#drawStatuses(null);
    fresh(this.context, {
      load: (signal) => Promise.all([
        read("overview", {}, { signal }), read("parked", { limit: WAITING_SHOWN }, { signal }),
      ]),
      draw: ([overview, { waiting }]) => this.#draw(overview, waiting),
      content: this.content,
      everyMs: POLL_MS,
    });
  }

  #draw(overview, waiting) {
    const figures = figuresOf(overview);
    for (const each of this.figures) each.show(figures[each.name]);
    const series = seriesOf(overview);
    for (const [name, each] of Object.entries(this.charts)) each.update(series[name]);
    this.#drawStatuses(overview.counts);
    fill(this.waiting, waiting.length
      ? waiting.slice(0, WAITING_SHOWN).map(({ task, saga, step, reason, since }) => h("li", {},
        h("a", { class: "row-link", href: `/tasks/${task}` }, [saga, step].filter(Boolean).join(" / ")),
        h("span", { class: "brief-words muted", title: reason }, reason), h("span", { class: "muted" }, age(since))))
      : h("li", { class: "muted" }, "Nothing waits."));
  }

  #drawStatuses(counts) {
    const number = (status) => counts && (counts[status] ?? 0);
    const most = Math.max(1, ...TASK_STATUSES.map(number));
    fill(this.statuses, TASK_STATUSES.map((status) => h("li", {},
      h("a", { class: "row-link", href: `/tasks?status=${status}` }, statusMark(status)),
      h("span", { class: "share" }, h("span", {
        class: `share-bar tone-${TONES[status]}`, style: { width: `${(100 * number(status)) / most}%` },
      })),
      h("b", {}, count(number(status))))));
  }
}

const TONES = {
  running: "first", compensating: "undone", parked: "warn", failed_to_compensate: "bad", succeeded: "good",
  compensated: "second",
};

function figure({ name, title, href }) {
  const value = h("span", { class: "figure-value" }, "–");
  const note = h("span", { class: "figure-note" });
  const element = h(href ? "a" : "div", { class: "figure", href, dataset: { figure: name } },
    h("span", { class: "figure-name" }, title), value, note);
  return {
    name,
    element,
    show({ text, words = "", tone = "" }) {
      fill(value, text);
      fill(note, words);
      element.dataset.tone = tone;
    },
  };
}
