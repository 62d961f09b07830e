// What is on a task's timeline, in words. Pure.
//
//   barTitle(bar)            "Attempt 2", "Undo, attempt 1", "Waits for the next attempt" …
//   outcomeText(bar)         "failed: CardDeclined", "still going on" …
//   markText(mark)           "Signal paid from ada: …"
//   stepSummary(step)        one sentence on a step, for its row's button
//   timelineRows(timeline)   every bar and mark in the order of time:
//                            [{ at, step, what, began, ended, outcome, worker, status }]

import { ms } from "./gantt_layout.js";

const OUTCOMES = {
  running: "still going on",
  completed: "completed",
  empty: "found nothing to undo",
  doubted: "came too early; done again",
  failed: "failed",
  timed_out: "timed out, outcome unknown",
  superseded: "another attempt's success came first",
  approved: "approved",
  rejected: "rejected",
  cancelled: "ended as the task turned around",
  settled: "settled by a person",
  over: "over",
};

const MARKS = {
  submitted: "Submitted",
  signal: "Signal",
  approval: "Approved",
  rejection: "Rejected",
  hand_off: "Handed off to",
  skipped: "Skipped: its condition was false",
  condition_failed: "Its condition could not be told",
  hold: "Held",
  cancel: "Cancelled",
  recovery: "Turned around: from here on it is undone",
  late_success: "A success came late",
  output_rejected: "Output not accepted",
  move: "Moved to version",
  parked: "Parked: a person must look",
  failed_to_compensate: "Parked: could not be undone",
  resume: "Resumed",
  settle: "Settled by hand",
  succeeded: "Succeeded",
  compensated: "Undone",
};

const TAKE_OVERS = {
  claimed: "taken over",
  republished: "published again",
  handed_back: "handed back",
};

export function barTitle(bar) {
  const undo = bar.phase === "compensation";
  if (bar.kind === "attempt") return undo ? `Undo, attempt ${bar.attempt}` : `Attempt ${bar.attempt}`;
  if (bar.kind === "retry_wait") return undo ? "Pause before the next undo" : "Pause before the next attempt";
  return bar.kind === "hold" ? "Held for a person" : "Waits";
}

export function outcomeText(bar) {
  const words = [OUTCOMES[bar.outcome] ?? bar.outcome];
  if (bar.error) words.push(`: ${bar.error}`);
  if (bar.late) words.push(" (late)");
  const taken = bar.take_overs.map((each) => TAKE_OVERS[each.kind] ?? each.kind);
  if (taken.length) words.push(`; ${counted(taken)}`);
  if (bar.reason) words.push(`; ${bar.reason}`);
  return words.join("");
}

export function markText(mark) {
  const words = [MARKS[mark.kind] ?? mark.kind];
  if (mark.name) words.push(mark.name);
  if (mark.by) words.push(`by ${mark.by}`);
  return mark.reason ? `${words.join(" ")}: ${mark.reason}` : words.join(" ");
}

export function stepSummary(step) {
  const attempts = step.bars.filter((bar) => bar.kind === "attempt");
  const undone = attempts.filter((bar) => bar.phase === "compensation").length;
  const words = [`${step.name}: ${step.status.replaceAll("_", " ")}`];
  const done = attempts.length - undone;
  if (done) words.push(`${done} ${done === 1 ? "attempt" : "attempts"}`);
  if (undone) words.push(`${undone} ${undone === 1 ? "attempt" : "attempts"} to undo it`);
  return words.join(", ");
}

export function timelineRows(timeline) {
  const bars = [...timeline.steps, { name: "", bars: timeline.holds }].flatMap((step) =>
    step.bars.map((bar) => ({
      at: ms(bar.began_at),
      late: 1,
      step: step.name,
      what: barTitle(bar),
      began: bar.began_at,
      ended: bar.ended_at,
      lasting: true,
      outcome: outcomeText(bar),
      grade: bar.outcome,
      worker: bar.worker || bar.agent,
      child: bar.child,
    })));
  const marks = timeline.marks.map((mark) => ({
    at: ms(mark.at),
    late: mark.kind === "submitted" ? 0 : 2, // among what happened at the same moment
    step: mark.step,
    what: markText(mark),
    began: mark.at,
    ended: null,
    lasting: false,
    outcome: "",
    grade: "",
    worker: "",
    child: null,
  }));
  return [...marks, ...bars].sort((one, other) => one.at - other.at || one.late - other.late);
}

function counted(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, times]) => (times > 1 ? `${word} ${times} times` : word)).join(", ");
}
