// Dead letters: what was refused and why, the original, and replaying or dropping it.

import { announce } from "../announce.js";
import { act, ApiError, read } from "../api.js";
import { check } from "../controls.js";
import { confirm } from "../dialog.js";
import { fill, h } from "../dom.js";
import { age } from "../format.js";
import { fresh } from "../fresh.js";
import { sizeText } from "../json_view.js";
import { showLetter } from "../dead_letter.js";
import { fateMark, KINDS, LETTER_ACTS } from "../letter_words.js";
import { emptyView } from "../states.js";
import { rowKeys, table } from "../table.js";

const PAGE = 50;
const EVERY_MS = 10_000;

export async function page(context) {
  context.title("Dead letters");
  let open = null; // the letter that is looked at
  const list = letterTable();
  const older = h("a", { class: "button", hidden: true }, "Older");
  const newest = h("a", { class: "button", href: "/dead" }, "Newest");
  const none = h("div", { hidden: true });
  const filters = h("div", { class: "button-row" });
  const content = h("section", { class: "panel", "aria-label": "Dead letters" }, list.element, none,
    h("div", { class: "pager" }, h("span", {}, "Kept for 30 days"), newest, older));
  context.view.append(h("header", { class: "page-head" }, h("h1", {}, "Dead letters"), filters), content);
  context.keys(rowKeys(list));
  list.loading(5);

  const decide = async (what, letter) => {
    const { title, action, text, danger } = LETTER_ACTS[what];
    const answer = await confirm({ title: `${title} ${letter.sequence}?`, text: text(letter), action, danger, note: "optional" });
    if (!answer) return false;
    try {
      const receipt = await act(`dead.${what}`, { sequence: letter.sequence, reason: answer.reason }, { signal: context.signal });
      announce(`Letter ${letter.sequence}: ${receipt.fate.fate}`);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      announce(`Letter ${letter.sequence}: not done. ${error.message}`, { tone: "bad" });
      return false;
    } finally {
      live.reload();
    }
  };

  const look = (query) => {
    const sequence = Number(query.get("letter")) || null;
    if (open?.sequence !== sequence) {
      open?.close();
      open = sequence && showLetter(sequence, { context, decide, closed: () => closed(sequence) });
    }
    fill(filters, kindField(context, query), check({
      label: "With those dealt with", on: query.has("all"), change: (on) => context.amend({ all: on ? "1" : null, cursor: null }),
    }));
    newest.hidden = !query.has("cursor");
  };
  const closed = (sequence) => {
    if (Number(context.query.get("letter")) === sequence) context.amend({ letter: null }, { replace: true });
  };

  const live = fresh(context, {
    load: (signal) => read("dead.list", asked(context.query), { signal }),
    draw({ letters, cursor }) {
      list.update(letters.map((letter) => ({ ...letter, href: `/dead${withLetter(letter.sequence)}` })));
      list.element.hidden = !letters.length;
      none.hidden = letters.length > 0;
      fill(none, !letters.length && noLetters(context.query, cursor));
      older.hidden = !cursor;
      if (cursor) older.href = `/dead${withCursor(cursor)}`;
    },
    content,
    feed: null,
    everyMs: EVERY_MS,
  });
  look(context.query);
  let last = listQuery(context.query);
  context.onQuery = (query) => {
    look(query);
    if (listQuery(query) !== last) live.reload();
    last = listQuery(query);
  };
}

function asked(query) {
  return { kind: query.get("kind"), dealt_with: query.has("all") || null, cursor: query.get("cursor"), limit: PAGE };
}

function listQuery(query) {
  return JSON.stringify(asked(query));
}

function withLetter(sequence) {
  const query = new URLSearchParams(location.search);
  query.set("letter", sequence);
  return `?${query}`;
}

function withCursor(cursor) {
  const query = new URLSearchParams(location.search);
  query.delete("letter");
  query.set("cursor", cursor);
  return `?${query}`;
}

function kindField(context, query) {
  const options = [["", "All but advisories"], ...Object.entries(KINDS)];
  return h("label", { class: "field-inline" }, h("span", { class: "hidden" }, "Kind"), h("select", {
    onchange: (event) => context.amend({ kind: event.target.value || null, cursor: null }),
  }, options.map(([kind, words]) => h("option", { value: kind, selected: kind === (query.get("kind") ?? "") }, words))));
}

function letterTable() {
  return table({
    caption: "Dead letters",
    keyOf: (letter) => letter.sequence,
    columns: [
      { label: "No.", class: "number narrow", cell: (letter) => h("a", { class: "row-link", href: letter.href }, String(letter.sequence)) },
      { label: "Kind", class: "narrow", cell: (letter) => KINDS[letter.kind] ?? letter.kind },
      { label: "Refused because", class: "wide", cell: (letter) => letter.reason },
      { label: "Subject", class: "wide-subject", cell: (letter) => h("code", {}, letter.subject) },
      { label: "Size", class: "number narrow", cell: (letter) => sizeText(letter.size) },
      { label: "At", class: "quiet", cell: (letter) => age(letter.at) },
      { label: "Became", class: "narrow", cell: (letter) => fateMark(letter) },
    ],
  });
}

function noLetters(query, cursor) {
  if (cursor) return emptyView({ title: "None of that kind on this page", text: "There are older ones." });
  const narrowed = query.has("kind") || query.has("cursor");
  return emptyView({
    title: narrowed ? "No letter of that kind" : "Nothing was refused",
    text: narrowed ? "" : "What a coordinator or an agent cannot take is kept here, with the reason.",
  });
}
