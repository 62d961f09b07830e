// One saga: its diagram, its steps, its versions, and how many tasks stand where.

import { read } from "../api.js";
import { choice, facts, panel, whenChanged } from "../controls.js";
import { diagram } from "../diagram.js";
import { stepList } from "../diagram_list.js";
import { fill, h } from "../dom.js";
import { when } from "../format.js";
import { fresh } from "../fresh.js";
import { jsonView } from "../json_view.js";
import { sagaCounts, sagasByName } from "../saga_counts.js";
import { emptyView, skeleton } from "../states.js";
import { stepsOf } from "../step_words.js";
import { table } from "../table.js";

const EVERY_MS = 2_000; // counts are no event

export async function page(context) {
  const { name } = context.params;
  context.title(name);
  let wanted = Number(context.query.get("version")) || null;
  const parts = sagaParts(name);
  const content = h("div", { class: "stack" }, skeleton(6));
  context.view.append(
    h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "/sagas" }, "Sagas"), ` / ${name}`),
    h("header", { class: "page-head" }, h("h1", { class: "task-title" }, name),
      h("a", { class: "button", href: `/tasks?saga=${encodeURIComponent(name)}` }, "Its tasks")),
    content);
  const show = whenChanged(([known]) => fill(content, known ? parts.elements : unknown(name)));
  const live = fresh(context, {
    load: loader(name, () => wanted),
    draw([saga, view]) {
      show([Boolean(saga)]);
      if (saga) parts.update(saga, view);
    },
    content,
    feed: null,
    everyMs: EVERY_MS,
  });
  context.onQuery = (query) => {
    wanted = Number(query.get("version")) || null;
    live.reload();
  };
}

/** Its versions with their counts, and the one that is looked at: asked for once. */
function loader(name, wanted) {
  const views = new Map();
  return async (signal) => {
    const { sagas } = await read("saga.list", {}, { signal });
    const saga = sagasByName(sagas).find((each) => each.name === name);
    if (!saga) return [null, null];
    const version = wanted() ?? saga.newest.version;
    if (!views.has(version)) views.set(version, await read("saga.get", { name, version }, { signal }));
    return [saga, views.get(version)];
  };
}

function sagaParts(name) {
  const about = h("div", { class: "panel-body stack" });
  const drawing = diagram({});
  const list = h("div", { hidden: true });
  const raw = h("div", { class: "panel-body", hidden: true });
  const shown = { diagram: drawing.element, list, json: raw };
  const views = choice({
    label: "Show the saga as", options: [["diagram", "Diagram"], ["list", "List"], ["json", "JSON"]], value: "diagram",
    change(view) {
      for (const [key, element] of Object.entries(shown)) element.hidden = key !== view;
    },
  });
  const steps = panel({ title: "Steps", id: "steps", tools: views, content: Object.values(shown) });
  const versions = versionTable(name);
  const drawn = whenChanged((_, view) => {
    const found = stepsOf(view.definition);
    steps.heading.textContent = `Steps of version ${view.version}`;
    drawing.update(found);
    fill(list, stepList(found));
    fill(raw, jsonView(view.definition, { label: "Definition" }));
  });
  const told = whenChanged((_, saga, view) => fill(about, facts([
    ["Tasks", sagaCounts(name, saga.counts)],
    ["Version", `${view.version}${view.version === saga.newest.version ? ", the newest" : ""}`],
    ["Registered", when(view.registered_at)],
    ["Digest", h("code", {}, view.digest)],
    ["Input", view.definition.input_schema ? "checked against a schema (see JSON)" : "not checked"],
  ])));
  return {
    elements: [h("section", { class: "panel", "aria-label": "About the saga" }, about), steps.element,
      panel({ title: "Versions", id: "versions", content: versions.element }).element],
    update(saga, view) {
      told([saga.counts, saga.newest.version, view.version], saga, view);
      drawn(view.version, view);
      versions.update([...saga.versions].reverse().map((each) => ({ ...each, shown: each.version === view.version })));
    },
  };
}

function versionTable(name) {
  return table({
    caption: "Versions of the saga",
    keyOf: (saga) => saga.version,
    columns: [
      { label: "Version", cell: (saga) => h("a", {
        class: "row-link", href: `/sagas/${encodeURIComponent(name)}?version=${saga.version}`, "aria-current": saga.shown ? "true" : null,
      }, `Version ${saga.version}`, saga.shown && h("span", { class: "muted" }, " (shown)")) },
      { label: "Tasks by status", cell: (saga) => sagaCounts(name, saga.counts ?? {}) },
      { label: "Digest", cell: (saga) => h("code", { title: saga.digest }, saga.digest.slice(0, 12)) },
      { label: "Registered", class: "quiet", cell: (saga) => when(saga.registered_at) },
    ],
  });
}

function unknown(name) {
  return emptyView({
    title: `There is no saga ${name}`,
    action: h("a", { class: "button", href: "/sagas" }, "All sagas"),
  });
}
