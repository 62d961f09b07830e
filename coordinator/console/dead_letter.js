// One dead letter in a dialog: why it was refused, the message as it was, and what can be done.
//
//   const open = showLetter(sequence, { context, decide, closed });   open.close();  open.sequence
//     decide("replay" | "drop", letter) -> whether it was done;  closed(): told once it is away

import { read } from "./api.js";
import { facts } from "./controls.js";
import { dialog } from "./dialog.js";
import { fill, h } from "./dom.js";
import { when } from "./format.js";
import { icon } from "./icons.js";
import { jsonView, sizeText } from "./json_view.js";
import { lookOnly, may } from "./me.js";
import { fateMark, KINDS, LETTER_ACTS } from "./letter_words.js";
import { problemView, skeleton } from "./states.js";
import { taskLink } from "./task_head.js";

export function showLetter(sequence, { context, decide, closed }) {
  const body = h("div", { class: "dialog-body" }, skeleton(5));
  const shown = dialog({ title: `Letter ${sequence}`, content: body, wide: true });
  shown.closed.then(closed);
  context.signal.addEventListener("abort", () => shown.close(), { once: true });
  const load = async () => {
    try {
      const letter = await read("dead.get", { sequence }, { signal: context.signal });
      fill(body, letterView(letter, async (what) => (await decide(what, letter)) && load()));
    } catch (problem) {
      if (!context.signal.aborted) fill(body, problemView(problem, { retry: load }));
    }
  };
  load();
  return { sequence, close: shown.close };
}

function letterView(letter, press) {
  const acts = letter.fate && letter.fate.fate !== "replaying" ? [] : [...(letter.kept ? [] : ["replay"]), "drop"];
  return [
    h("div", { class: "reason" }, icon("alert"), h("div", {}, letter.reason)),
    facts([
      ["Kind", KINDS[letter.kind]],
      ["Subject", h("code", {}, letter.subject)],
      ["Refused", when(letter.at)],
      ["Agent", letter.agent && h("a", { href: "/agents" }, letter.agent)],
      ["Task", letter.task && taskLink(letter.task)],
      ["Size", sizeText(letter.size)],
      ["Became", fateView(letter)],
      ["Not to be replayed", letter.kept],
    ]),
    Object.keys(letter.headers).length > 0 && h("div", {}, h("h3", {}, "Headers"),
      facts(Object.entries(letter.headers).map(([name, value]) => [name, h("code", {}, value)]))),
    h("div", {}, h("h3", {}, letter.whole ? "Message" : "Message (its beginning)"), original(letter)),
    acts.length > 0 && lookOnly(...acts.map((what) => `dead.${what}`)),
    acts.length > 0 && h("footer", { class: "dialog-foot" }, acts.filter((what) => may(`dead.${what}`)).map((what) => h("button", {
      class: `button ${LETTER_ACTS[what].danger ? "button-danger" : "button-main"}`, type: "button", onclick: () => press(what),
    }, icon(LETTER_ACTS[what].icon), LETTER_ACTS[what].label))),
  ];
}

function fateView({ fate, ...letter }) {
  if (!fate) return fateMark(letter);
  return [fateMark({ fate }), " ", when(fate.at), fate.by && ` by ${fate.by}`, fate.reason && `: ${fate.reason}`];
}

function original({ body, body_base64: encoded }) {
  if (body === null && encoded === null) return h("p", { class: "muted" }, "It is not kept");
  if (body !== null) {
    try {
      return jsonView(JSON.parse(body), { label: "Message" });
    } catch {
      return textView(body, "Message");
    }
  }
  return [h("p", { class: "muted" }, "No text; in base64:"), textView(encoded, "Message in base64")];
}

function textView(text, label) {
  return h("pre", { class: "json-text", tabindex: "0", role: "region", "aria-label": label }, text);
}
