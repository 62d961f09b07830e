// A saga drawn as its steps and their order. With a task's statuses, what was reached is lit.
//
//   const map = diagram({ choose: (step) => … });
//   map.element
//   map.update(steps, { statuses, chosen })
//     steps     [{ name, kind, action, compensation, after, pivot, when, handed_off_by }]
//     statuses  { name: status } of a task; null for the saga alone
// The drawing has one sentence for screen readers; the list beside it (diagram_list.js) tells all.

import { fitting } from "./diagram_layout.js";
import { fill, h, svg } from "./dom.js";
import { icon } from "./icons.js";
import { statusWord } from "./status.js";

const WIDE = { width: 188, height: 58 };
const SMALL = { width: 144, height: 54 }; // two of them fit side by side on a telephone
const SMALL_BELOW_PX = 460;
const ICON_PX = 16;
const CHAR_PX = 7.4;
const WAY_BACK = new Set(["compensating", "compensated", "failed_to_compensate"]);
const NOT_REACHED = new Set(["waiting", "skipped"]);

export function diagram(wanted) {
  return new Diagram(wanted);
}

class Diagram {
  #drawn = "";
  #last = null;
  #width = 0;
  #seen = null;

  constructor({ choose = null }) {
    this.choose = choose;
    this.drawing = svg("svg", { class: "diagram-drawing", role: "img" });
    this.element = h("div", {
      class: "diagram", tabindex: "0", role: "region", "aria-label": "Diagram of the saga",
    }, this.drawing);
    this.drawing.addEventListener("click", (event) => {
      const name = event.target.closest("[data-step]")?.dataset.step;
      if (name !== undefined) this.choose?.(name);
    });
    new ResizeObserver(() => this.#resized()).observe(this.element);
  }

  update(steps, { statuses = null, chosen = "" } = {}) {
    this.#last = { steps, statuses, chosen };
    this.#draw();
  }

  #resized() {
    if (Math.abs(this.element.clientWidth - this.#width) > 1) this.#draw();
  }

  #draw() {
    this.#width = this.element.clientWidth;
    if (!this.#last || !this.#width) return;
    const { steps, statuses, chosen } = this.#last;
    const text = JSON.stringify([steps.map(essence), statuses, chosen, this.#width]);
    if (text === this.#drawn) return;
    this.#drawn = text;
    const box = this.#width < SMALL_BELOW_PX ? SMALL : WIDE;
    const placed = fitting(steps, box, this.#width);
    this.drawing.setAttribute("width", placed.width);
    this.drawing.setAttribute("height", placed.height);
    this.drawing.setAttribute("viewBox", `0 0 ${placed.width} ${placed.height}`);
    this.drawing.setAttribute("aria-label", summary(steps, statuses));
    this.drawing.classList.toggle("is-choosable", this.choose !== null);
    fill(this.drawing,
      arrowHeads(),
      placed.edges.map((edge) => edgePart(edge, placed.across, statuses)),
      steps.map((step) => nodePart(step, box, placed.nodes.get(step.name), statuses, step.name === chosen)));
    this.#bringIntoView(placed, box, chosen || steps[0]?.name);
  }

  /** What is chosen, when that is another step than before. */
  #bringIntoView({ nodes }, box, name) {
    if (name === this.#seen || !nodes.has(name)) return;
    this.#seen = name;
    const { x, y } = nodes.get(name);
    const { clientWidth, clientHeight } = this.element;
    this.element.scrollTo(x + box.width / 2 - clientWidth / 2, y + box.height / 2 - clientHeight / 2);
  }
}

function essence(step) {
  return [step.name, step.kind, step.action, step.compensation, step.after, step.pivot, step.when];
}

function arrowHeads() {
  return svg("defs", {}, ["plain", "lit", "back"].map((kind) => svg("marker", {
    id: `arrow-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto-start-reverse",
  }, svg("path", { class: `arrow-${kind}`, d: "M0 0.5 7.5 4 0 7.5Z" }))));
}

function edgePart({ from, to, points }, across, statuses) {
  const reached = statuses && [from, to].every((name) => !NOT_REACHED.has(statuses[name] ?? "waiting"));
  const back = reached && [from, to].every((name) => WAY_BACK.has(statuses[name]));
  const kind = back ? "back" : reached ? "lit" : "plain";
  return svg("path", {
    class: `edge edge-${kind}`, d: curve(points, across),
    "marker-end": back ? null : `url(#arrow-${kind})`,
    "marker-start": back ? "url(#arrow-back)" : null,
  });
}

function curve(points, across) {
  let path = `M${points[0].join(" ")}`;
  for (let at = 1; at < points.length; at += 1) {
    const [[x1, y1], [x2, y2]] = [points[at - 1], points[at]];
    path += across
      ? `C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`
      : `C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`;
  }
  return path;
}

function nodePart(step, box, { x, y }, statuses, chosen) {
  const status = statuses?.[step.name];
  const classes = ["node", status ? `status-${status}` : "node-plain", step.pivot ? "node-pivot" : "",
    chosen ? "is-chosen" : "", step.kind === "action" ? "" : "node-wait"];
  const left = status ? 32 : 12;
  return svg("g", {
    class: classes.join(" "), transform: `translate(${x} ${y})`, dataset: { step: step.name },
  },
    svg("title", {}, nodeTitle(step, status)),
    svg("rect", { class: "node-box", width: box.width, height: box.height, rx: step.kind === "action" ? 6 : 18 }),
    status && statusIcon(status, 10, 11),
    clipped(step.name, left, 24, box.width - left - (step.pivot ? 26 : 10), "node-name"),
    clipped(below(step), 12, 44, box.width - 24 - (step.compensation ? 18 : 0), "node-action"),
    step.pivot && svg("path", {
      class: "node-flag", d: `M${box.width - 20} 10v14M${box.width - 20} 10h10l-3 3.5 3 3.5h-10`,
    }),
    step.compensation && statusIcon("cancel", box.width - 24, 33));
}

function below(step) {
  if (step.when) return `if ${step.when}`;
  return step.action || step.kind;
}

/** Text that ends with its box; an SVG of its own cuts off what is still longer. */
function clipped(text, x, y, width, kind) {
  const most = Math.floor(width / CHAR_PX);
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return svg("svg", { x, y: y - 14, width, height: 20 }, svg("text", { class: kind, x: 0, y: 14 }, shown));
}

function statusIcon(name, x, y) {
  const drawing = icon(name);
  for (const [key, value] of Object.entries({ x, y, width: ICON_PX, height: ICON_PX })) {
    drawing.setAttribute(key, value);
  }
  return drawing;
}

function nodeTitle(step, status) {
  const lines = [status ? `${step.name}: ${statusWord(status)}` : step.name, step.action || step.kind];
  if (step.when) lines.push(`if ${step.when}`);
  if (step.compensation) lines.push(`undone by ${step.compensation}`);
  if (step.pivot) lines.push("the point of no return");
  return lines.join("\n");
}

function summary(steps, statuses) {
  const total = `${steps.length} ${steps.length === 1 ? "step" : "steps"}`;
  if (!statuses) return `${total}. The list has their order.`;
  const counts = new Map();
  for (const { name } of steps) {
    const status = statuses[name] ?? "waiting";
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  const words = [...counts].map(([status, count]) => `${count} ${statusWord(status).toLowerCase()}`);
  return `${total}: ${words.join(", ")}. The list has their order.`;
}
