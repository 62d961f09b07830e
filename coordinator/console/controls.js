// Small parts that several pages are made of.
//
//   panel({ title, tools, content, foot })   a titled box; -> { element, heading, body }
//   choice({ label, name, options: [[value, text]], value, change })   one of a few, as radio buttons
//   facts([[term, text or element, class]])  a list of terms; what is empty is left out
//   check({ label, on, change })             a box to tick
//   whenChanged(fill)    -> (key, …) calls `fill` only when `key`, as JSON, is not what it was

import { h } from "./dom.js";

let names = 0;

export function panel({ title, tools = [], content = [], foot = null, id = null }) {
  const heading = h("h2", { id: id && `${id}-title` }, title);
  const body = h("div", {}, content);
  const element = h("section", { class: "panel", "aria-labelledby": id && `${id}-title` },
    h("header", { class: "panel-head" }, heading, tools), body, foot);
  return { element, heading, body };
}

export function choice({ label, options, value, change }) {
  const name = `choice-${(names += 1)}`;
  return h("div", { class: "choice", role: "radiogroup", "aria-label": label }, options.map(([key, text]) =>
    h("label", {}, h("input", {
      type: "radio", name, value: key, checked: key === value, onchange: () => change(key),
    }), text)));
}

export function check({ label, on, change }) {
  return h("label", { class: "check" },
    h("input", { type: "checkbox", checked: on, onchange: (event) => change(event.target.checked) }), label);
}

export function facts(pairs, kind = "facts") {
  const shown = pairs.filter(([, value]) => value);
  return h("dl", { class: kind }, shown.map(([term, value, more = ""]) =>
    h("div", { class: `fact ${more}` }, h("dt", {}, term), h("dd", {}, value))));
}

export function whenChanged(fill) {
  let last;
  return (key, ...values) => {
    const text = JSON.stringify(key);
    if (text === last) return;
    last = text;
    fill(key, ...values);
  };
}
