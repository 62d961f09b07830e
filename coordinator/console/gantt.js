// A task's timeline as a chart: a row for each step, time from left to right.
//
//   const chart = ganttChart({ choose: (step) => … });
//   chart.element
//   chart.update(timeline, nowMs, chosen)   draws it anew; the focus and what is scrolled to stay
//   chart.zoom(2), chart.zoom(0.5), chart.fold(true);  chart.foldable
//
// The steps are buttons: one stop of the tab key, then up and down. The drawing itself says nothing to
// screen readers; the buttons sum their rows up, and the table beside the chart tells all of it.

import { fill, h, svg } from "./dom.js";
import { duration, moment } from "./format.js";
import { gantt, ms } from "./gantt_layout.js";
import { icon } from "./icons.js";
import { roving } from "./roving.js";
import { barTitle, markText, outcomeText, stepSummary } from "./timeline_words.js";

const AXIS_PX = 40;
const NARROW_PX = 620; // below it the names stand above their bars
const PLOT_MIN_PX = 200;
const PLOT_MAX_PX = 12_000;
const BEGIN_PX = 8; // room before the first moment, for its mark
const END_PX = 14; // and after the last one
const BESIDE = { labels: 208, row: 34, top: 5, bars: 24 };
const ABOVE = { labels: 0, row: 50, top: 25, bars: 18 };
const TICK_CHAR_PX = 7.5; // at most, on average, in the widest of usual fonts
const TITLES_MAX = 5; // bars that one drawn bar tells of

export function ganttChart(wanted) {
  return new Gantt(wanted);
}

class Gantt {
  foldable = false;
  #factor = 1;
  #folded = true;
  #last = null;
  #width = 0;
  #buttons = new Map();

