// The timeline of a task's page: as a chart or as a table, and the chain of what was undone.
//
//   const part = taskTimeline({ choose, signal });  part.element;  part.update(timeline, nowMs, chosen)

import { check, choice, panel, whenChanged } from "./controls.js";
import { fill, h, svg } from "./dom.js";
import { clock, duration } from "./format.js";
import { ganttChart } from "./gantt.js";
import { statusMark } from "./status.js";
import { table } from "./table.js";
import { timelineRows } from "./timeline_words.js";
import { elapsed } from "./timescale.js";

const ROWS_FIRST = 200; // of the table; more on demand
const REDRAW_MS = 1_000; // of what goes on, so that its bars grow

export function taskTimeline(wanted) {
  return new TaskTimeline(wanted);
}

class TaskTimeline {
  #last = null;
  #rowsMax = ROWS_FIRST;
  #view = "chart";

  constructor({ choose, signal }) {
    this.chart = ganttChart({ choose });
    this.table = rowsTable(choose);
    this.more = h("button", { class: "button", type: "button", onclick: () => this.#showMore() }, "Show more");
    this.foldBox = check({ label: "Fold quiet time", on: true, change: (on) => this.chart.fold(on) });
    this.zooms = h("div", { class: "button-row" }, this.foldBox,
      h("button", { class: "button button-small", type: "button", "aria-label": "Zoom out", onclick: () => this.chart.zoom(0.5) }, "−"),
      h("button", { class: "button button-small", type: "button", "aria-label": "Zoom in", onclick: () => this.chart.zoom(2) }, "+"));
    const views = choice({
      label: "Show the timeline as", options: [["chart", "Chart"], ["table", "Table"]], value: "chart",
      change: (view) => this.#switch(view),
    });
    this.chartPart = h("div", {}, this.chart.element, legend());
    this.tablePart = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline as a table", hidden: true },
      this.table.element, h("div", { class: "panel-foot" }, this.more));
    this.chain = h("div", {});
    this.showChain = whenChanged((links) => fill(this.chain, links.length > 0 && chainView(links)));
    this.element = panel({
      title: "Timeline", id: "timeline", tools: [this.zooms, views],
      content: [this.chartPart, this.tablePart, this.chain],
    }).element;
    const timer = setInterval(() => this.#grow(), REDRAW_MS);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  update(timeline, nowMs, chosen) {
    this.#last = { timeline, nowMs, chosen, at: performance.now() };
    this.showChain(timeline.compensations);
    this.#show();
  }

  #show() {
    const { timeline, nowMs, chosen, at } = this.#last;
    const now = nowMs + performance.now() - at;
    if (this.#view === "chart") {
      this.chart.update(timeline, now, chosen);
      this.foldBox.hidden = !this.chart.foldable;
    } else {
      const rows = timelineRows(timeline);
      const began = Date.parse(timeline.began_at);
      this.table.update(rows.slice(0, this.#rowsMax).map((row, key) => ({ ...row, key, since: row.at - began })));
      this.more.parentElement.hidden = rows.length <= this.#rowsMax;
      this.more.textContent = `Show more of ${rows.length}`;
    }
  }

  #grow() {
    const open = this.#last?.timeline.settled_at === null && !document.hidden;
    if (open && this.#view === "chart") this.#show();
  }

  #switch(view) {
    this.#view = view;
    this.chartPart.hidden = view !== "chart";
    this.tablePart.hidden = view !== "table";
    this.zooms.hidden = view !== "chart";
    if (this.#last) this.#show();
  }

  #showMore() {
    this.#rowsMax += ROWS_FIRST;
    this.#show();
  }
}

function rowsTable(choose) {
  return table({
    caption: "The timeline: every attempt, wait and mark",
    keyOf: (row) => row.key,
    columns: [
      { label: "At", class: "narrow", cell: (row) => h("time", { datetime: row.began, title: row.began }, `${clock(row.began)} (${elapsed(row.since)})`) },
      { label: "Step", cell: (row) => row.step && h("button", { class: "link", type: "button", onclick: () => choose(row.step) }, row.step) },
      { label: "What", cell: (row) => row.what },
      { label: "Took", class: "narrow", cell: (row) => (row.ended ? duration(Date.parse(row.ended) - row.at) : row.lasting ? "goes on" : "") },
      { label: "Outcome", cell: (row) => row.outcome },
      { label: "By", cell: (row) => (row.child ? h("a", { href: `/tasks/${row.child}` }, "child task") : row.worker) },
    ],
  });
}

function chainView(links) {
  return h("div", { class: "chain" }, h("h3", {}, "Undone in this order"),
    h("ol", {}, links.map((link) => h("li", {},
      h("span", {}, `${link.order}. ${link.compensation} undoes ${link.undoes}`),
      statusMark(link.status),
      (link.empty || link.attempts > 1)
        && h("span", { class: "muted" }, link.empty ? "nothing to undo" : `${link.attempts} attempts`)))));
}

function legend() {
  const kinds = [
    ["bar-attempt outcome-completed", "Attempt"], ["bar-attempt outcome-failed", "failed"],
    ["bar-attempt outcome-timed_out", "outcome unknown"], ["bar-attempt outcome-running", "going on"],
    ["bar-undo bar-attempt outcome-completed", "Undoing"], ["bar-wait", "Waiting"], ["bar-retry_wait", "Pause before a retry"],
  ];
  return h("ul", { class: "legend", "aria-hidden": "true" }, kinds.map(([kind, text]) => h("li", {},
    svg("svg", { width: 18, height: 10 }, svg("rect", {
      class: `gantt-bar ${kind}`, y: kind.includes("attempt") ? 0 : 3, width: 18, height: kind.includes("attempt") ? 10 : 4, rx: 3,
    })), text)));
}
