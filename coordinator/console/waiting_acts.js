// Acting on what waits for a person: the acts that the coordinator says are open, each with a note.
//
//   await actOn("approve", waiting, context) -> whether it was done; `waiting` as `parked` gives it
//   openActsOn(waiting)   those that the token may do, too

import { askAct } from "./act_dialog.js";
import { ask, carryOut } from "./acts.js";
import { announce } from "./announce.js";
import { ApiError, read } from "./api.js";
import { h } from "./dom.js";
import { may } from "./me.js";

export function openActsOn(waiting) {
  return waiting.actions.filter((word) => may(word === "settle" && waiting.kind === "unsettled" ? "journal.settle" : word));
}

export async function actOn(word, waiting, context) {
  if (waiting.kind === "gate") return decide(word, waiting);
  if (waiting.kind === "unsettled" && word === "settle") return settleCall(waiting);
  try {
    return await askAct(word, { ...(await factsOf(waiting, context.signal)), step: waiting.step }, context);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    announce(error.message, { tone: "bad" });
    return false;
  }
}

/** What the words on what will happen are made of; with fewer of them where the history is not whole. */
async function factsOf({ task }, signal) {
  const [view, timeline] = await Promise.all([
    read("get", { task }, { signal }), read("timeline", { task }, { signal }).catch(withoutHistory),
  ]);
  const { definition } = await read("saga.get", { name: view.saga, version: view.saga_version }, { signal });
  return { task: view, timeline, definition };
}

function withoutHistory(error) {
  if (!(error instanceof ApiError)) throw error;
  return { steps: [] };
}

async function decide(word, { task, tool, step, invocation }) {
  const text = word === "approve"
    ? `Step ${step} may call ${tool} once, with exactly these arguments.`
    : `The call of ${tool} does not happen; step ${step} is told so.`;
  const answer = await ask(word, { title: `${word === "approve" ? "Approve" : "Reject"} the call of ${tool}?`, text });
  return answer !== null && carryOut(word, word, { task, invocation, reason: answer.reason });
}

async function settleCall({ task, step, phase, key, tool }) {
  const choice = (value, words) => h("label", {},
    h("input", { type: "radio", name: "outcome", value, required: true }), h("span", {}, words));
  const result = h("textarea", { name: "result", rows: 2, class: "code", spellcheck: "false" });
  result.addEventListener("input", () => result.setCustomValidity(isJson(result.value) ? "" : "This is not JSON."));
  const answer = await ask("settle", {
    title: `Did the call of ${tool} happen?`,
    text: "Look it up where it would have happened. Then the task can be resumed.",
    fields: [
      h("fieldset", { class: "radios" }, h("legend", {}, "What really happened?"),
        choice("happened", "It happened"), choice("did_not_happen", "It did not: nothing was left behind")),
      h("label", { class: "field" }, h("span", {}, "Its result, as JSON, if it happened (optional)"), result),
    ],
  });
  if (answer === null) return false;
  const text = answer.form.get("result").trim();
  return carryOut("settle", "journal.settle", {
    task, step, phase, key, outcome: answer.form.get("outcome"), reason: answer.reason,
    ...(text ? { result: JSON.parse(text) } : {}),
  });
}

function isJson(text) {
  try {
    return !text.trim() || JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}
