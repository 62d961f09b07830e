// A step's journal: what its handler called, what came back, what it noted.
//
//   await journalView({ task, step, signal }) -> an element with the entries of both phases

import { read } from "./api.js";
import { h } from "./dom.js";
import { count, duration, when } from "./format.js";
import { jsonView } from "./json_view.js";

const PAGE = 100;
const PHASES = [["action", "Action"], ["compensation", "Undoing it"]];
const WORDS = {
  intent: "is called", result: "answered", failure: "failed", checkpoint: "Checkpoint", note: "Note",
  void: "did not happen",
};

export async function journalView({ task, step, signal }) {
  const found = [];
  for (const [phase, title] of PHASES) {
    const page = await read("journal.read", { task, step, phase, limit: PAGE }, { signal });
    if (page.entries.length) found.push([title, { task, step, phase }, page]);
  }
  if (!found.length) return h("p", { class: "muted" }, "Nothing is written in its journal");
  return h("div", { class: "stack" }, found.map(([title, of, page]) =>
    h("div", {}, found.length > 1 && h("h3", {}, title), entries(of, page, signal))));
}

function entries(of, page, signal) {
  const list = h("ol", { class: "journal" });
  const button = h("button", { class: "button", type: "button" }, "Show more");
  const add = ({ entries: some, more }) => {
    list.append(...some.map(entryView));
    button.hidden = !more;
    button.onclick = async () => {
      button.disabled = true;
      add(await read("journal.read", { ...of, after: some.at(-1).seq, limit: PAGE }, { signal }));
      button.disabled = false;
    };
  };
  add(page);
  return h("div", {}, list, button);
}

function entryView(entry) {
  const about = entry.tool ? [h("code", {}, entry.tool), " ", WORDS[entry.kind]] : WORDS[entry.kind];
  const told = [
    entry.took_ms > 0 && duration(entry.took_ms),
    entry.usage?.model,
    entry.usage && `${count(entry.usage.input_tokens + entry.usage.output_tokens)} tokens, $${entry.usage.cost_usd}`,
    entry.by && `by ${entry.by}`,
    entry.reason,
  ].filter(Boolean).join(", ");
  return h("li", {},
    h("span", { class: "journal-seq" }, `No. ${entry.seq}`),
    h("div", { class: "stack" },
      h("div", { class: "journal-head" }, h("span", {}, about),
        entry.sensitive && h("span", { class: "tag" }, "sensitive"),
        entry.model && h("span", { class: "tag" }, "model"),
        h("span", { class: "muted" }, when(entry.at), told && `, ${told}`)),
      entry.data !== null && entry.data !== undefined && jsonView(entry.data, { label: `Entry ${entry.seq}` }),
      entry.dataref && h("p", { class: "masked" }, `Kept apart because of its size: ${count(entry.size)} bytes`)));
}
