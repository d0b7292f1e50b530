// The cluster as a whole over time: nodes by state, zones, what happened, memory, pods.
import { count, plural, valueTicks } from './format.js';
import { EVENT_KINDS, NODE_STATES, ZONE_STATES, placeAt, valueAt } from './data.js';
import { colour, legend, make } from './colours.js';
import { chart } from './canvas.js';

export function part(title, about, ...children) {
  return make('section', { 'aria-label': title }, make('h2', {}, title), make('p', { class: 'sub' }, about), ...children);
}

/** Horizontal lines with their values. */
export function valueAxis(frame, max, format, binary) {
  const { context } = frame;
  context.strokeStyle = colour('--grid');
  context.textAlign = 'right';
  context.beginPath();
  for (const value of valueTicks(max, binary)) {
    const y = Math.round(frame.bottom - (value / max) * (frame.bottom - frame.top)) + 0.5;
    context.moveTo(frame.left, y);
    context.lineTo(frame.right, y);
    context.fillStyle = colour('--quiet');
    context.fillText(format(value), frame.left - 8, Math.min(Math.max(y, frame.top + 6), frame.bottom));
  }
  context.stroke();
}

/** Counts the nodes in each state, per column of the window: counts[state][column]. */
export function countStates(run, from, to, columns) {
  const counts = NODE_STATES.map(() => new Int32Array(columns + 1));
  const columnOf = (at) => Math.min(columns, Math.max(0, Math.ceil(((at - from) / (to - from)) * (columns - 1))));
  for (const node of run.nodes) {
    for (let i = Math.max(0, placeAt(node.level, from)); i < node.level.size; i += 1) {
      if (node.level.times[i] > to) break;
      const end = i + 1 < node.level.size ? columnOf(node.level.times[i + 1]) : columns;
      counts[node.level.values[i]][columnOf(node.level.times[i])] += 1;
      counts[node.level.values[i]][end] -= 1;
    }
  }
  for (const each of counts) for (let i = 1; i <= columns; i += 1) each[i] += each[i - 1];
  return counts;
}

export function statesAt(run, at) {
  const counts = NODE_STATES.map(() => 0);
  for (const node of run.nodes) counts[valueAt(node.level, at, 0)] += 1;
  return counts;
}

function drawStates(frame, run) {
  const columns = Math.max(2, Math.floor(frame.right - frame.left));
  const counts = countStates(run, frame.view.from, frame.view.to, columns);
  const { context } = frame;
  const all = Math.max(1, run.nodes.length);
  const scale = (frame.bottom - frame.top) / all;
  const base = new Int32Array(columns);
  valueAxis(frame, all, count, false);
  for (const state of [6, 5, 4, 3, 2, 1, 0]) {  // bad states begin at the axis, so that their height can be read
    context.fillStyle = colour(`--s${state}`);
    for (let i = 0; i < columns; i += 1) {
      if (counts[state][i] === 0) continue;
      context.fillRect(frame.left + i, frame.bottom - (base[i] + counts[state][i]) * scale, 1.5, counts[state][i] * scale);
      base[i] += counts[state][i];
    }
  }
  frame.timeAxis();
}

function statesPart(view) {
  const { run } = view;
  const seen = NODE_STATES.map((name, state) => [`--s${state}`, name]).filter((entry, state) =>
    run.nodes.some((node) => node.level.values.includes(state)));
  return part('Nodes by state', 'How many nodes are in which state, the worst at the bottom. Unit: nodes.', legend(seen),
    chart(view, 'Nodes by state over time', 220, (frame) => drawStates(frame, run)));
}

/** Bars for a series in a lane; `style` gives a fill for a value, or null. */
export function drawLane(frame, series, y, height, style) {
  const { context, view } = frame;
  for (let i = Math.max(0, placeAt(series, view.from)); i < series.size && series.times[i] <= view.to; i += 1) {
    const fill = style(series.values[i]);
    if (fill === null) continue;
    const begin = Math.max(frame.left, frame.x(series.times[i]));
    const end = Math.min(frame.right, i + 1 < series.size ? frame.x(series.times[i + 1]) : frame.x(view.run.length));
    context.fillStyle = fill;
    context.fillRect(begin, y, Math.max(1, end - begin), height);
  }
}

const ZONES_SHOWN = 16;

