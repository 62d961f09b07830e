// Events of a history, in words. Pure.
//
//   eventName("AttemptFailed")   "Attempt failed"
//   eventSummary(data)           what it tells, on one line

const LONG_CHARS = 160;
const QUIET = new Set(["no_effect"]); // told by the status beside it

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export function eventName(type) {
  return type.replace(/([a-z])([A-Z])/g, (_, before, letter) => `${before} ${letter.toLowerCase()}`);
}

export function eventSummary(data) {
  const parts = Object.entries(data).map(([name, value]) => part(name.replaceAll("_", " "), name, value));
  const line = parts.filter(Boolean).join(", ") || "…";
  return line.length > LONG_CHARS ? `${line.slice(0, LONG_CHARS - 1)}…` : line;
}

function part(words, name, value) {
  if (value === false || value === null || QUIET.has(name)) return "";
  if (value === true) return words;
  if (name === "phase") return value === "compensation" ? "undoing" : "";
  if (name.endsWith("_at") && typeof value === "number") return value ? `${words} ${CLOCK.format(value)}` : "";
  if (name === "error" && value.type) return value.message ? `${value.type}: ${value.message}` : value.type;
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return `${words} ${value.join(", ")}`;
  if (typeof value === "object") return Object.keys(value).length ? `${words} …` : "";
  if (name === "reason" || name === "result") return `${words}: ${value}`;
  return `${words} ${value}`;
}
