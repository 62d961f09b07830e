// All sagas: their versions, and how many tasks of each stand where.

import { read } from "../api.js";
import { h } from "../dom.js";
import { when } from "../format.js";
import { fresh } from "../fresh.js";
import { sagaCounts, sagasByName } from "../saga_counts.js";
import { emptyView } from "../states.js";
import { rowKeys, table } from "../table.js";

const EVERY_MS = 2_000; // counts are no event

export async function page(context) {
  context.title("Sagas");
  const list = table({
    caption: "Sagas",
    keyOf: (saga) => saga.name,
    columns: [
      { label: "Saga", cell: (saga) => h("a", { class: "row-link", href: `/sagas/${encodeURIComponent(saga.name)}` }, saga.name) },
      { label: "Tasks by status", cell: (saga) => sagaCounts(saga.name, saga.counts) },
      { label: "Versions", class: "number", cell: (saga) => String(saga.versions.length) },
      { label: "Newest", class: "number", cell: (saga) => String(saga.newest.version) },
      { label: "Registered", class: "quiet", cell: (saga) => when(saga.newest.registered_at) },
    ],
  });
  list.loading(5);
  const none = emptyView({
    title: "No saga is registered",
    text: "A saga says which agent does what, after what, and how it is undone.",
    action: h("code", { class: "command" }, "headway saga register module:saga"),
  });
  none.hidden = true;
  const content = h("section", { class: "panel" }, list.element, none);
  context.view.append(h("header", { class: "page-head" }, h("h1", {}, "Sagas")), content);
  context.keys(rowKeys(list));
  fresh(context, {
    load: (signal) => read("saga.list", {}, { signal }),
    draw({ sagas }) {
      list.update(sagasByName(sagas));
      list.element.hidden = !sagas.length;
      none.hidden = sagas.length > 0;
    },
    content,
    feed: null,
    everyMs: EVERY_MS,
  });
}
