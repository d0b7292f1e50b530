// The data of the file, unpacked. A series is times and values: a value stands until the next time.

export const EVENT_KINDS = [
  { name: 'not ready', lane: 'not ready', harm: true },
  { name: 'ready', lane: 'ready again' },
  { name: 'tainted', lane: 'tainted', harm: true },
  { name: 'untainted', lane: 'untainted' },
  { name: 'evicted', lane: 'evicted', harm: true },
  { name: 'deleted', lane: 'deleted', harm: true },
  { name: 'OOM kill', lane: 'OOM kills', harm: true },
  { name: 'no place', lane: 'no node found', harm: true },
  { name: 'machines', lane: 'machines' },
];

export const KIND = { notReady: 0, ready: 1, tainted: 2, untainted: 3, evicted: 4, deleted: 5, oom: 6, unplaced: 7, machine: 8 };

export const NODE_STATES = [
  'not registered', 'ready', 'under pressure', 'silent but counted ready', 'not ready', 'unknown', 'tainted NoExecute',
];
export const ZONE_STATES = ['no nodes seen yet', 'normal', 'partial disruption', 'full disruption'];
export const STATUS = ['absent', 'True', 'False', 'Unknown'];
export const MACHINES = ['up', 'down', 'cut off'];

export function unpackSeries(list) {
  const size = list.length / 2;
  const times = new Float64Array(size);
  const values = new Int32Array(size);
  let at = 0;
  for (let i = 0; i < size; i += 1) {
    at += list[2 * i];
    times[i] = at;
    values[i] = list[2 * i + 1];
  }
  return { times, values, size };
}

/** Place of the value that stands at `at`; -1: none yet. */
export function placeAt(series, at) {
  let low = 0;
  let high = series.size;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series.times[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function valueAt(series, at, otherwise) {
  const place = placeAt(series, at);
  return place < 0 ? otherwise : series.values[place];
}

export function stateParts(packed) {
  return {
    ready: packed & 3,
    memory: (packed >> 2) & 3,
    disk: (packed >> 4) & 3,
    pid: (packed >> 6) & 3,
    tainted: (packed >> 8) & 1,
    unschedulable: (packed >> 9) & 1,
    machine: (packed >> 10) & 3,
  };
}

/** Which of NODE_STATES: the worse the higher. */
export function stateClass(packed) {
  const is = stateParts(packed);
  if (is.ready === 0) return 0;
  if (is.tainted) return 6;
  if (is.ready === 3) return 5;
  if (is.ready === 2) return 4;
  if (is.machine !== 0) return 3;
  return is.memory === 1 || is.disk === 1 || is.pid === 1 ? 2 : 1;
}

/** From numbers of looks and steps of memory. */
function inKib(series, step, sample) {
  series.times.forEach((time, i) => { series.times[i] = time * sample; });
  series.values.forEach((value, i) => { series.values[i] = value < 0 ? -1 : value * step; });
  return series;
}

function unpackNode(list, run) {
  const state = unpackSeries(list[4]);
  const level = { times: state.times, values: Int32Array.from(state.values, stateClass), size: state.size };
  return {
    name: list[0], zone: list[1], memory: list[2], thresholds: list[3] < 0 ? [] : run.thresholds[list[3]],
    state, level, available: inKib(unpackSeries(list[5]), Math.max(1, Math.floor(list[2] / 4096)), Math.max(1, run.sample)),
  };
}

function unpackRun(run) {
  const text = (place) => run.texts[place];
  return {
    ...run,
    length: Math.max(run.length, 1),
    zones: run.zones.map((zone) => ({
      name: zone.name, state: unpackSeries(zone.state), waiting: unpackSeries(zone.waiting), brake: unpackSeries(zone.brake),
    })),
    nodes: run.nodes.map((node) => unpackNode(node, run)),
    running: unpackSeries(run.running),
    pending: unpackSeries(run.pending),
    terminating: unpackSeries(run.terminating),
    events: run.events.map(([at, kind, node, subject, place]) => ({ at, kind, node, subject, text: text(place) })),
    decisions: run.decisions.map(([at, node, area, verdict, lines]) => ({
      at, node, area: text(area), verdict: text(verdict), lines,
      get head() { return text(lines[0]) ?? ''; },
      get body() { return lines.map(text).join('\n'); },
    })),
  };
}

export function readRuns(json) {
  const data = JSON.parse(json);
  if (data.format !== 2) throw new Error(`data of format ${data.format}, this page reads 2`);
  return data.runs.map(unpackRun);
}
