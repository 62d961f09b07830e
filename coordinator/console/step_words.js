// Steps of a definition, for lists and diagrams. Pure.
//
//   stepsOf(definition)                 its steps as diagram.js takes them
//   stepsOfTask(timeline, definition)   a task's: with what was appended to its plan
//   policyWords(step)                   [[term, text]] of its retries and time limits

export function stepsOf(definition) {
  return definition.steps.map(({ compensate, ...step }) => ({ ...step, kind: step.kind ?? "action", compensation: compensate ?? null }));
}

export function stepsOfTask(timeline, definition) {
  const declared = new Map((definition?.steps ?? []).map((step) => [step.name, step]));
  return timeline.steps.map(({ bars, status, ...step }) => ({ ...declared.get(step.name), ...step }));
}

export function policyWords(step) {
  const words = [];
  if (step.kind === "action" && step.retry) {
    words.push(["Tried", retryWords(step.retry)]);
    if (step.compensation && step.compensation_retry) {
      words.push(["Undo tried", retryWords(step.compensation_retry)]);
    }
  }
  const limits = Object.entries(step.timeouts ?? {}).filter(([, seconds]) => seconds !== null);
  if (limits.length && step.kind !== "sleep") {
    words.push(["Time limits", limits.map(([name, seconds]) => `${name.replaceAll("_", " ")} ${seconds} s`).join(", ")]);
  }
  return words;
}

function retryWords({ maximum_attempts: most, initial_interval: first, maximum_interval: longest }) {
  if (most === 1) return "once";
  const times = most === 0 ? "again and again" : `up to ${most} times`;
  return `${times}, with ${first} s between at first and at most ${longest} s`;
}
