// Where the bars and lines of a chart go. Pure: from values to paths.

const GAP_PX = 1;
const ALONE_PX = 4; // how wide a single value is drawn

/** `top`: the value at the upper edge; `columns`: the middle of each moment, in pixels. */
export function layout(series, values, moments, width, height) {
  const wide = moments ? width / moments : width;
  const columns = Array.from({ length: moments }, (_, n) => (n + 0.5) * wide);
  const stacked = series.map(({ shape }, s) => (shape === "bar" ? values[s] ?? [] : null));
  const sums = columns.map((_, n) => stacked.reduce((total, each) => total + (each?.[n] ?? 0), 0));
  const drawn = series.flatMap(({ shape }, s) => (shape === "bar" ? [] : values[s] ?? []));
  const top = roundUp(Math.max(0, ...sums, ...drawn.map((value) => value ?? 0)));
  const y = (value) => height - (value / top) * height;
  return {
    top,
    columns,
    bars: barPaths(series, stacked, columns, wide, y),
    lines: series.flatMap(({ shape, tone }, s) =>
      shape === "bar" ? [] : [{ shape, tone, path: linePath(values[s] ?? [], columns, y) }]),
  };
}

function barPaths(series, stacked, columns, wide, y) {
  const under = columns.map(() => 0);
  const [left, right] = [-wide / 2 + GAP_PX / 2, wide / 2 - GAP_PX / 2];
  return series.flatMap(({ tone }, s) => {
    if (!stacked[s]) return [];
    const pieces = columns.map((x, n) => {
      const value = stacked[s][n] ?? 0;
      if (!value) return "";
      const [low, high] = [y(under[n]), y(under[n] + value)];
      under[n] += value;
      return `M${px(x + left)} ${px(low)}V${px(high)}H${px(x + right)}V${px(low)}Z`;
    });
    return [{ tone, path: pieces.join("") }];
  });
}

function linePath(values, columns, y) {
  let open = false;
  return columns.map((x, n) => {
    const value = values[n];
    const gap = value === null || value === undefined;
    const alone = !open && (values[n + 1] ?? null) === null;
    const piece = gap ? "" : `${open ? "L" : "M"}${px(alone ? x - ALONE_PX / 2 : x)} ${px(y(value))}${alone ? `h${ALONE_PX}` : ""}`;
    open = !gap;
    return piece;
  }).join("");
}

/** The next of 1, 2, 5 times a power of ten: an axis that does not change with every value. */
export function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function px(value) {
  return Math.round(value * 10) / 10;
}
