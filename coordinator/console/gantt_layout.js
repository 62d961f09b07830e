// A task's timeline (what `timeline` answers) as rows of bars. Pure.
//
//   gantt(timeline, { width, nowMs, fold }) -> { rows, marks, holds, chain, scale }
//     rows    [{ step, lanes, bars, marks }], in the order of the steps; lane 0 is the action's,
//             lane 1 its compensation's
//     bars    [{ x, width, queued, lane, kind, outcome, bars, open }]; `queued`: how much of it was before a
//             worker began; what is too small to be told apart is
//             drawn as one with all its `bars` and the gravest outcome
//     marks   [{ x, mark }] of the whole task, and in each row those of its step
//     holds   [{ x, width, bar }] of the whole task
//     chain   [{ from: { row, x }, to: { row, x } }] from each compensation to the next

import { timescale } from "./timescale.js";

const BAR_MIN_PX = 4;
const APART_PX = 1; // bars with less than that between them may be drawn as one

const GRAVITY = [
  "failed", "timed_out", "rejected", "doubted", "running", "cancelled", "superseded", "settled",
  "empty", "approved", "over", "completed",
];

export function gantt(timeline, { width, nowMs, fold }) {
  const scale = timescale({
    from: ms(timeline.began_at), to: lastMoment(timeline, nowMs), busy: busy(timeline, nowMs), width, fold,
  });
  const rows = timeline.steps.map((step) => rowOf(step, timeline.marks, scale, nowMs));
  return {
    rows,
    scale,
    marks: timeline.marks.filter((mark) => !mark.step).map((mark) => placedMark(mark, scale)),
    holds: timeline.holds.map((bar) => ({ ...stretch(bar, scale, nowMs), bar })),
    chain: chainOf(timeline, scale),
  };
}

/** Where the timeline ends: now, while it goes on; else with the last thing that happened. */
export function lastMoment(timeline, nowMs) {
  const bars = [...timeline.steps.flatMap((step) => step.bars), ...timeline.holds];
  if (bars.some((bar) => !bar.ended_at) || !timeline.settled_at) return nowMs;
  const moments = [
    ms(timeline.settled_at),
    ...bars.map((bar) => ms(bar.ended_at)),
    ...timeline.marks.map((mark) => ms(mark.at)),
  ];
  return moments.reduce((last, each) => Math.max(last, each), ms(timeline.began_at));
}

export function ms(iso) {
  return Date.parse(iso);
}

function busy(timeline, nowMs) {
  const attempts = timeline.steps.flatMap((step) => step.bars).filter((bar) => bar.kind === "attempt");
  return attempts.map((bar) => [ms(bar.started_at ?? bar.began_at), bar.ended_at ? ms(bar.ended_at) : nowMs]);
}

function rowOf(step, marks, scale, nowMs) {
  const lanes = step.bars.some((bar) => bar.phase === "compensation") ? 2 : 1;
  const bars = [0, 1].flatMap((lane) => {
    const own = step.bars.filter((bar) => laneOf(bar) === lane);
    return merged(own.map((bar) => ({
      ...stretch(bar, scale, nowMs), lane, kind: bar.kind, outcome: bar.outcome, bars: [bar],
    })));
  });
  const own = marks.filter((mark) => mark.step === step.name);
  return { step, lanes, bars, marks: own.map((mark) => placedMark(mark, scale)) };
}

function laneOf(bar) {
  return bar.phase === "compensation" ? 1 : 0;
}

function stretch(bar, scale, nowMs) {
  const x = scale.x(ms(bar.began_at));
  const end = scale.x(bar.ended_at ? ms(bar.ended_at) : nowMs);
  const queued = bar.started_at ? Math.min(scale.x(ms(bar.started_at)), end) - x : 0;
  return { x, width: Math.max(end - x, BAR_MIN_PX), queued, open: !bar.ended_at };
}

/** Bars of one lane, those that nobody could tell apart as one. */
function merged(bars) {
  const found = [];
  for (const bar of bars.sort((one, other) => one.x - other.x)) {
    const last = found.at(-1);
    const small = last && Math.max(last.width / last.bars.length, bar.width) <= BAR_MIN_PX;
    if (small && bar.x - (last.x + last.width) < APART_PX) {
      last.width = Math.max(last.width, bar.x + bar.width - last.x);
      last.kind = last.kind === "attempt" || bar.kind === "attempt" ? "attempt" : bar.kind;
      last.outcome = graver(last, bar);
      last.queued = 0;
      last.open ||= bar.open;
      last.bars.push(...bar.bars);
    } else {
      found.push(bar);
    }
  }
  return found;
}

function graver(one, other) {
  const [first, second] = [one, other].map(({ outcome }) => GRAVITY.indexOf(outcome));
  return first <= second ? one.outcome : other.outcome;
}

function placedMark(mark, scale) {
  return { x: scale.x(ms(mark.at)), mark };
}

function chainOf(timeline, scale) {
  const rows = new Map(timeline.steps.map((step, row) => [step.name, row]));
  const begun = timeline.compensations.filter((link) => link.began_at);
  return begun.slice(1).map((link, at) => ({
    from: { row: rows.get(begun[at].step), x: scale.x(ms(begun[at].ended_at ?? begun[at].began_at)) },
    to: { row: rows.get(link.step), x: scale.x(ms(link.began_at)) },
  }));
}
