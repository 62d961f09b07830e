// Dead letters in words.
//
//   KINDS          kind -> words
//   LETTER_ACTS    replay, drop: what their dialog says
//   fateMark(letter)   an element: what became of it, or "open"

import { h } from "./dom.js";
import { icon } from "./icons.js";

const REPLAY_WITHIN_MS = 60_000; // then its coordinator is not there any more

export const KINDS = {
  submission: "Submission",
  event: "Event of an agent",
  command: "Command",
  advisory: "Advisory",
  unknown: "Not known",
};

const FATES = {
  replaying: ["running", "Being replayed"],
  replayed: ["completed", "Replayed"],
  dropped: ["skipped", "Dropped"],
};

export const LETTER_ACTS = {
  replay: {
    title: "Replay letter", label: "Replay", icon: "retry", action: "Replay", danger: false,
    text: ({ kind, subject }) => `The ${kind === "event" ? "event" : "submission"} is published again on ${subject}, as it came. ` +
      "What still cannot be accepted becomes another letter. A task that was accepted meanwhile is not begun twice.",
  },
  drop: {
    title: "Drop letter", label: "Drop", icon: "reject", action: "Drop", danger: true,
    text: () => "It counts as dealt with and leaves this list. The message itself is kept until its 30 days are over.",
  },
};

export function fateMark({ fate, kept }) {
  if (fate?.fate === "replaying" && Date.now() - Date.parse(fate.at) > REPLAY_WITHIN_MS) {
    return h("span", { class: "status status-unknown" }, icon("unknown"), "Replay did not end");
  }
  if (!fate) return h("span", { class: "muted", title: kept || null }, kept ? "cannot be replayed" : "open");
  const [outline, words] = FATES[fate.fate];
  return h("span", { class: `status status-${outline}` }, icon(outline), words);
}
