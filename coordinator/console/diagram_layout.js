// Where the steps of a saga are drawn: in layers along their order, with few crossings. Pure.
//
//   layout(steps, box, across) -> { width, height, across, nodes, edges }
//     steps   [{ name, after: [name] }] in an order in which each comes after those it names
//     box     { width, height } of a step
//     across  true: from left to right; false: from top to bottom
//     nodes   Map of name -> { x, y, layer }, of its upper left corner
//     edges   [{ from, to, points: [[x, y], …] }]; an edge that other edges imply is left out
//   fitting(steps, box, available) -> the layout that needs no scrolling sideways, if there is one

const ALONG_GAP = 44; // between layers
const BESIDE_GAP = 18; // between steps of a layer
const LANE = 10; // of an edge that passes a layer
const MARGIN = 8;
const SWEEPS = 6;
const LANES_MAX = 1_500; // beyond it long edges are drawn straight

export function fitting(steps, box, available) {
  const across = layout(steps, box, true);
  if (across.width <= available) return across;
  const down = layout(steps, box, false);
  return down.width <= across.width ? down : across;
}

export function layout(steps, box, across) {
  const edges = reduced(steps);
  const items = new Map(steps.map(({ name }) => [name, { name, layer: 0, before: [], after: [] }]));
  for (const [from, to] of edges) {
    items.get(to).layer = Math.max(items.get(to).layer, items.get(from).layer + 1);
  }
  const chains = edges.map(([from, to]) => chain(items, items.get(from), items.get(to)));
  const layers = [];
  for (const item of items.values()) (layers[item.layer] ??= []).push(item);
  order(layers);
  const size = across ? box.height : box.width;
  place(layers, (item) => (item.lane ? LANE : size));
  return drawn(items, steps, edges, chains, box, across);
}

/** The edges that no longer way implies; in the order of the steps. */
function reduced(steps) {
  const ancestors = new Map();
  const edges = [];
  for (const { name, after } of steps) {
    const all = new Set(after);
    for (const each of after) for (const one of ancestors.get(each) ?? []) all.add(one);
    ancestors.set(name, all);
    for (const from of after) {
      const implied = after.some((other) => other !== from && ancestors.get(other)?.has(from));
      if (!implied) edges.push([from, name]);
    }
  }
  return edges;
}

/** Joins two steps; through a lane in each layer between. */
function chain(items, from, to) {
  const passed = [from];
  for (let layer = from.layer + 1; layer < to.layer && items.size < LANES_MAX; layer += 1) {
    const lane = { lane: true, layer, before: [], after: [] };
    items.set(lane, lane);
    passed.push(lane);
  }
  passed.push(to);
  for (let at = 1; at < passed.length; at += 1) {
    passed[at - 1].after.push(passed[at]);
    passed[at].before.push(passed[at - 1]);
  }
  return passed;
}

/** Sorts each layer by where its neighbours are, down and up in turns. */
function order(layers) {
  for (const layer of layers) layer.forEach((item, at) => (item.at = at));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const item of layer) item.wish = mean(down ? item.before : item.after, "at") ?? item.at;
      layer.sort((one, other) => one.wish - other.wish || one.at - other.at);
      layer.forEach((item, at) => (item.at = at));
    }
  }
}

/** Gives each item the place nearest to its neighbours' that its layer's order leaves it. */
function place(layers, sizeOf) {
  for (const layer of layers) {
    let offset = 0;
    for (const item of layer) {
      item.offset = offset + sizeOf(item) / 2;
      item.place = item.offset;
      offset += sizeOf(item) + BESIDE_GAP;
    }
    for (const item of layer) item.place -= (offset - BESIDE_GAP) / 2;
  }
  const sides = ["before", "after", "before", "after", "both", "both"];
  for (const side of sides) {
    for (const layer of side === "after" ? [...layers].reverse() : layers) {
      const wishes = layer.map((item) => {
        const near = side === "both" ? [...item.before, ...item.after] : item[side];
        return (mean(near, "place") ?? item.place) - item.offset;
      });
      rising(wishes).forEach((wish, at) => (layer[at].place = wish + layer[at].offset));
    }
  }
}

/** The rising numbers that are nearest to these (pool adjacent violators). */
function rising(numbers) {
  const pools = [];
  for (const number of numbers) {
    pools.push({ sum: number, count: 1 });
    for (let last = pools.length - 1; last > 0; last -= 1) {
      const [one, other] = [pools[last - 1], pools[last]];
      if (one.sum / one.count <= other.sum / other.count) break;
      pools.splice(last - 1, 2, { sum: one.sum + other.sum, count: one.count + other.count });
    }
  }
  return pools.flatMap(({ sum, count }) => Array(count).fill(sum / count));
}

function drawn(items, steps, edges, chains, box, across) {
  const long = across ? box.width : box.height;
  const least = smallest([...items.values()].map((item) =>
    item.place - (item.lane ? LANE : across ? box.height : box.width) / 2));
  const along = (item) => MARGIN + item.layer * (long + ALONG_GAP);
  const beside = (item) => MARGIN + item.place - least;
  const point = (a, b) => (across ? [a, b] : [b, a]);
  const nodes = new Map();
  let [width, height] = [0, 0];
  for (const { name } of steps) {
    const item = items.get(name);
    const [x, y] = across
      ? [along(item), beside(item) - box.height / 2]
      : [beside(item) - box.width / 2, along(item)];
    nodes.set(name, { x, y, layer: item.layer });
    width = Math.max(width, x + box.width + MARGIN);
    height = Math.max(height, y + box.height + MARGIN);
  }
  const paths = chains.map((passed, at) => ({
    from: edges[at][0],
    to: edges[at][1],
    points: passed.flatMap((item, position) => {
      const enter = point(along(item), beside(item));
      const leave = point(along(item) + long, beside(item));
      if (position === 0) return [leave];
      return position === passed.length - 1 ? [enter] : [enter, leave];
    }),
  }));
  for (const [x, y] of paths.flatMap((path) => path.points)) {
    width = Math.max(width, x + MARGIN);
    height = Math.max(height, y + MARGIN);
  }
  return { width, height, across, nodes, edges: paths };
}

function mean(items, field) {
  if (!items.length) return null;
  return items.reduce((sum, item) => sum + item[field], 0) / items.length;
}

function smallest(numbers) {
  return numbers.reduce((least, number) => Math.min(least, number), Infinity);
}
