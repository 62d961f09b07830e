// What the list of tasks is narrowed to: between the address, the form and the request. Pure.
//
//   const filter = filterOf(query)     { status: [], saga, agent, owner, attribute, since, after, before }
//   requestOf(filter, now)             the fields of `list`; now in ms since 1970
//   queryOf(filter)                    what the address says
//   narrowed(filter)                   how many fields are set

const MINUTE_MS = 60_000;

/** Spans of time that end now: word in the address, words for people, length. */
export const SPANS = [
  ["15m", "Last 15 minutes", 15 * MINUTE_MS],
  ["1h", "Last hour", 60 * MINUTE_MS],
  ["24h", "Last 24 hours", 24 * 60 * MINUTE_MS],
  ["7d", "Last 7 days", 7 * 24 * 60 * MINUTE_MS],
];
export const BETWEEN = "between";

const TEXTS = ["saga", "agent", "owner", "attribute", "since", "after", "before"];

export function filterOf(query) {
  return {
    status: query.getAll("status"),
    ...Object.fromEntries(TEXTS.map((name) => [name, query.get(name) ?? ""])),
  };
}

export function queryOf(filter) {
  const between = filter.since === BETWEEN;
  return { ...filter, after: between ? filter.after : "", before: between ? filter.before : "", cursor: null };
}

export function requestOf(filter, now) {
  const { status, saga, agent, owner, since } = filter;
  const request = { status, saga, agent, owner };
  if (filter.attribute.includes("=")) {
    const at = filter.attribute.indexOf("=");
    request.attributes = { [filter.attribute.slice(0, at)]: filter.attribute.slice(at + 1) };
  }
  const [, , length] = SPANS.find(([word]) => word === since) ?? [];
  if (length) request.created_after = new Date(now - length).toISOString();
  if (since === BETWEEN) {
    request.created_after = instant(filter.after);
    request.created_before = instant(filter.before);
  }
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== ""));
}

export function narrowed({ status, saga, agent, owner, attribute, since }) {
  return [status.length, saga, agent, owner, attribute, since].filter(Boolean).length;
}

function instant(local) {
  const at = new Date(local);
  return local && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
}
