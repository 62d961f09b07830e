// What stands where content would be: nothing yet, nothing at all, or a problem and the way on.
//
// A page may use:
//   skeleton(6)                        lines that show where content will be (while loading)
//   emptyView({ title, text, action }) nothing to show: why, and what to do; action is an element
//   problemView(problem, { againMs, retry })   an ApiError, told so that one can go on
// fresh.js shows problems by itself.

import { h, fill } from "./dom.js";
import { icon } from "./icons.js";

const TITLES = {
  403: "This token may not see that",
  404: "There is nothing here",
  429: "Too many requests",
  503: "The coordinator cannot answer now",
};
const TICK_MS = 1_000;

export function skeleton(lines = 6) {
  return h("div", { class: "skeleton", role: "status" },
    h("span", { class: "hidden" }, "Loading"),
    Array.from({ length: lines }, () => h("div", { class: "skeleton-line" })));
}

export function emptyView({ title, text = "", action = null }) {
  return h("div", { class: "state" },
    h("p", { class: "state-title" }, title),
    text && h("p", { class: "state-text" }, text),
    action);
}

export function problemView(problem, { againMs = null, retry = null } = {}) {
  const again = retry && h("button", { class: "button", type: "button", onclick: retry }, icon("retry"),
    againMs === null ? "Try again" : "Try now");
  const waiting = h("p", { class: "state-note" });
  if (againMs !== null) countDown(waiting, againMs);
  return h("div", { class: "state state-problem", role: "alert" },
    icon("alert"),
    h("p", { class: "state-title" }, TITLES[problem.status] ?? problem.title),
    h("p", { class: "state-text" }, problem.detail),
    waiting,
    again);
}

function countDown(element, ms) {
  const until = performance.now() + ms;
  const say = () => {
    const left = Math.max(0, Math.ceil((until - performance.now()) / TICK_MS));
    fill(element, left ? `Trying again in ${left} s.` : "Trying again …");
    if (left && (element.isConnected || left === Math.ceil(ms / TICK_MS))) setTimeout(say, TICK_MS);
  };
  say();
}
