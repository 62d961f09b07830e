// Acting on a task: what is asked for first, and how it is told what came of it.
//
// A page may use:
//   await carryOut(word, operation, body)     asks the coordinator; tells how it went; true if done
//   await ask(word, { title, text, fields, note })   a confirmation (dialog.js) for an act by its word

import { announce } from "./announce.js";
import { act, ApiError } from "./api.js";
import { confirm } from "./dialog.js";
import { ACTS } from "./act_words.js";

export function ask(word, options = {}) {
  const { title, action, danger = false } = ACTS[word];
  return confirm({ title, action, danger, note: "optional", ...options });
}

export async function carryOut(word, operation, body) {
  try {
    await act(operation, body);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    announce(`${ACTS[word].label}: not done. ${error.message}`, { tone: "bad" });
    return false;
  }
  announce(`${ACTS[word].label}: done.`);
  return true;
}
