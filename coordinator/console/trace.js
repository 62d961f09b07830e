// A task's trace: its id, and where a tracing system shows it. Pure.
//
//   traceOf(task) -> the trace id: the task's id without dashes
//   traceHref("https://jaeger.example/trace/{trace}", trace) -> the address, or "" without a template

export function traceOf(task) {
  return task.replaceAll("-", "");
}

export function traceHref(template, trace) {
  return /^https?:\/\//.test(template ?? "") ? template.replaceAll("{trace}", trace) : "";
}
