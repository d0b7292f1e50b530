// One node: memory against its thresholds, its conditions, what happened on it.
import { amount, clock } from './format.js';
import { EVENT_KINDS, MACHINES, STATUS, stateParts } from './data.js';
import { colour, legend, make } from './colours.js';
import { chart } from './canvas.js';
import { dashed, drawLane, part, stepLine, valueAxis } from './overview.js';

const CONDITION_LANES = [
  ['Machine', (is) => ['--s1', '--s4', '--s3'][is.machine]],
  ['Ready', (is) => ['--s0', '--s1', '--s4', '--s5'][is.ready]],
  ['MemoryPressure', (is) => pressureColour(is.memory)],
  ['DiskPressure', (is) => pressureColour(is.disk)],
  ['PIDPressure', (is) => pressureColour(is.pid)],
  ['Tainted', (is) => (is.tainted ? '--s6' : '--s0')],
];

function pressureColour(status) {
  return ['--s0', '--s2', '--s1', '--s5'][status];
}

function drawMemory(frame, node, events) {
  const most = Math.max(1, node.memory);
  const y = (kib) => frame.bottom - (kib / most) * (frame.bottom - frame.top);
  valueAxis(frame, most, amount, true);
  frame.timeAxis();
  frame.clip();
  stepLine(frame, node.available, '--line1', (value) => (value < 0 ? null : y(value)));
  frame.context.restore();
  for (const [kib, grace] of node.thresholds) dashed(frame, y(kib), grace > 0 ? '--line2' : '--bad');
  frame.context.fillStyle = colour('--bad');
  for (const event of events) {
    if (!EVENT_KINDS[event.kind].harm || event.at < frame.view.from || event.at > frame.view.to) continue;
    frame.context.fillRect(frame.x(event.at) - 1, frame.top, 2, 8);
  }
}

function drawConditions(frame, node) {
  CONDITION_LANES.forEach(([name, style], i) => {
    const y = frame.top + i * 22;
    drawLane(frame, node.state, y, 14, (packed) => colour(style(stateParts(packed))));
    frame.label(name, y + 7);
  });
  frame.timeAxis();
}

const TABLE_ROWS = 500;

function conditionTable(node) {
  const head = ['From', 'Machine', 'Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure', 'Tainted'];
  const rows = Array.from({ length: Math.min(node.state.size, TABLE_ROWS) }, (none, i) => {
    const is = stateParts(node.state.values[i]);
    return [clock(node.state.times[i]), MACHINES[is.machine], STATUS[is.ready], STATUS[is.memory], STATUS[is.disk], STATUS[is.pid],
      is.tainted ? 'yes' : 'no'];
  });
  return make('div', { class: 'table', tabIndex: 0, role: 'region', 'aria-label': 'Conditions as a table' }, make('table', {},
    make('thead', {}, make('tr', {}, ...head.map((name) => make('th', { scope: 'col' }, name)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((cell) => make('td', {}, cell)))))));
}

/** The part about the chosen node: made anew when another one is chosen. */
export function nodePart(view) {
  const { run } = view;
  const place = make('div', { class: 'grid', id: 'node' });
  const matches = make('datalist', { id: 'node-names' });
  const search = make('input', { type: 'search', list: 'node-names', 'aria-label': 'Choose a node', placeholder: 'name of a node',
    oninput: () => {
      const wanted = search.value.trim();
      const found = run.nodes.findIndex((node) => node.name === wanted);
      matches.replaceChildren(...run.nodes.filter((node) => node.name.includes(wanted)).slice(0, 40)
        .map((node) => make('option', { value: node.name })));
      if (found >= 0) view.set({ node: found });
    } });
  let shown = null;
  let charts = [];
  const scoped = { // charts of a node that is not shown any more need not hear of changes
    run, get from() { return view.from; }, get to() { return view.to; }, get cursor() { return view.cursor; },
    set: (change) => view.set(change), look: (from, to) => view.look(from, to), listen: (draw) => charts.push(draw),
  };
  const fill = () => {
    const node = run.nodes[view.node];
    const events = run.events.filter((event) => event.node === view.node);
    charts = [];
    const thresholds = node.thresholds.map(([kib, grace]) => `${amount(kib)} (${grace > 0 ? `soft, ${grace} s` : 'hard'})`).join(', ');
    const table = make('details', { ontoggle: () => { if (table.children.length < 2) table.append(conditionTable(node)); } },
      make('summary', {}, 'As a table'));
    place.replaceChildren(
      part(`Node ${node.name}`, `memory.available in ${run.zones[node.zone].name}, ${amount(node.memory)} in all; thresholds: `
        + `${thresholds || 'none'}. Marks at the top: evictions, deletions, taints, kills.`,
      make('div', { class: 'tools' }, search, matches),
      legend([['--line1', 'memory.available', 'stroke'], ['--bad', 'hard threshold', 'dashed'], ['--bad', 'event']]),
      chart(scoped, `memory.available of ${node.name} over time`, 200, (frame) => drawMemory(frame, node, events))),
      part(`Conditions of ${node.name}`, 'What the node object says, and what the machine really is.',
        legend([['--s1', 'as it should be'], ['--s2', 'pressure'], ['--s3', 'machine cut off'], ['--s4', 'False, or machine down'],
          ['--s5', 'Unknown'], ['--s6', 'tainted'], ['--s0', 'absent']]),
        chart(scoped, `Conditions of ${node.name} over time`, CONDITION_LANES.length * 22 + 42, (frame) => drawConditions(frame, node)),
        table));
    for (const canvas of place.querySelectorAll('canvas')) canvas.dataset.node = node.name;
  };
  view.listen(() => {
    if (view.node === null) return;
    if (shown !== view.node) {
      shown = view.node;
      fill();
    }
    for (const draw of charts) draw();
  });
  return place;
}
