// Statuses of tasks and steps, told by a word, an outline and a colour, in this order of importance.
//
// A page may use:
//   statusMark("parked")     an element: outline and word
//   statusWord("failed_to_compensate")   "Failed to compensate"
//   TASK_STATUSES            in the order in which lists and filters show them
//   OPEN, STUCK              those not ended; those that wait for a person

import { h } from "./dom.js";
import { icon } from "./icons.js";

export const TASK_STATUSES = [
  "running", "compensating", "parked", "failed_to_compensate", "succeeded", "compensated",
];
export const STUCK = new Set(["parked", "failed_to_compensate"]);
export const OPEN = new Set(["running", "compensating", "parked", "failed_to_compensate"]);

export function statusWord(status) {
  const words = status.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

export function statusMark(status) {
  return h("span", { class: `status status-${status}` }, icon(status), statusWord(status));
}
