// From moments to places on a line; a long stretch in which nobody worked may be folded. Pure.
//
//   timescale({ from, to, busy, width, fold }) -> {
//     x(ms)      the place of a moment
//     ticks      [{ x, text }], in time since `from`
//     folds      [{ x, width, ms }] of stretches that are drawn shorter than they were
//     foldable   whether folding would change anything
//   }
//   from, to: ms; busy: [[from, to], …] in which somebody worked; width: of the whole, in pixels
//   elapsed(ms) -> "+1 m 30 s", short and exact, for ticks

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const TICK_MIN_PX = 72;
const FOLD_MIN_MS = 5 * SECOND;
const FOLD_MIN_SHARE = 0.25; // of the whole time
const FOLD_MAX_PX = 56;
const FOLDS_MAX = 3;
const SPAN_MIN_MS = 10; // so that a task that took no time has a scale, too

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12].map((each) => each * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((each) => each * DAY),
];

export function timescale({ from, to, busy, width, fold }) {
  const end = Math.max(to, from + SPAN_MIN_MS);
  const quiet = quietStretches(busy, from, end);
  const folded = fold ? quiet.slice(0, FOLDS_MAX) : [];
  const foldPx = Math.min(FOLD_MAX_PX, width / 8);
  folded.sort((one, other) => one[0] - other[0]);
  const foldedMs = folded.reduce((sum, [begin, stop]) => sum + stop - begin, 0);
  const open = width - folded.length * foldPx;
  const perMs = open / Math.max(end - from - foldedMs, 1);
  const parts = partsOf(folded, from, end, perMs, foldPx);
  return {
    x: (ms) => placed(parts, ms),
    ticks: ticks(parts, from, perMs),
    folds: parts.filter((part) => part.folded)
      .map((part) => ({ x: part.x, width: foldPx, ms: part.to - part.from })),
    foldable: quiet.length > 0,
  };
}

export function elapsed(ms) {
  if (ms < SECOND) return ms ? `+${Math.round(ms)} ms` : "0";
  const units = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"], [SECOND, "s"]];
  const parts = [];
  let rest = ms;
  for (const [size, unit] of units) {
    const whole = unit === "s" ? Math.round((rest / SECOND) * 10) / 10 : Math.floor(rest / size);
    if (whole) parts.push(`${whole} ${unit}`);
    rest %= size;
  }
  return `+${parts.slice(0, 2).join(" ")}`;
}

/** Stretches that are worth folding, the longest first. */
function quietStretches(busy, from, to) {
  const found = [];
  let until = from;
  for (const [begin, stop] of [...busy].sort((one, other) => one[0] - other[0])) {
    if (begin > until) found.push([until, begin]);
    until = Math.max(until, stop);
  }
  if (to > until) found.push([until, to]);
  const least = Math.max(FOLD_MIN_MS, FOLD_MIN_SHARE * (to - from));
  return found.filter(([begin, stop]) => stop - begin > least)
    .sort((one, other) => other[1] - other[0] - (one[1] - one[0]));
}

function partsOf(folded, from, to, perMs, foldPx) {
  const parts = [];
  let [at, x] = [from, 0];
  const add = (until, span, isFolded) => {
    if (until > at) parts.push({ from: at, to: until, x, perMs: span / (until - at), folded: isFolded });
    [at, x] = [until, x + span];
  };
  for (const [begin, stop] of folded) {
    add(begin, (begin - at) * perMs, false);
    add(stop, foldPx, true);
  }
  add(to, (to - at) * perMs, false);
  return parts;
}

function placed(parts, ms) {
  const part = parts.find((each) => ms <= each.to) ?? parts.at(-1);
  return part.x + (Math.max(ms, part.from) - part.from) * part.perMs;
}

function ticks(parts, from, perMs) {
  const step = STEPS.find((each) => each * perMs >= TICK_MIN_PX) ?? STEPS.at(-1);
  const found = [];
  for (const part of parts.filter((each) => !each.folded)) {
    const first = Math.ceil((part.from - from) / step) * step;
    for (let since = first; since <= part.to - from; since += step) {
      const x = part.x + (since - (part.from - from)) * part.perMs;
      const crowded = found.length && x - found.at(-1).x < TICK_MIN_PX * 0.75;
      if (!crowded) found.push({ x, text: elapsed(since) });
    }
  }
  return found;
}
