// How times, lengths of time, counts and ids are written. Pure, but for the ticking of ages.
//
// A page may use:
//   duration(ms)         "340 ms", "2.4 s", "3 m 12 s", "2 h 5 m", "3 d 4 h"
//   count(12345)         "12,345"
//   compact(12345)       "12.3k", for charts and badges
//   clock(iso), moment(iso)   local time: "14:03:22", "30 Nov 14:03:22"
//   age(iso)             an element that says how long ago that was, and goes on saying so
//   elapsed(iso)         the same without "ago": for what is still going on
//   when(iso)            an element with the moment; its title is the full time in UTC
//   idText(uuid)         an element with an id, shortened by the style sheet where space is short

import { h } from "./dom.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TICK_MS = 1_000;

const COUNT = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  const length = Math.max(0, ms);
  if (length < SECOND) return `${Math.round(length)} ms`;
  if (length < 10 * SECOND) return `${(length / SECOND).toFixed(1)} s`;
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return pair(length, MINUTE, "m", SECOND, "s");
  if (length < DAY) return pair(length, HOUR, "h", MINUTE, "m");
  return pair(length, DAY, "d", HOUR, "h");
}

export function count(number) {
  return number === null || number === undefined ? "–" : COUNT.format(number);
}

export function compact(number) {
  if (number === null || number === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(number) >= size) return `${Number((number / size).toPrecision(3))}${unit}`;
  }
  return String(Number(number.toPrecision(3)));
}

export function clock(iso) {
  return CLOCK.format(new Date(iso));
}

export function moment(iso) {
  return MOMENT.format(new Date(iso)).replace(",", "");
}

export function when(iso) {
  if (!iso) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: iso, title: utc(iso) }, moment(iso));
}

export function age(iso) {
  if (!iso) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: iso, title: utc(iso), class: "age", "data-age": "" }, ageText(iso));
}

export function elapsed(iso) {
  return h("time", { datetime: iso, title: utc(iso), "data-age": "length" }, lengthText(iso));
}

export function idText(id) {
  const [head, middle, tail] = [id.slice(0, 8), id.slice(8, 24), id.slice(24)];
  return h("span", { class: "id", title: id },
    head, h("span", { class: "id-middle" }, middle), tail);
}

/** Keeps every age on the page true. Called once, by the shell. */
export function tick() {
  setInterval(() => {
    for (const element of document.querySelectorAll("time[data-age]")) {
      const text = (element.dataset.age ? lengthText : ageText)(element.dateTime);
      if (element.textContent !== text) element.textContent = text;
    }
  }, TICK_MS);
}

function ageText(iso) {
  const ms = Math.max(0, Date.now() - Date.parse(iso));
  return ms < 2 * SECOND ? "now" : `${inOneUnit(ms)} ago`;
}

function lengthText(iso) {
  return inOneUnit(Math.max(0, Date.now() - Date.parse(iso)));
}

function inOneUnit(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

function pair(length, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((length % large) / small);
  return `${Math.floor(length / large)} ${largeUnit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
}

function utc(iso) {
  return `${new Date(iso).toISOString().replace("T", " ").slice(0, 23)} UTC`;
}
