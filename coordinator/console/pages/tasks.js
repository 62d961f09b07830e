// Tasks: a list narrowed by the address, live while nobody works with it, with acts on many at once.

import { say } from "../announce.js";
import { read } from "../api.js";
import { batchBar } from "../batch.js";
import { fill, h } from "../dom.js";
import { count, duration, elapsed, idText, when } from "../format.js";
import { fresh } from "../fresh.js";
import { icon } from "../icons.js";
import { lookOnly, may } from "../me.js";
import { emptyView } from "../states.js";
import { OPEN, statusMark } from "../status.js";
import { rowKeys, Selection, table } from "../table.js";
import { filterOf, narrowed, queryOf, requestOf } from "../task_filter.js";
import { filterForm } from "../task_filter_form.js";

const PAGE = 50;

const COLUMNS = [
  { label: "Status", class: "status-column", cell: (row) => statusMark(row.status) },
  {
    label: "Task", class: "narrow",
    cell: (row) => h("a", { class: "row-link", href: `/tasks/${row.task}` }, idText(row.task)),
  },
  {
    label: "Saga", class: "narrow",
    cell: (row) => h("span", {}, row.saga, " ", h("span", { class: "muted" }, `v${row.saga_version}`)),
  },
  { label: "Reason", class: "wide muted", cell: (row) => h("span", { title: row.reason }, row.reason || "") },
  { label: "Owner", class: "quiet", cell: (row) => row.owner },
  { label: "Created", class: "quiet", cell: (row) => when(row.created_at) },
  { label: "Took", class: "quiet number", cell: took },
];

export async function page(context) {
  context.title("Tasks");
  new Tasks(context).start();
}

class Tasks {
  #shown = [];
  #newest = null; // what came while the rows were held
  #cursor = null; // of the page after this one
  #over = false;

