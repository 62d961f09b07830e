// The form that narrows the list of tasks. Each change goes to the address at once.
//
//   const form = filterForm(filter, (filter) => …);  form.element;  form.show(filter)
//   form.offer("saga", ["order", …])     what a select has

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { statusWord, TASK_STATUSES } from "./status.js";
import { BETWEEN, narrowed, SPANS } from "./task_filter.js";

const TYPED_FOR_MS = 400;
const ANY = { saga: "Any saga", agent: "Any agent", since: "Any time" };

export function filterForm(filter, changed) {
  return new FilterForm(filter, changed);
}

class FilterForm {
  #typing;
  #filter;

  constructor(filter, changed) {
    this.changed = changed;
    this.boxes = TASK_STATUSES.map((status) =>
      h("input", { type: "checkbox", name: "status", value: status, class: "hidden" }));
    this.selects = {
      saga: select("saga", []),
      agent: select("agent", []),
      since: select("since", [...SPANS.map(([word, words]) => [word, words]), [BETWEEN, "Between …"]]),
    };
    this.texts = {
      owner: h("input", { name: "owner", placeholder: "Name of a token", spellcheck: "false" }),
      attribute: h("input", {
        name: "attribute", placeholder: "name=value", spellcheck: "false", pattern: "[^=]+=.*",
        title: "name=value",
      }),
      after: h("input", { name: "after", type: "datetime-local", step: 1 }),
      before: h("input", { name: "before", type: "datetime-local", step: 1 }),
    };
    this.clear = h("button", { class: "button-quiet clear", type: "button", onclick: () => this.#clear() },
      icon("close"), "Clear");
    this.element = this.#built();
    this.show(filter);
  }

  /** What a select offers, besides anything. */
  offer(name, values) {
    fillSelect(this.selects[name], name, values.map((value) => [value, value]), this.#filter[name]);
  }

  show(filter) {
    this.#filter = filter;
    for (const box of this.boxes) box.checked = filter.status.includes(box.value);
    for (const [name, field] of Object.entries(this.selects)) choose(field, filter[name]);
    for (const [name, field] of Object.entries(this.texts)) {
      if (field !== document.activeElement) field.value = filter[name];
    }
    this.between.hidden = filter.since !== BETWEEN;
    const set = narrowed(filter);
    this.clear.hidden = !set;
    fill(this.toggle, icon("filter"), set ? `Filters (${set})` : "Filters");
  }

  #built() {
    const chips = h("fieldset", { class: "chips" },
      h("legend", { class: "hidden" }, "Status"),
      this.boxes.map((box) => h("label", { class: `chip status-${box.value}` },
        box, icon(box.value), statusWord(box.value))));
    this.between = h("div", { class: "filter-between" },
      field("From", this.texts.after), field("To", this.texts.before));
    this.fields = h("div", { class: "filter-fields", id: "filter-fields" },
      field("Saga", this.selects.saga), field("Agent", this.selects.agent), field("Owner", this.texts.owner),
      field("Attribute", this.texts.attribute), field("Created", this.selects.since), this.between);
    this.toggle = h("button", {
      class: "button filter-toggle", type: "button", "aria-expanded": "false",
      "aria-controls": "filter-fields", onclick: () => this.#fold(),
    });
    return h("form", {
      class: "panel filters", role: "search", "aria-label": "Tasks",
      onchange: () => this.#read(), oninput: (event) => this.#typed(event),
      onsubmit: (event) => { event.preventDefault(); this.#read(); },
    }, h("div", { class: "filter-line" }, chips, this.toggle, this.clear), this.fields);
  }

  #fold() {
    const open = this.fields.classList.toggle("is-open");
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  #typed(event) {
    clearTimeout(this.#typing);
    if (Object.values(this.texts).includes(event.target)) {
      this.#typing = setTimeout(() => this.#read(), TYPED_FOR_MS);
    }
  }

  #read() {
    clearTimeout(this.#typing);
    const valid = (input) => (input.checkValidity() ? input.value.trim() : "");
    const filter = {
      status: this.boxes.filter((box) => box.checked).map((box) => box.value),
      ...Object.fromEntries(Object.entries(this.selects).map(([name, each]) => [name, each.value])),
      ...Object.fromEntries(Object.entries(this.texts).map(([name, each]) => [name, valid(each)])),
    };
    if (JSON.stringify(filter) === JSON.stringify({ ...filter, ...this.#filter })) return;
    this.changed(filter);
  }

  #clear() {
    for (const input of Object.values(this.texts)) input.value = "";
    for (const each of Object.values(this.selects)) each.value = "";
    for (const box of this.boxes) box.checked = false;
    this.#read();
    this.boxes[0].focus();
  }
}

function field(name, input) {
  return h("label", { class: "field" }, h("span", {}, name), input);
}

function select(name, choices) {
  return fillSelect(h("select", { name }), name, choices, "");
}

function fillSelect(element, name, choices, chosen) {
  fill(element, h("option", { value: "" }, ANY[name]),
    choices.map(([value, words]) => h("option", { value }, words)));
  choose(element, chosen);
  return element;
}

/** Also what is not among the choices: an address may name anything. */
function choose(element, value) {
  if (value && ![...element.options].some((option) => option.value === value)) {
    element.append(h("option", { value }, value));
  }
  element.value = value;
}
