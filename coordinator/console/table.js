// Tables whose rows are brought up to date in place: what has the focus, or is selected, stays so.
// On a narrow screen each row becomes a card (see table.css); for screen readers it stays a table.
//
// A page may use:
//   const list = table({
//     caption: "Tasks",                      for screen readers
//     columns: [{ label: "Status", cell: (row) => statusMark(row.status), class: "narrow" }, …],
//     keyOf: (row) => row.task,
//     selection: new Selection(),            optional: a first column of boxes
//     marks: (row) => "is-new",              optional: classes for a row
//   });
//   list.element;  list.update(rows);  list.loading(10)
// Give one link of each row the class `row-link`: the whole row then leads there, and j and k
// (rowKeys(list)) go from one to the next. Column classes: number, narrow, wide, quiet, actions.
//
//   selection.chosen   Set of keys;  selection.clear();  "change" events

import { fill, h } from "./dom.js";

export class Selection extends EventTarget {
  chosen = new Set();

  set(key, on) {
    if (on) this.chosen.add(key);
    else this.chosen.delete(key);
    this.dispatchEvent(new Event("change"));
  }

  setAll(keys, on) {
    for (const key of keys) this.chosen[on ? "add" : "delete"](key);
    this.dispatchEvent(new Event("change"));
  }

  clear() {
    this.setAll([...this.chosen], false);
  }
}

export function table(wanted) {
  return new Table(wanted);
}

class Table {
  #rows = new Map(); // key -> { element, box, text }

  constructor({ caption, columns, keyOf, selection = null, marks = () => "" }) {
    Object.assign(this, { columns, keyOf, selection, marks });
    this.body = h("tbody", { role: "rowgroup" });
    this.all = selection && h("input", {
      type: "checkbox", "aria-label": "Select all on this page",
      onchange: (event) => selection.setAll(this.#rows.keys(), event.target.checked),
    });
    this.element = h("table", { class: "table", role: "table" },
      h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
        selection && h("th", { class: "box", role: "columnheader", scope: "col" }, this.all),
        columns.map(({ label, class: kind }) => h("th", {
          class: kind, role: "columnheader", scope: "col",
        }, label)))),
      this.body);
    selection?.addEventListener("change", () => this.#showSelection());
  }

  update(rows) {
    this.element.removeAttribute("aria-busy");
    const before = this.#rows;
    this.#rows = new Map(rows.map((row) => {
      const key = this.keyOf(row);
      return [key, this.#brought(before.get(key), row, key)];
    }));
    const wanted = [...this.#rows.values()].map(({ element }) => element);
    arrange(this.body, wanted);
    this.#showSelection();
  }

  loading(lines) {
    this.element.setAttribute("aria-busy", "true");
    this.#rows = new Map();
    const span = this.columns.length + (this.selection ? 1 : 0);
    fill(this.body, Array.from({ length: lines }, () => h("tr", { class: "row-loading", role: "row" },
      h("td", { colspan: span, role: "cell" }, h("div", { class: "skeleton-line" })))));
  }

  #brought(known, row, key) {
    const text = JSON.stringify(row);
    if (known?.text === text) return known;
    const place = known && placeOfFocus(known.element);
    const found = known ?? this.#made(row, key);
    const cells = this.columns.map((column) => cellOf(column, row));
    fill(found.element, found.box && h("td", { class: "box", role: "cell" }, found.box), cells);
    found.element.className = this.marks(row);
    found.text = text;
    if (place !== null && place !== undefined) focusables(found.element)[place]?.focus();
    return found;
  }

  #made(row, key) {
    const box = this.selection && h("input", {
      type: "checkbox", "aria-label": `Select ${key}`,
      onchange: (event) => this.selection.set(key, event.target.checked),
    });
    return { element: h("tr", { role: "row" }), box };
  }

  #showSelection() {
    if (!this.selection) return;
    const { chosen } = this.selection;
    for (const [key, { element, box }] of this.#rows) {
      box.checked = chosen.has(key);
      element.toggleAttribute("data-chosen", chosen.has(key));
    }
    const here = [...this.#rows.keys()].filter((key) => chosen.has(key)).length;
    this.all.checked = here > 0 && here === this.#rows.size;
    this.all.indeterminate = here > 0 && here < this.#rows.size;
  }
}

/** Shortcuts that go through the rows; for context.keys. */
export function rowKeys(list) {
  const step = (by) => {
    const links = [...list.body.querySelectorAll(".row-link")];
    const row = document.activeElement.closest?.("tr");
    const at = links.findIndex((link) => row?.contains(link));
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  };
  const choose = () => document.activeElement.closest?.("tr")?.querySelector(".box input")?.click();
  return {
    j: ["Next row", () => step(1)],
    k: ["Previous row", () => step(-1)],
    ...(list.selection ? { x: ["Select the row", choose] } : {}),
  };
}

/** Puts the rows in order, touching only those that are elsewhere. */
function arrange(body, wanted) {
  const kept = new Set(wanted);
  for (const child of [...body.children]) if (!kept.has(child)) child.remove();
  wanted.forEach((element, n) => {
    if (body.children[n] !== element) body.insertBefore(element, body.children[n] ?? null);
  });
}

function cellOf({ label, cell, class: kind = "" }, row) {
  const element = h("td", { class: kind, role: "cell", "data-label": label || null }, cell(row));
  if (!element.textContent) element.classList.add("is-empty"); // no line of a card for it
  return element;
}

function focusables(element) {
  return [...element.querySelectorAll("a[href], button, input, select")];
}

function placeOfFocus(element) {
  return element.contains(document.activeElement)
    ? focusables(element).indexOf(document.activeElement)
    : null;
}