function zonesPart(view) {
  const worst = (zone) => zone.state.values.reduce((most, each) => Math.max(most, each), 0);
  const shown = [...view.run.zones].sort((a, b) => worst(b) - worst(a)).slice(0, ZONES_SHOWN)
    .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  const draw = (frame) => {
    shown.forEach((zone, i) => {
      const y = frame.top + i * 34;
      drawLane(frame, zone.state, y, 16, (value) => colour(`--z${value}`));
      drawLane(frame, zone.brake, y + 19, 5, (value) => (value < 0 ? null : colour('--line1')));
      frame.label(zone.name || '(no zone)', y + 8);
    });
    frame.timeAxis();
  };
  const hidden = view.run.zones.length - shown.length;
  const about = 'The state of each zone as the node lifecycle controller sees it, which sets the rate of its taints; below it, when a '
    + `brake held its acts.${hidden > 0 ? ` ${hidden} zones that were disturbed least are left out.` : ''}`;
  const brakes = view.run.brakes.length ? `brake: ${view.run.brakes.join(', ')}` : 'brake (none held)';
  return part('Zones', about, legend([...ZONE_STATES.map((name, i) => [`--z${i}`, name]), ['--line1', brakes, 'stroke']]),
    chart(view, 'States of zones over time', () => shown.length * 34 + 42, draw));
}

function eventsPart(view) {
  const { run } = view;
  const lanes = EVENT_KINDS.map((kind, i) => ({ ...kind, events: run.events.filter((event) => event.kind === i) }));
  const draw = (frame) => {
    const { context } = frame;
    lanes.forEach((lane, i) => {
      const y = frame.top + i * 24;
      frame.label(lane.lane, y + 9);
      context.fillStyle = colour('--grid');
      context.fillRect(frame.left, y + 17, frame.right - frame.left, 1);
      const bins = new Map();
      for (const event of lane.events) {
        if (event.at < view.from || event.at > view.to) continue;
        const x = Math.floor(frame.x(event.at) / 3) * 3;
        bins.set(x, (bins.get(x) ?? 0) + 1);
      }
      context.fillStyle = colour(lane.harm ? '--bad' : '--line3');
      const most = Math.max(1, ...bins.values());
      for (const [x, n] of bins) {
        const height = 5 + 12 * (Math.log(n) / Math.log(Math.max(2, most)));
        context.fillRect(x, y + 17 - height, 2.5, height);
      }
      if (lane.events.length > 0) return;
      context.fillStyle = colour('--quiet');
      context.textAlign = 'left';
      context.fillText('none', frame.left + 4, y + 9);
    });
    frame.timeAxis();
  };
  const told = lanes.filter((lane) => lane.events.length).map((lane) => `${lane.lane}: ${count(lane.events.length)}`).join('; ');
  return part('What happened', `Each mark is one event or, the taller, the more of them.${told ? ` ${told}.` : ''}`,
    chart(view, `Events over time. ${told || 'None.'}`, lanes.length * 24 + 42, draw));
}

/** Lowest and median share of memory that is available, per column; -1: no node measures it. */
export function memoryBand(run, from, to, columns) {
  const low = new Float32Array(columns).fill(-1);
  const median = new Float32Array(columns).fill(-1);
  const places = run.nodes.map((node) => placeAt(node.available, from));
  const shares = new Float32Array(run.nodes.length);
  for (let column = 0; column < columns; column += 1) {
    const at = from + ((to - from) * column) / (columns - 1);
    let size = 0;
    run.nodes.forEach(({ available, memory }, i) => {
      while (places[i] + 1 < available.size && available.times[places[i] + 1] <= at) places[i] += 1;
      const value = places[i] < 0 ? -1 : available.values[places[i]];
      if (value >= 0 && memory > 0) shares[size++] = value / memory;
    });
    if (size === 0) continue;
    const sorted = shares.subarray(0, size).sort();
    low[column] = sorted[0];
    median[column] = sorted[size >> 1];
  }
  return { low, median };
}

const CALM_SHARE = 0.9;  // a node that has always more of its memory available is in no danger of an eviction

