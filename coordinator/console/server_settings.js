// What the server says of itself to the console: { trace_link }. Asked for once.

let known = null;

export function serverSettings() {
  known ??= fetch("/console/settings.json").then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({}));
  return known;
}
