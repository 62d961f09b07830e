// Elements, made from values. Text only ever becomes a text node.
//
// A page may use:
//   h("button", { class: "button", onclick: act, disabled: true }, "Retry")   an HTML element
//   svg("path", { d: "M0 0" })                                                an SVG element
//   fill(element, ...children)     replaces what is inside an element
//   hidden("text")                 words for screen readers only
//
// Attributes: `class`; `on…` adds a listener; `dataset` and `style` take objects (set through the
// object model, since the content security policy allows no style attributes); true and false
// switch an attribute on and off; null and undefined leave it out. Children: elements, strings,
// numbers, lists of them; null, undefined and false are left out.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

export function hidden(text) {
  return h("span", { class: "hidden" }, text);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "style") {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else element.setAttribute(name, value === true ? "" : String(value));
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
