// Keyboard shortcuts: single keys outside of fields, and pairs that begin with g ("go").
//
// A page may use:
//   context.keys({ "x": ["Select the task in focus", action] })   while the page is shown
// They are listed by ? together with those of the shell.

import { dialog } from "./dialog.js";
import { h } from "./dom.js";

const PAIR_WITHIN_MS = 1_200;

export class Keys {
  #layers = new Map(); // title -> { keys: [words, action] }
  #first = "";
  #timer;

  constructor() {
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Shortcuts under a title, until `signal` is aborted. */
  add(title, shortcuts, signal) {
    this.#layers.set(title, { ...this.#layers.get(title), ...shortcuts });
    signal?.addEventListener("abort", () => this.#layers.delete(title), { once: true });
  }

  help() {
    if (document.querySelector("dialog[open]")) return;
    const lists = [...this.#layers].map(([title, shortcuts]) => h("section", {},
      h("h3", {}, title),
      h("dl", { class: "keys" }, Object.entries(shortcuts).map(([keys, [words]]) => [
        h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, words),
      ]))));
    dialog({ title: "Keyboard shortcuts", content: h("div", { class: "dialog-body keys-lists" }, lists) });
  }

  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const pair = this.#first ? `${this.#first} ${event.key}` : event.key;
    this.#first = "";
    clearTimeout(this.#timer);
    const found = this.#find(pair) ?? this.#find(event.key);
    if (found) {
      event.preventDefault();
      found(event);
    } else if (event.key === "g") {
      this.#first = "g";
      this.#timer = setTimeout(() => { this.#first = ""; }, PAIR_WITHIN_MS);
    }
  }

  #find(keys) {
    for (const shortcuts of [...this.#layers.values()].reverse()) {
      if (Object.hasOwn(shortcuts, keys)) return shortcuts[keys][1];
    }
    return null;
  }
}

function isTyping(target) {
  if (target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName)) return true;
  return target.tagName === "INPUT" && !["checkbox", "radio", "button"].includes(target.type);
}
