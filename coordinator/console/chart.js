// Small charts over time: bars that stand on each other, and lines. Read with the pointer, or with
// the arrow keys once focused: the legend then tells the values of that moment.
//
// A page may use:
//   const throughput = chart({
//     title: "Settled tasks", write: count, height: 88,
//     series: [{ name: "Succeeded", tone: "good", shape: "bar" }, { name: "p95", tone: "second", shape: "dash" }],
//   });
//   throughput.element;  throughput.update({ times: [iso, …], values: [[…], […]] })
// Shapes: bar (all bars of a chart are stacked), line, dash. Tones: good, undone, bad, warn, first,
// second, third. A value null is a gap. `sum(values)` or `last(values)` is what the legend tells at rest.

import { fill, h, svg } from "./dom.js";
import { layout } from "./chart_layout.js";
import { clock } from "./format.js";

const AXIS_PX = 44;
const FOOT_PX = 16;

export const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
export const last = (values) => values.findLast((value) => value !== null && value !== undefined) ?? null;

export function chart(wanted) {
  return new Chart(wanted);
}

class Chart {
  #data = { times: [], values: [] };
  #at = null; // index of the moment that is read; null: at rest
  #width = 320;

  constructor({ title, series, write, height = 88, rest = sum }) {
    Object.assign(this, { title, series, write, height, rest });
    this.figures = series.map(() => h("b", {}, "–"));
    this.moment = h("span", { class: "chart-moment" });
    this.plot = h("div", {
      class: "chart-plot", tabindex: "0", role: "slider", "aria-label": `${title}, by minute`,
      "aria-orientation": "horizontal", "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0,
      style: { height: `${height + FOOT_PX}px` },
      onpointermove: (event) => this.#point(event),
      onpointerleave: () => this.#read(null),
      onblur: () => this.#read(null),
      onkeydown: (event) => this.#key(event),
    });
    this.element = h("figure", { class: "chart" },
      h("figcaption", { class: "chart-head" }, h("h2", {}, title), this.moment),
      this.plot,
      h("ul", { class: "chart-legend" }, series.map(({ name, tone, shape }, n) => h("li", {},
        h("span", { class: `swatch swatch-${shape} tone-${tone}` }), name, " ", this.figures[n]))));
    new ResizeObserver(([entry]) => {
      this.#width = Math.max(120, Math.floor(entry.contentRect.width));
      this.#draw();
    }).observe(this.plot);
  }

  update({ times, values }) {
    this.#data = { times, values };
    if (this.#at !== null) this.#at = Math.min(this.#at, times.length - 1);
    this.#draw();
    this.#read(this.#at);
  }

  #draw() {
    const { times, values } = this.#data;
    const inner = this.#width - AXIS_PX;
    const { top, bars, lines, columns } = layout(this.series, values, times.length, inner, this.height);
    const middle = this.height / 2;
    const label = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor }, text);
    const drawing = svg("svg", {
      width: this.#width, height: this.height + FOOT_PX, "aria-hidden": "true",
    },
      svg("g", { class: "chart-grid" }, [0.5, middle, this.height - 0.5].map((y) =>
        svg("line", { x1: 0, x2: inner, y1: y, y2: y }))),
      svg("g", { class: "chart-axis" },
        label(inner + 6, 9, this.write(top), "start"),
        label(inner + 6, middle + 4, this.write(top / 2), "start"),
        label(inner + 6, this.height, this.write(0), "start"),
        times.length > 1 && [
          label(0, this.height + 13, minute(times[0]), "start"),
          label(inner, this.height + 13, minute(times.at(-1)), "end"),
        ]),
      bars.map(({ tone, path }) => svg("path", { class: `chart-bar tone-${tone}`, d: path })),
      lines.map(({ tone, shape, path }) => svg("path", { class: `chart-${shape} tone-${tone}`, d: path })),
      svg("line", { class: "chart-cursor", y1: 0, y2: this.height, x1: -9, x2: -9 }));
    this.columns = columns;
    fill(this.plot, drawing);
    this.cursor = drawing.lastChild;
    this.#moveCursor();
  }

  #point(event) {
    if (!this.#data.times.length) return;
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const wide = (this.#width - AXIS_PX) / this.#data.times.length;
    this.#read(Math.max(0, Math.min(this.#data.times.length - 1, Math.floor(x / wide))));
  }

  #key(event) {
    const end = this.#data.times.length - 1;
    const at = this.#at ?? end;
    const to = {
      ArrowLeft: at - 1, ArrowRight: at + 1, ArrowDown: at - 1, ArrowUp: at + 1,
      PageDown: at - 10, PageUp: at + 10, Home: 0, End: end,
    }[event.key];
    if (to === undefined || end < 0) return;
    event.preventDefault();
    this.#read(Math.max(0, Math.min(end, to)));
  }

  /** Tell the values of one moment, or at rest those of all of them. */
  #read(at) {
    this.#at = at;
    const { times, values } = this.#data;
    this.figures.forEach((figure, n) => {
      const told = at === null ? this.rest(values[n] ?? []) : values[n][at];
      fill(figure, this.write(told));
    });
    fill(this.moment, at === null ? "" : clock(times[at]).slice(0, 5));
    const now = at ?? Math.max(0, times.length - 1);
    const words = this.series.map(({ name }, n) => `${name} ${this.write(values[n]?.[now] ?? null)}`);
    this.plot.setAttribute("aria-valuemax", Math.max(0, times.length - 1));
    this.plot.setAttribute("aria-valuenow", now);
    this.plot.setAttribute("aria-valuetext",
      times.length ? `${minute(times[now])}: ${words.join(", ")}` : "nothing yet");
    this.#moveCursor();
  }

  #moveCursor() {
    const x = this.#at === null ? -9 : this.columns?.[this.#at] ?? -9;
    this.cursor?.setAttribute("x1", x);
    this.cursor?.setAttribute("x2", x);
  }
}

function minute(iso) {
  return clock(iso).slice(0, 5);
}
