// Telling what happened, to eyes and to screen readers, without moving the focus.
//
// A page may use:
//   announce("3 tasks will be tried again")              a note that goes by itself
//   announce("Not done: …", { tone: "bad" })             one that stays until it is closed
//   say("12 newer tasks")                                for screen readers only

import { fill, h } from "./dom.js";
import { icon } from "./icons.js";

const GONE_AFTER_MS = 6_000;

const polite = h("div", { class: "hidden", "aria-live": "polite", role: "status" });
const notes = h("div", { class: "notes", role: "region", "aria-label": "Notes" });

export function announcer() {
  return [polite, notes];
}

export function say(text) {
  fill(polite, text);
}

export function announce(text, { tone = "good" } = {}) {
  const close = h("button", {
    class: "button-quiet", type: "button", "aria-label": "Close", onclick: () => note.remove(),
  }, icon("close"));
  const note = h("div", { class: `note note-${tone}` },
    icon(tone === "good" ? "succeeded" : "alert"), h("p", {}, text), close);
  notes.append(note);
  say(text);
  if (tone === "good") setTimeout(() => note.remove(), GONE_AFTER_MS);
}