  constructor({ choose }) {
    this.choose = choose;
    this.list = h("ol", { class: "gantt-steps" });
    this.axis = svg("svg", { class: "gantt-axis", height: AXIS_PX, "aria-hidden": "true" });
    this.plot = svg("svg", { class: "gantt-plot", "aria-hidden": "true" });
    this.sheet = h("div", { class: "gantt-sheet" }, this.axis, this.list, this.plot);
    this.element = h("div", {
      class: "gantt", role: "group", "aria-label": "Steps in time. The table beside has all of it.",
    }, this.sheet);
    this.plot.addEventListener("click", (event) => this.#clicked(event));
    roving(this.list);
    new ResizeObserver(() => this.#resized()).observe(this.element);
  }

  update(timeline, nowMs, chosen) {
    this.#last = [timeline, nowMs, chosen];
    this.#draw();
  }

  zoom(factor) {
    const middle = this.element.scrollLeft + this.element.clientWidth / 2;
    const before = this.#plotWidth();
    this.#factor = Math.max(1, this.#factor * factor);
    this.#draw();
    this.element.scrollLeft = (middle * this.#plotWidth()) / before - this.element.clientWidth / 2;
  }

  fold(on) {
    this.#folded = on;
    this.#draw();
  }

  #resized() {
    if (Math.abs(this.element.clientWidth - this.#width) > 1) this.#draw();
  }

  #plotWidth() {
    const own = Math.max(PLOT_MIN_PX, this.#width - this.shape.labels - BEGIN_PX - END_PX);
    return Math.min(own * this.#factor, Math.max(own, PLOT_MAX_PX));
  }

  #draw() {
    this.#width = this.element.clientWidth;
    if (!this.#last || !this.#width) return;
    const [timeline, nowMs, chosen] = this.#last;
    this.shape = this.#width < NARROW_PX ? ABOVE : BESIDE;
    const width = this.#plotWidth();
    const whole = BEGIN_PX + width + END_PX;
    const drawn = gantt(timeline, { width, nowMs, fold: this.#folded });
    const height = drawn.rows.length * this.shape.row;
    this.foldable = drawn.scale.foldable;
    this.element.classList.toggle("gantt-narrow", this.shape === ABOVE);
    this.sheet.style.width = `${this.shape.labels + whole}px`;
    this.sheet.style.height = `${AXIS_PX + height}px`;
    this.list.style.width = `${this.shape.labels || this.#width}px`;
    this.plot.style.left = `${this.shape.labels}px`;
    this.axis.style.marginLeft = `${this.shape.labels}px`;
    size(this.axis, whole, AXIS_PX);
    size(this.plot, whole, height);
    this.#label(drawn.rows, chosen);
    fill(this.axis, shifted(axisParts(drawn, width)));
    fill(this.plot, shifted(plotParts(drawn, this.shape, width, height, chosen, nowMs)));
  }

  #label(rows, chosen) {
    const wanted = rows.map(({ step }) => this.#button(step));
    rows.forEach(({ step }, at) => {
      const [item, button] = [wanted[at], wanted[at].firstChild];
      item.style.height = `${this.shape.row}px`;
      const text = `${step.status} ${stepSummary(step)}`;
      if (item.dataset.text !== text) {
        item.dataset.text = text;
        button.setAttribute("aria-label", stepSummary(step));
        button.title = step.name;
        button.className = `gantt-step status-${step.status}`;
        fill(button, icon(step.status), h("span", { class: "gantt-name" }, step.name));
      }
      if (step.name === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    for (const child of [...this.list.children]) if (!wanted.includes(child)) child.remove();
    wanted.forEach((item, at) => {
      if (this.list.children[at] !== item) this.list.insertBefore(item, this.list.children[at] ?? null);
    });
  }

  #button(step) {
    let item = this.#buttons.get(step.name);
    if (!item) {
      const choose = () => this.choose(step.name);
      item = h("li", {}, h("button", { type: "button", onclick: choose }));
      this.#buttons.set(step.name, item);
    }
    return item;
  }

  #clicked(event) {
    const row = Math.floor((event.clientY - this.plot.getBoundingClientRect().top) / this.shape.row);
    const step = this.#last?.[0].steps[row];
    if (step) this.choose(step.name);
  }
}

function shifted(parts) {
  return svg("g", { transform: `translate(${BEGIN_PX} 0)` }, parts);
}

function axisParts({ scale, marks }, width) {
  return [
    scale.ticks.map(({ x, text }) => [
      svg("line", { class: "gantt-tick", x1: x, x2: x, y1: AXIS_PX - 6, y2: AXIS_PX }),
      hasRoom(x, text, scale.folds, width)
        && svg("text", { class: "gantt-tick-text", x: x + 3, y: AXIS_PX - 9 }, text),
    ]),
    scale.folds.map((fold) => [
      svg("rect", { class: "gantt-fold", x: fold.x, y: AXIS_PX - 22, width: fold.width, height: 22 }),
      svg("text", {
        class: "gantt-fold-text", x: fold.x + fold.width / 2, y: AXIS_PX - 9, "text-anchor": "middle",
      }, duration(fold.ms)),
    ]),
    marks.map(({ x, mark }) => svg("path", {
      class: `gantt-mark mark-${mark.kind}`, d: `M${x} 2l5 5l-5 5l-5 -5Z`,
    }, title(`${markText(mark)}\n${moment(mark.at)}`))),
  ];
}

/** Whether a tick's text ends before the next fold, and before the end. */
function hasRoom(x, text, folds, width) {
  const end = x + 3 + TICK_CHAR_PX * text.length;
  return end < width + END_PX && folds.every((fold) => end < fold.x || x >= fold.x + fold.width);
}

function plotParts(drawn, shape, width, height, chosen, nowMs) {
  const { scale, rows, marks, holds, chain } = drawn;
  return [
    rows.map(({ step }, row) => svg("rect", {
      class: step.name === chosen ? "gantt-row gantt-row-chosen" : "gantt-row",
      x: -BEGIN_PX, y: row * shape.row, width: BEGIN_PX + width + END_PX, height: shape.row,
    })),
    scale.ticks.map(({ x }) => svg("line", { class: "gantt-grid", x1: x, x2: x, y1: 0, y2: height })),
    scale.folds.map((fold) => svg("rect", {
      class: "gantt-fold", x: fold.x, y: 0, width: fold.width, height,
    }, title(`${duration(fold.ms)} in which nobody worked`))),
    holds.map((hold) => svg("rect", {
      class: "gantt-hold", x: hold.x, y: 0, width: hold.width, height,
    }, title(`${barTitle(hold.bar)}: ${hold.bar.reason}`))),
    marks.map(({ x, mark }) => svg("line", {
      class: `gantt-line mark-${mark.kind}`, x1: x, x2: x, y1: 0, y2: height,
    })),
    chain.map((link) => chainPart(link, shape)),
    rows.map((row, at) => rowParts(row, at * shape.row + shape.top, shape, nowMs)),
  ];
}

function rowParts({ bars, lanes, marks }, top, shape, nowMs) {
  const height = shape.bars / lanes;
  return [
    bars.map((bar) => [svg("rect", {
      class: `gantt-bar bar-${bar.kind} outcome-${bar.outcome}${bar.lane ? " bar-undo" : ""}`,
      x: bar.x, width: bar.width, rx: 3,
      y: top + bar.lane * height + (bar.kind === "attempt" ? 1 : height / 3),
      height: bar.kind === "attempt" ? height - 2 : height / 3,
    }, title(barsText(bar.bars, nowMs))), bar.queued > 1 && svg("rect", {
      class: "gantt-queued", x: bar.x, width: bar.queued, y: top + bar.lane * height + 1, height: height - 2,
    })]),
    marks.map(({ x, mark }) => svg("path", {
      class: `gantt-mark mark-${mark.kind}`, d: `M${x} ${top + shape.bars / 2 - 5}l5 5l-5 5l-5 -5Z`,
    }, title(`${markText(mark)}\n${moment(mark.at)}`))),
  ];
}

/** From the end of one compensation to the begin of the next. */
function chainPart({ from, to }, shape) {
  const [y1, y2] = [from, to].map(({ row }) => row * shape.row + shape.top + shape.bars * 0.75);
  const middle = Math.max(from.x, to.x) + 8;
  return svg("path", {
    class: "gantt-chain",
    d: `M${from.x} ${y1}C${middle} ${y1} ${to.x - 12} ${(y1 + y2) / 2} ${to.x} ${y2}`,
  });
}

function barsText(bars, nowMs) {
  const lines = bars.slice(0, TITLES_MAX).map((bar) => {
    const took = (bar.ended_at ? ms(bar.ended_at) : nowMs) - ms(bar.began_at);
    const worker = bar.worker ? `, ${bar.worker}` : "";
    return `${barTitle(bar)}: ${outcomeText(bar)} (${duration(took)}${worker})`;
  });
  const more = bars.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

function title(text) {
  return svg("title", {}, text);
}

function size(element, width, height) {
  element.setAttribute("width", width);
  element.setAttribute("height", height);
}
