// The dialog of an act on many tasks: what would happen, a note, the progress, what came of it.
//
//   await batchDialog("cancel", run)   true if anything was done; see batch_run.js for `run`

import { ACTS } from "./act_words.js";
import { ApiError } from "./api.js";
import { dialog } from "./dialog.js";
import { fill, h } from "./dom.js";
import { count } from "./format.js";

const REASONS_SHOWN = 5;
const DID = { cancel: "cancelled", retry: "tried again", resume: "resumed" };

export async function batchDialog(word, run) {
  const shown = new BatchDialog(word, run);
  await shown.closed;
  return shown.did;
}

class BatchDialog {
  did = false;
  #stop = new AbortController();

  constructor(word, run) {
    Object.assign(this, { word, run });
    this.told = h("div", { class: "batch-told", role: "status" });
    this.bar = h("progress", { class: "batch-progress", "aria-label": "Progress", max: 1, value: 0, hidden: true });
    this.reason = h("textarea", {
      name: "reason", rows: 2, maxlength: 500, placeholder: "Why? It is kept in each history.",
    });
    this.back = h("button", { class: "button", type: "button", onclick: () => this.shown.close() }, "Back");
    this.submit = h("button", {
      class: ACTS[word].danger ? "button button-danger" : "button button-main", type: "submit", disabled: true,
    }, ACTS[word].label);
    const form = h("form", { class: "dialog-body", onsubmit: (event) => this.#submitted(event) },
      this.told, this.bar,
      h("label", { class: "field" }, h("span", {}, "Note (optional)"), this.reason),
      h("footer", { class: "dialog-foot" }, this.back, this.submit));
    this.shown = dialog({ title: `${ACTS[word].label}: many tasks`, content: form, onclose: () => this.#stop.abort() });
    this.closed = this.shown.closed;
    this.reason.focus();
    this.#look();
  }

  async #look() {
    fill(this.told, h("p", {}, "Looking at what that would do …"));
    await this.#trying(async (signal) => {
      this.found = await this.run.look(signal, () => {});
      const { willing, matched, refused } = this.found;
      this.submit.disabled = willing === 0;
      fill(this.submit, `${ACTS[this.word].label} ${tasks(willing)}`);
      fill(this.told, h("p", {}, h("b", {}, `${tasks(willing)} would be ${DID[this.word]}`),
        matched > willing ? ` of ${count(matched)} that match.` : "."), reasons(refused, "would be refused"));
    });
  }

  async #submitted(event) {
    event.preventDefault();
    this.submit.disabled = true;
    this.reason.disabled = true;
    this.bar.hidden = false;
    fill(this.back, "Stop");
    const all = this.found.willing + this.found.refused.length;
    await this.#trying(async (signal) => {
      const { willing, refused } = await this.run.go(this.reason.value.trim(), signal, (done, no) => {
        this.did ||= done > 0;
        this.bar.value = all ? (done + no) / all : 1;
        fill(this.told, h("p", {}, `${count(done)} of ${count(this.found.willing)} ${DID[this.word]} …`));
      });
      this.bar.value = 1;
      fill(this.told, h("p", {}, h("b", {}, `${tasks(willing)} ${DID[this.word]}.`)), reasons(refused, "refused"));
    });
    this.submit.hidden = true;
    fill(this.back, "Close");
    this.back.focus();
  }

  async #trying(work) {
    try {
      await work(this.#stop.signal);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      fill(this.told, h("p", { class: "problem-text", role: "alert" }, error.message));
    }
  }
}

function reasons(refused, words) {
  if (!refused.length) return null;
  const numbers = new Map();
  for (const { reason } of refused) numbers.set(reason, (numbers.get(reason) ?? 0) + 1);
  const most = [...numbers].sort((one, other) => other[1] - one[1]);
  const rest = most.slice(REASONS_SHOWN).reduce((total, [, number]) => total + number, 0);
  return h("div", { class: "batch-refused" },
    h("p", {}, `${tasks(refused.length)} ${words}:`),
    h("ul", {}, most.slice(0, REASONS_SHOWN).map(([reason, number]) =>
      h("li", {}, h("b", {}, `${count(number)} × `), reason)), rest > 0 && h("li", {}, `${count(rest)} for other reasons`)));
}

function tasks(number) {
  return `${count(number)} ${number === 1 ? "task" : "tasks"}`;
}
