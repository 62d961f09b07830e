// Acting on many tasks: those that are chosen in a list, or all that its filter matches. What would
// happen is found out first (a dry run), shown, and done only after a confirmation.
//
//   const bar = batchBar({ selection, requestOf, narrowed, done })
//     selection   Selection of task ids;  requestOf() the filter, as fields of `list`
//     narrowed()  whether there is a filter: everything there is cannot be acted on in one go
//     done()      told when something was done
//   bar.element;  bar.shows(rows);  bar.reset()

import { ACTS } from "./act_words.js";
import { batchDialog } from "./batch_dialog.js";
import { allThatMatch, chosenOnes } from "./batch_run.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";

const WORDS = ["retry", "resume", "cancel"];

export function batchBar(wanted) {
  return new BatchBar(wanted);
}

class BatchBar {
  #everything = false;
  #rows = 0;

  constructor(wanted) {
    Object.assign(this, wanted);
    this.words = h("span", { class: "batch-words", role: "status" });
    this.all = h("button", { class: "button button-small", type: "button", onclick: () => this.#takeAll() },
      "All that match the filter");
    this.buttons = WORDS.map((word) => h("button", {
      class: `button button-small${ACTS[word].danger ? " button-danger" : ""}`, type: "button",
      onclick: () => this.#open(word),
    }, icon(ACTS[word].icon), ACTS[word].label));
    this.none = h("button", {
      class: "button-quiet button-small", type: "button", "aria-label": "Choose none", onclick: () => this.#clear(),
    }, icon("close"));
    this.element = h("div", { class: "batch", role: "group", "aria-label": "Act on many tasks" },
      this.words, this.all, this.buttons, this.none);
    this.selection.addEventListener("change", () => {
      this.#everything = false;
      this.#draw();
    });
    this.#draw();
  }

  shows(rows) {
    this.#rows = rows;
    this.#draw();
  }

  reset() {
    this.#everything = false;
    this.#draw();
  }

  #takeAll() {
    this.#everything = true;
    this.#draw();
    this.buttons[0].focus();
  }

  #clear() {
    this.selection.clear();
    this.reset();
  }

  #draw() {
    const chosen = this.selection.chosen.size;
    const some = this.#everything || chosen > 0;
    const words = this.#everything ? "All that match" : chosen ? `${count(chosen)} chosen` : "Choose tasks to act on them";
    if (this.words.textContent !== words) fill(this.words, words);
    this.element.toggleAttribute("data-some", some);
    this.all.hidden = this.#everything || !this.narrowed() || !this.#rows;
    for (const button of [...this.buttons, this.none]) button.hidden = !some;
  }

  async #open(word) {
    const run = this.#everything
      ? allThatMatch(word, this.requestOf())
      : chosenOnes(word, [...this.selection.chosen]);
    if (await batchDialog(word, run)) {
      this.#clear();
      this.done();
    }
  }
}
