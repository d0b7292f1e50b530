// Puts the page together for one run, and again when another one is chosen.
import { clock, count, countFrom, plural, span } from './format.js';
import { KIND, readRuns, valueAt } from './data.js';
import { forgetColours, make } from './colours.js';
import { View } from './canvas.js';
import { overview, tellMoment } from './overview.js';
import { HeatMap } from './heat.js';
import { nodePart } from './node.js';
import { decisionList, eventList } from './lists.js';

/** The result of the run: the words of the terminal. */
function verdict(run) {
  const { summary } = run;
  if (!summary.verdict) return [];
  const parts = [make('p', { class: 'headline' }, summary.verdict), ...summary.sentences.map((text) => make('p', {}, text))];
  const expected = summary.expectations.map(([held, text, seen]) => make('li', { class: held ? 'held' : 'missed' },
    make('b', {}, held ? 'pass' : 'FAIL'), ` ${text} (${seen})`));
  if (expected.length) parts.push(make('ul', {}, ...expected));
  return [make('div', { class: summary.good ? 'verdict' : 'verdict bad', role: 'group', 'aria-label': 'Result' }, ...parts)];
}

function figures(run) {
  const held = run.brakes.length ? run.brakes.join(', ') : 'none';
  const facts = [[plural(run.nodes.length, 'node', 'nodes'), ''], [plural(run.zones.length, 'zone', 'zones'), ''],
    [plural(valueAt(run.running, run.length, 0), 'pod runs', 'pods run'), 'at the end'], [span(run.length - run.timeline), 'of virtual time'],
    [`seed ${run.seed}`, ''], ['brakes that held:', held], [`sampled every ${span(run.sample)}`, '']];
  return [
    make('ul', { class: 'facts' }, ...facts.map(([strong, weak]) => make('li', {}, make('b', {}, strong), ` ${weak}`))),
    make('ul', { class: 'cards' },
      ...run.summary.figures.map(([value, words, bad]) => make('li', { class: bad ? 'bad' : '' }, make('b', {}, value), make('span', {}, words)))),
  ];
}

function notices(run) {
  const made = [];
  if (run.violations.length) {
    made.push(make('div', { class: 'notice' }, make('b', {}, `${plural(run.violations.length, 'promise was', 'promises were')} broken`),
      make('ul', {}, ...run.violations.slice(0, 50).map((text) => make('li', {}, text)))));
  }
  const [points, events, decisions] = run.leftOut;
  const left = [[points, 'samples'], [events, 'events'], [decisions, 'decisions']].filter(([n]) => n > 0);
  if (left.length) {
    made.push(make('p', { class: 'notice mild' }, 'The run was longer than this report can hold: the last '
      + `${left.map(([n, what]) => `${count(n)} ${what}`).join(', ')} are not in it.`));
  }
  return made;
}

function timeBar(view) {
  const told = make('output', {});
  const button = (label, text, act) => make('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, text);
  const whole = button('Show the whole run', 'Whole run', () => view.look(0, view.run.length));
  view.listen(() => {
    const window = `${clock(view.from)} to ${clock(view.to)}`;
    const at = view.cursor;
    told.textContent = at === null ? `${window}. Point at a chart to read a moment.` : `${clock(at)}: ${tellMoment(view.run, at)}`;
    whole.disabled = view.from === 0 && view.to === view.run.length;
  });
  return make('div', { class: 'bar', role: 'group', 'aria-label': 'Window of time' },
    make('div', { class: 'group' }, button('Earlier', '\u2190', () => view.pan(-0.5)), button('Later', '\u2192', () => view.pan(0.5)),
      button('Zoom in', '+', () => view.zoom(0.5)), button('Zoom out', '\u2212', () => view.zoom(2)), whole), told);
}

let shown = null;

function show(runs, place) {
  const run = runs[place];
  countFrom(run.timeline);
  const view = new View(run);
  const heat = new HeatMap(view);
  const choice = make('select', { onchange: () => show(runs, Number(choice.value)) },
    ...runs.map((each, i) => make('option', { value: String(i) }, each.name)));
  choice.value = String(place);
  const chooser = runs.length > 1 ? [make('div', { class: 'tools' }, make('label', {}, 'Run', choice))] : [];
  document.getElementById('top').replaceChildren(make('h1', {}, run.name), make('p', { class: 'sub' }, run.story), ...chooser,
    ...verdict(run), ...notices(run), ...figures(run));
  document.getElementById('main').replaceChildren(timeBar(view), overview(view), heat.element(), nodePart(view), decisionList(view),
    eventList(view));
  const worst = run.nodes.findIndex((node) => node.level.values.includes(6));
  const evicted = run.events.find((event) => event.kind === KIND.evicted)?.node ?? -1;
  view.set({ node: run.nodes.length ? Math.max(0, evicted >= 0 ? evicted : worst) : null });
  shown = view;
}

function redraw() {
  forgetColours();
  shown?.set({});
}

try {
  show(readRuns(document.getElementById('data').textContent), 0);
  new ResizeObserver(redraw).observe(document.getElementById('main'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
} catch (error) {
  document.getElementById('top').append(make('p', { class: 'notice' }, `This report cannot be shown: ${error.message}`));
  throw error;
}
