// What an act on a task would do, in words, from the task, its timeline and its definition. Pure.
//
//   consequences(act, { task, timeline, definition, step }) -> [sentence]
//   ACTS: { cancel: { label, icon, title, action, danger } … } in the order in which they are offered

const UNDONE = new Set(["completed", "unknown"]);
const WAITS = new Set(["approval", "wait", "sleep"]);

export const ACTS = {
  approve: { label: "Approve", icon: "approve", title: "Approve", action: "Approve" },
  reject: { label: "Reject", icon: "reject", title: "Reject", action: "Reject", danger: true },
  retry: { label: "Retry", icon: "retry", title: "Try a stuck step again", action: "Try again" },
  resume: { label: "Resume", icon: "resume", title: "Let the task go on", action: "Resume" },
  settle: { label: "Settle", icon: "settle", title: "State how a step really ended", action: "Settle" },
  signal: { label: "Signal", icon: "resume", title: "Send a signal", action: "Send" },
  move: { label: "Move", icon: "right", title: "Move to another version of the saga", action: "Move" },
  fork: { label: "Fork", icon: "sagas", title: "Start a new task from a step", action: "Fork" },
  cancel: { label: "Cancel", icon: "cancel", title: "Cancel the task", action: "Cancel the task", danger: true },
};

export function consequences(act, facts) {
  return SENTENCES[act](facts).filter(Boolean);
}

const SENTENCES = {
  cancel({ task, timeline }) {
    const begun = task.steps.filter((step) => step.status === "scheduled");
    const running = names(begun.filter((step) => !WAITS.has(step.kind)));
    const waits = names(begun.filter((step) => WAITS.has(step.kind)));
    const undone = undoOrder(task, timeline);
    const kept = task.steps.filter((step) => UNDONE.has(step.status) && !undoable(step));
    return [
      running && `Asked to stop: ${running}. What succeeds meanwhile is undone as well.`,
      waits && `Not waited for any more: ${waits}.`,
      undone.length
        ? `Undone, in this order: ${undone.map((step) => `${step.name} (${how(step)})`).join(", ")}.`
        : "Nothing was done that would have to be undone.",
      kept.length > 0 && `Left as they are, since nothing undoes them: ${names(kept)}.`,
      "Nothing new is begun; the task ends as compensated. This cannot be taken back.",
    ];
  },
  retry({ step, definition }) {
    const most = definition?.steps.find((each) => each.name === step)?.retry?.maximum_attempts;
    const series = most === 0 ? "without limit" : most ? `up to ${most} attempts` : "by its policy";
    return [
      step ? `${step} gets another series of attempts: ${series}.` : "Every stuck step gets another series of attempts.",
      "It runs under the same operation id, so that a service which dedupes on it does nothing twice.",
    ];
  },
  resume({ task }) {
    return [
      task.reason && `It stands because: ${task.reason}.`,
      "What it was held for counts as seen, and stuck steps get another series of attempts.",
    ];
  },
  settle({ task, step, outcome }) {
    const undoing = task.steps.find((each) => each.name === step)?.phase === "compensation";
    const told = {
      happened: undoing ? `${step} counts as undone.` : `${step} counts as done, with that result.`,
      did_not_happen: undoing ? `There was nothing to undo of ${step}.` : `${step} left nothing behind.`,
    }[outcome];
    return [
      told ?? "Your word takes the place of the answer that never came.",
      "The task goes on from there. Look it up where it happened before you say so.",
    ];
  },
  approve: ({ step }) => [`${step || "The step"} counts as done, and what comes after it is begun.`],
  reject({ step, task, timeline }) {
    const undone = undoOrder(task, timeline);
    return [
      `${step || "The step"} fails, and the task turns around.`,
      undone.length ? `Undone, in this order: ${undone.map(({ name }) => name).join(", ")}.` : "Nothing has to be undone.",
    ];
  },
  signal({ task }) {
    const waiting = task.steps.filter((step) => step.kind === "wait" && step.status === "scheduled");
    return [
      waiting.length
        ? `Waiting now: ${waiting.map((step) => `${step.name} (${step.waiting_for})`).join(", ")}.`
        : "No step waits for a signal now; it is kept for one that will.",
      "A signal with an id that came before changes nothing.",
    ];
  },
  move: ({ task }) => [
    `It runs version ${task.saga_version}. It is moved only if all that happened so far fits the other version; steps that are done stay done.`,
  ],
  fork({ timeline, step }) {
    const again = new Set([step]);
    for (const each of timeline.steps) if (each.after.some((before) => again.has(before))) again.add(each.name);
    const kept = timeline.steps.filter((each) => !again.has(each.name) && each.status === "completed");
    return [
      kept.length ? `Results that are kept: ${names(kept)}.` : "No result is kept.",
      `Done again in the new task: ${[...again].filter(Boolean).join(", ")}.`,
      "This task stays as it is.",
    ];
  },
};

/** What a cancellation would undo: the latest first. */
function undoOrder(task, timeline) {
  const ends = new Map(timeline.steps.map((step) => [step.name, lastEnd(step)]));
  return task.steps.filter((step) => UNDONE.has(step.status) && undoable(step))
    .sort((one, other) => ends.get(other.name) - ends.get(one.name));
}

function lastEnd(step) {
  return step.bars.reduce((last, bar) => Math.max(last, Date.parse(bar.ended_at ?? bar.began_at)), 0);
}

function undoable(step) {
  return step.compensation !== null || step.kind === "child";
}

function how(step) {
  return step.compensation ?? "its own compensations";
}

function names(steps) {
  return steps.map((step) => step.name).join(", ");
}
