// How many tasks of a saga stand where.
//
//   sagasByName(sagas)          the rows of `saga.list`, one for each name: { name, versions, newest, counts }
//   sagaCounts(name, counts)    an element: a link to the tasks of each status that has any

import { h } from "./dom.js";
import { compact, count } from "./format.js";
import { icon } from "./icons.js";
import { statusWord, TASK_STATUSES } from "./status.js";

export function sagasByName(sagas) {
  const found = new Map();
  for (const saga of sagas) {
    const known = found.get(saga.name) ?? { name: saga.name, versions: [], newest: saga, counts: {} };
    known.versions.push(saga);
    if (saga.version >= known.newest.version) known.newest = saga;
    for (const [status, tasks] of Object.entries(saga.counts ?? {})) {
      known.counts[status] = (known.counts[status] ?? 0) + tasks;
    }
    found.set(saga.name, known);
  }
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name));
}

export function sagaCounts(name, counts) {
  const shown = TASK_STATUSES.filter((status) => counts[status]);
  if (!shown.length) return h("span", { class: "muted" }, "no tasks");
  return h("span", { class: "saga-counts" }, shown.map((status) => h("a", {
    class: `status status-${status}`, href: `/tasks?saga=${encodeURIComponent(name)}&status=${status}`,
    title: `${count(counts[status])} ${statusWord(status).toLowerCase()}`,
  }, icon(status), compact(counts[status]), h("span", { class: "hidden" }, ` ${statusWord(status).toLowerCase()}`))));
}