function memoryPart(view) {
  const { run } = view;
  let least = 2;
  for (const { available, memory } of run.nodes) {
    for (const value of available.values) if (value >= 0 && memory > 0) least = Math.min(least, value / memory);
  }
  if (least > CALM_SHARE) {
    return part('memory.available', least <= 1
      ? `Nothing to see: every node always had at least ${Math.floor(least * 100)} % of its memory available.` : 'Not measured.');
  }
  const lines = new Set(run.nodes.flatMap((node) => node.thresholds.map(([kib, grace]) => `${kib / node.memory}:${grace}`)));
  const draw = (frame) => {
    const { context } = frame;
    const columns = Math.min(240, Math.max(2, Math.floor((frame.right - frame.left) / 2)));
    const band = memoryBand(run, view.from, view.to, columns);
    const y = (share) => frame.bottom - share * (frame.bottom - frame.top);
    valueAxis(frame, 100, (value) => `${value} %`, false);
    frame.timeAxis();
    for (const [line, name, width] of [[band.median, '--line3', 1.5], [band.low, '--line1', 2]]) {
      context.strokeStyle = colour(name);
      context.lineWidth = width;
      context.beginPath();
      let drawing = false;
      line.forEach((share, column) => {
        const x = frame.left + ((frame.right - frame.left) * column) / (columns - 1);
        if (share >= 0) drawing ? context.lineTo(x, y(share)) : context.moveTo(x, y(share));
        drawing = share >= 0;
      });
      context.stroke();
    }
    context.lineWidth = 1;
    for (const line of lines) {
      const [share, grace] = line.split(':').map(Number);
      dashed(frame, y(share), grace > 0 ? '--line2' : '--bad');
    }
  };
  return part('memory.available', 'Share of a node\u2019s memory that is available: the node with the least, and the median of all that '
    + 'run. Below a threshold a node evicts. Unit: percent of the node\u2019s memory.',
  legend([['--line1', 'lowest of all nodes', 'stroke'], ['--line3', 'median', 'stroke'], ['--bad', 'hard threshold', 'dashed'],
    ...([...lines].some((line) => !line.endsWith(':0')) ? [['--line2', 'soft threshold', 'dashed']] : [])]),
  chart(view, 'Memory available over time against the eviction thresholds', 200, draw));
}

export function dashed(frame, y, name) {
  const { context } = frame;
  context.strokeStyle = colour(name);
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(frame.left, Math.round(y) + 0.5);
  context.lineTo(frame.right, Math.round(y) + 0.5);
  context.stroke();
  context.setLineDash([]);
}

/** A line of steps through the values that `height` gives a place to; null: a gap. */
export function stepLine(frame, series, name, height) {
  const { context, view } = frame;
  context.strokeStyle = colour(name);
  context.lineWidth = 2;
  context.beginPath();
  let drawing = false;
  for (let i = Math.max(0, placeAt(series, view.from)); i < series.size && series.times[i] <= view.to; i += 1) {
    const y = height(series.values[i]);
    const end = i + 1 < series.size ? series.times[i + 1] : view.run.length;
    if (y !== null) {
      drawing ? context.lineTo(frame.x(series.times[i]), y) : context.moveTo(frame.x(series.times[i]), y);
      context.lineTo(frame.x(end), y);
    }
    drawing = y !== null;
  }
  context.stroke();
  context.lineWidth = 1;
}

function podsPart(view) {
  const { run } = view;
  const kinds = [[run.running, '--line1', 'running'], [run.pending, '--line2', 'pending'], [run.terminating, '--bad', 'terminating']];
  const most = Math.max(4, ...kinds.flatMap(([series]) => [...series.values]));
  const draw = (frame) => {
    valueAxis(frame, most * 1.05, count, false);
    frame.timeAxis();
    frame.clip();
    for (const [series, name] of kinds)
      stepLine(frame, series, name, (value) => frame.bottom - (value / (most * 1.05)) * (frame.bottom - frame.top));
    frame.context.restore();
  };
  return part('Pods', 'Pods as the API server has them. Unit: pods.', legend(kinds.map(([, name, label]) => [name, label, 'stroke'])),
    chart(view, 'Pods running, pending and terminating over time', 200, draw));
}

export function overview(view) {
  const states = statesPart(view);
  states.classList.add('wide');
  return make('div', { class: 'grid' }, states, zonesPart(view), eventsPart(view), memoryPart(view), podsPart(view));
}

/** One line about a moment. */
export function tellMoment(run, at) {
  const nodes = statesAt(run, at).map((n, state) => (n > 0 ? `${count(n)} ${NODE_STATES[state]}` : '')).filter(Boolean).reverse();
  const pods = `${plural(valueAt(run.running, at, 0), 'pod runs', 'pods run')}, ${count(valueAt(run.pending, at, 0))} pending`;
  return `${nodes.join(', ')}; ${pods}`;
}

