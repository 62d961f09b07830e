// The history of a task's page: every event, in order, in pages.
//
//   const part = taskHistory({ task, signal });  part.element
//   part.update(version)   there are so many events by now: fetches those that it has not

import { read } from "./api.js";
import { panel } from "./controls.js";
import { h } from "./dom.js";
import { when } from "./format.js";
import { eventName, eventSummary } from "./history_words.js";
import { jsonView } from "./json_view.js";
import { problemView } from "./states.js";

const PAGE = 100;
const STEP_CHARS = 24; // of a name that stays on one line

export function taskHistory(wanted) {
  return new TaskHistory(wanted);
}

class TaskHistory {
  #wanted = 0; // events that there are
  #shown = 0; // the number of the last one that is shown
  #limit = PAGE; // up to where they are fetched by themselves
  #fetching = false;

  constructor({ task, signal }) {
    Object.assign(this, { task, signal });
    this.body = h("tbody", { role: "rowgroup" });
    this.more = h("button", { class: "button", type: "button", onclick: () => this.#next() });
    this.note = h("div", {});
    this.foot = h("div", { class: "panel-foot", hidden: true }, this.more);
    this.element = panel({
      title: "History", id: "history",
      content: [
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All events" },
          h("table", { class: "table", role: "table" },
            h("caption", { class: "hidden" }, "Everything that happened to the task"),
            h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ["No.", "At", "Event", "Step", "Details"].map((label) =>
              h("th", { role: "columnheader", scope: "col" }, label)))),
            this.body)),
        this.note],
      foot: this.foot,
    }).element;
  }

  async update(version) {
    if (this.#shown === this.#wanted && this.#shown > 0) this.#limit = version;
    this.#wanted = Math.max(this.#wanted, version);
    await this.#fetch();
  }

  async #next() {
    this.#limit = this.#shown + PAGE;
    await this.#fetch();
  }

  async #fetch() {
    if (this.#fetching) return;
    this.#fetching = true;
    try {
      while (this.#shown < Math.min(this.#wanted, this.#limit)) {
        const asked = { task: this.task, after: this.#shown, limit: PAGE };
        const { entries } = await read("history", asked, { signal: this.signal });
        if (!entries.length) break;
        this.body.append(...entries.map(row));
        this.#shown = entries.at(-1).version;
        this.note.replaceChildren();
      }
    } catch (problem) {
      if (this.signal.aborted) return;
      this.note.replaceChildren(problemView(problem, { retry: () => this.#fetch() }));
    } finally {
      this.#fetching = false;
      const left = this.#wanted - this.#shown;
      this.foot.hidden = left <= 0;
      this.more.textContent = `Show ${Math.min(left, PAGE)} more of ${left}`;
    }
  }
}

function row({ version, type, at, data }) {
  const { step = "", ...rest } = data;
  return h("tr", { role: "row" },
    cell("No.", "narrow", String(version)),
    cell("At", "narrow", when(at)),
    cell("Event", "narrow", eventName(type)),
    cell("Step", step.length > STEP_CHARS ? "" : "narrow", step),
    cell("Details", "", details(rest, version)));
}

function cell(label, kind, value) {
  return h("td", { role: "cell", "data-label": label, class: `${kind} ${value ? "" : "is-empty"}` }, value);
}

function details(data, version) {
  if (!Object.keys(data).length) return "";
  const inside = h("div", {});
  const element = h("details", {
    class: "history-data",
    ontoggle: () => element.open && !inside.firstChild && inside.append(jsonView(data, { label: `Details of event ${version}` })),
  }, h("summary", {}, eventSummary(data)), inside);
  return element;
}