  constructor(context) {
    this.context = context;
    this.filter = filterOf(context.query);
    this.selection = new Selection();
    this.list = table({
      caption: "Tasks, newest first", columns: COLUMNS, keyOf: (row) => row.task,
      selection: may("batch") ? this.selection : null,
    });
    this.form = filterForm(this.filter, (filter) => context.amend(queryOf(filter)));
    this.batch = batchBar({
      selection: this.selection, requestOf: () => requestOf(this.filter, Date.now()), done: () => this.tasks.reload(),
      narrowed: () => narrowed(this.filter) > 0,
    });
    this.newer = h("button", { class: "button button-small newer", type: "button", onclick: () => this.#showNewest() });
    this.pager = h("nav", { class: "pager", "aria-label": "Pages of the list" });
    this.empty = h("div", {});
    this.panel = h("section", { class: "panel", "aria-label": "Tasks" },
      h("div", { class: "panel-head list-head" },
        may("batch") ? this.batch.element : lookOnly("cancel", "batch") ?? h("p", { class: "muted" }, "Your own tasks"), this.newer),
      this.list.element, this.empty, this.pager);
    this.content = h("div", {}, this.panel);
  }

  start() {
    const { context } = this;
    context.view.append(
      h("header", { class: "page-head" }, h("h1", {}, "Tasks")), this.form.element, this.content);
    context.onQuery = () => this.#asked();
    context.keys({
      ...rowKeys(this.list),
      "/": ["Narrow by attribute", () => this.form.texts.attribute.focus()],
      n: ["Next page", () => this.#cursor && this.#turn(this.#cursor)],
      p: ["Previous page", () => this.#page() && history.back()],
      ".": ["Show what is newer", () => this.#showNewest()],
    });
    this.list.element.addEventListener("pointerenter", () => { this.#over = true; });
    this.list.element.addEventListener("pointerleave", () => { this.#over = false; });
    this.list.loading(12);
    this.#draw([], null, true);
    this.#follow();
    this.#offer("saga", "saga.list", ({ sagas }) => sagas.map(({ name }) => name));
    this.#offer("agent", "agents", ({ agents }) => agents.map(({ agent }) => agent));
  }

  async #offer(name, operation, values) {
    const answer = await read(operation, {}, { signal: this.context.signal }).catch(() => null);
    if (answer) this.form.offer(name, [...new Set(values(answer))].sort());
  }

  #page() {
    return this.context.query.get("cursor");
  }

  #follow() {
    this.tasks = fresh(this.context, {
      load: (signal) => read("list", {
        ...requestOf(this.filter, Date.now()), limit: PAGE, cursor: this.#page(),
      }, { signal }).then((answer) => ({ ...answer, asked: location.search })),
      draw: (answer) => this.#came(answer),
      content: this.content,
      feed: this.filter.saga ? { saga: this.filter.saga } : {},
      heard: (news) => this.#heard(news),
    });
  }

  /** Another filter or page. */
  #asked() {
    this.filter = filterOf(this.context.query);
    this.form.show(this.filter);
    this.selection.clear();
    this.batch.reset();
    this.#shown = [];
    this.#newest = null;
    this.list.element.setAttribute("aria-busy", "true");
    this.tasks.stop();
    this.#follow();
  }

  #came({ tasks, cursor }) {
    const held = this.#shown.length > 0 && this.#held();
    if (!held || this.#page()) {
      this.#draw(tasks, cursor);
      return;
    }
    const latest = new Map(tasks.map((row) => [row.task, row]));
    const known = new Set(this.#shown.map((row) => row.task));
    const last = tasks.findLastIndex((row) => known.has(row.task));
    const unseen = tasks.slice(0, Math.max(last, 0)).filter((row) => !known.has(row.task)).length;
    const number = last < 0 ? `${PAGE}+` : unseen; // ids that are chosen by people sort anywhere
    this.#newest = number === 0 ? null : { tasks, cursor, number };
    this.#draw(this.#shown.map((row) => latest.get(row.task) ?? row), this.#cursor);
  }

  /** A row tells at once what became of its task. */
  #heard({ task, status, version, at }) {
    const known = this.#shown.findIndex((row) => row.task === task && row.version < version);
    if (known < 0) return;
    this.#shown[known] = { ...this.#shown[known], status, version, updated_at: at };
    this.list.update(this.#shown);
  }

  /** Rows stay where they are while somebody works with them. */
  #held() {
    return this.#over || this.selection.chosen.size > 0 ||
      this.list.body.contains(document.activeElement) || window.scrollY > 200;
  }

  #showNewest() {
    if (!this.#newest) return;
    const { tasks, cursor } = this.#newest;
    this.#newest = null;
    this.#draw(tasks, cursor);
    say("The newest tasks are shown");
  }

  #draw(rows, cursor, loading = false) {
    this.#shown = rows;
    this.#cursor = cursor;
    if (!loading) this.list.update(rows);
    this.list.element.hidden = !loading && rows.length === 0;
    fill(this.empty, loading || rows.length ? null : nothing(narrowed(this.filter)));
    this.newer.classList.toggle("is-there", this.#newest !== null);
    this.newer.disabled = this.#newest === null;
    fill(this.newer, this.#newest ? `${this.#newest.number} newer` : "");
    this.batch.shows(rows.length);
    this.#drawPager(rows);
  }

  #drawPager(rows) {
    const state = history.state?.at ?? 1;
    const first = (state - 1) * PAGE + 1;
    const words = rows.length ? `${count(first)} – ${count(first + rows.length - 1)}, newest first` : "";
    const button = (name, words, on, act) => h("button", {
      class: "button button-small", type: "button", disabled: !on, onclick: act,
    }, name === "left" && icon(name), words, name === "right" && icon(name));
    const place = document.activeElement?.closest?.(".pager") && document.activeElement.dataset.place;
    const buttons = [
      button("", "Newest", this.#page(), () => this.context.amend({ cursor: null })),
      button("left", "Newer", this.#page() && state > 1, () => history.back()),
      button("right", "Older", this.#cursor, () => this.#turn(this.#cursor)),
    ];
    buttons.forEach((each, n) => { each.dataset.place = n; });
    fill(this.pager, h("span", {}, words), buttons);
    if (place) (buttons[place].disabled ? buttons.find((each) => !each.disabled) : buttons[place])?.focus();
  }

  #turn(cursor) {
    this.context.amend({ cursor }, { state: { at: (history.state?.at ?? 1) + 1 } });
  }
}

function took(row) {
  if (OPEN.has(row.status)) return elapsed(row.created_at);
  return duration(Date.parse(row.updated_at) - Date.parse(row.created_at));
}

function nothing(filters) {
  if (filters) {
    return emptyView({
      title: "No task matches", text: "Widen the filters, or clear them.",
      action: h("a", { class: "button", href: "/tasks" }, "All tasks"),
    });
  }
  return emptyView({
    title: "No tasks yet",
    text: "Hand one in: headway submit SAGA --input '{…}'. It will be here at once.",
  });
}
