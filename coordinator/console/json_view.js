// A JSON value to look into: small ones whole, large ones folded and filled as they are opened.
//
//   jsonView(value, { label: "Input" }) -> an element
//   sizeText(bytes) -> "1.2 KB"
// What a role may not see comes as a digest and a size (see masked.js) and is shown as that.

import { announce } from "./announce.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { isMasked, maskedView } from "./masked.js";

const WHOLE_MAX_CHARS = 2_000; // of a value that is shown at once
const TEXT_MAX_CHARS = 1_000; // of a string, until all of it is asked for
const PAGE = 100; // members of an object or list at a time

export function jsonView(value, { label }) {
  if (isMasked(value)) return maskedView(value);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const copy = h("button", {
    class: "button-quiet json-copy", type: "button", "aria-label": `Copy ${label}`, title: "Copy",
    onclick: () => copied(text, label),
  }, icon("copy"));
  const whole = text.length <= WHOLE_MAX_CHARS;
  const body = whole
    ? h("pre", { class: "json-text", tabindex: "0", role: "region", "aria-label": label }, text)
    : h("div", { class: "json-tree", tabindex: "0", role: "region", "aria-label": label }, node(null, value, true));
  return h("div", { class: "json" }, copy, body);
}

export function sizeText(bytes) {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function node(key, value, open = false) {
  const name = key === null ? null : h("span", { class: "json-key" }, `${key}: `);
  if (value === null || typeof value !== "object") return h("div", { class: "json-leaf" }, name, leaf(value));
  const members = Object.entries(value);
  const isList = Array.isArray(value);
  const count = `${members.length} ${isList ? "items" : "fields"}`;
  if (!members.length) return h("div", { class: "json-leaf" }, name, isList ? "[]" : "{}");
  const inside = h("div", { class: "json-inside" });
  const details = h("details", { ontoggle: () => details.open && !inside.firstChild && more(inside, members, 0) },
    h("summary", {}, name, h("span", { class: "json-count" }, isList ? `[ ${count} ]` : `{ ${count} }`)), inside);
  if (open) {
    details.open = true;
    more(inside, members, 0);
  }
  return details;
}

function more(inside, members, from) {
  inside.append(...members.slice(from, from + PAGE).map(([key, value]) => node(key, value)));
  const left = members.length - from - PAGE;
  if (left <= 0) return;
  const button = h("button", {
    class: "link", type: "button",
    onclick: () => { button.remove(); more(inside, members, from + PAGE); },
  }, `Show ${Math.min(left, PAGE)} more of ${left}`);
  inside.append(button);
}

function leaf(value) {
  if (typeof value !== "string") return h("span", { class: `json-${typeof value}` }, String(value));
  if (value.length <= TEXT_MAX_CHARS) return h("span", { class: "json-string" }, JSON.stringify(value));
  const text = h("span", { class: "json-string" }, `${JSON.stringify(value.slice(0, TEXT_MAX_CHARS))} … `);
  const all = h("button", {
    class: "link", type: "button",
    onclick: () => { text.textContent = JSON.stringify(value); all.remove(); },
  }, `Show all ${value.length} characters`);
  return [text, all];
}

export async function copied(text, label) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${label} copied`);
  } catch {
    announce(`${label} could not be copied: the browser does not allow it here`, { tone: "bad" });
  }
}
