// The events and decisions of a run as lists: folded, filtered, a page at a time.
import { clock, count } from './format.js';
import { EVENT_KINDS } from './data.js';
import { make } from './colours.js';

const PAGE = 40;

/** A list with filters. `rows`: what there is; `groups`: [[key of a row, label], ...] that can be switched off. */
class FilteredList {
  constructor({ title, about, empty, noun, rows, groupOf, groups, textOf, element }) {
    Object.assign(this, { title, about, empty, noun, rows, groupOf, groups, textOf, make: element });
    this.off = new Set();
    this.words = '';
    this.shown = PAGE;
    this.list = make('ul', { class: 'list' });
    this.more = make('button', { type: 'button', onclick: () => { this.shown += PAGE; this.fill(true); } });
    this.state = make('p', { class: 'empty', role: 'status' });
  }

  filtered() {
    const words = this.words.toLowerCase();
    return this.rows.filter((row) => !this.off.has(this.groupOf(row)) && (words === '' || this.textOf(row).toLowerCase().includes(words)));
  }

  fill(keep = false) {
    const rows = this.filtered();
    const from = keep ? this.list.children.length : 0;
    const made = rows.slice(from, this.shown).map((row) => make('li', {}, this.make(row)));
    if (keep) this.list.append(...made);
    else this.list.replaceChildren(...made);
    this.list.hidden = rows.length === 0;
    const left = rows.length - Math.min(rows.length, this.shown);
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${count(Math.min(PAGE, left))} more`;
    if (this.rows.length === 0) this.state.textContent = this.empty;
    else if (rows.length === 0) this.state.textContent = `None of the ${count(this.rows.length)} ${this.noun} matches.`;
    else this.state.textContent = `${count(Math.min(rows.length, this.shown))} of ${count(rows.length)} ${this.noun}`;
  }

  element() {
    const boxes = this.groups.filter(([key]) => this.rows.some((row) => this.groupOf(row) === key)).map(([key, label]) => {
      const box = make('input', { type: 'checkbox', checked: true, onchange: () => {
        box.checked ? this.off.delete(key) : this.off.add(key);
        this.shown = PAGE;
        this.fill();
      } });
      return make('label', {}, box, `${label} (${count(this.rows.filter((row) => this.groupOf(row) === key).length)})`);
    });
    const search = make('input', { type: 'search', placeholder: 'filter by name or words', 'aria-label': `Filter ${this.noun}`,
      oninput: () => {
        this.words = search.value;
        this.shown = PAGE;
        this.fill();
      } });
    const tools = this.rows.length ? [make('div', { class: 'tools' }, search, ...boxes)] : [];
    this.fill();
    const heading = make('h2', {}, `${this.title} (${count(this.rows.length)})`);
    return make('section', { 'aria-label': this.title }, make('details', { class: 'fold' }, make('summary', {}, heading),
      make('p', { class: 'sub' }, this.about), ...tools, this.list, this.state, this.more));
  }
}

function nodeLink(view, place) {
  const name = view.run.nodes[place]?.name;
  if (name === undefined) return '';
  return make('button', { type: 'button', class: 'link', onclick: () => {
    view.set({ node: place });
    document.getElementById('node').scrollIntoView({ block: 'start' });
  } }, name);
}

export function eventList(view) {
  const { run } = view;
  return new FilteredList({
    title: 'Events', noun: 'events', rows: run.events, groupOf: (event) => event.kind,
    about: 'What was seen to happen to nodes and pods, oldest first.',
    empty: 'Nothing happened: no eviction, no taint, no node that left readiness.',
    groups: EVENT_KINDS.map((kind, i) => [i, kind.name]),
    textOf: (event) => `${event.subject} ${event.text} ${run.nodes[event.node]?.name ?? ''} ${EVENT_KINDS[event.kind].name}`,
    element: (event) => {
      const kind = EVENT_KINDS[event.kind];
      const about = make('span', {}, event.subject);
      if (event.node >= 0) about.append(event.subject ? ' on ' : '', nodeLink(view, event.node));
      return make('div', { class: 'event' }, make('time', {}, clock(event.at)),
        make('span', { class: kind.harm ? 'tag harm' : 'tag' }, kind.name), about, make('span', {}, event.text));
    },
  }).element();
}

export function decisionList(view) {
  const { run } = view;
  const areas = [...new Set(run.decisions.map((decision) => decision.area))].sort();
  return new FilteredList({
    title: 'Decisions', noun: 'decisions', rows: run.decisions, groupOf: (decision) => decision.area,
    about: 'What agents, controllers and the scheduler decided. Each unfolds to what spillway explain shows: what was measured, who was '
      + 'compared, what held it back, what it cost.',
    empty: 'No decisions: nothing had to be evicted, tainted, held or turned away.',
    groups: areas.map((area) => [area, area]),
    textOf: (decision) => `${decision.head} ${run.nodes[decision.node]?.name ?? ''} ${decision.verdict}`,
    element: (decision) => {
      const tag = make('span', { class: decision.verdict === 'acts' ? 'tag acts' : 'tag' }, `${decision.area}: ${decision.verdict}`);
      const unfold = () => {
        if (!folded.open || folded.querySelector('pre')) return;
        const text = make('pre', { tabIndex: 0, 'aria-label': 'The decision explained' }, decision.body);
        const links = decision.node >= 0 ? [make('p', {}, 'On ', nodeLink(view, decision.node))] : [];
        folded.append(text, ...links);
        view.set({ cursor: Math.min(Math.max(decision.at, view.from), view.to) });
      };
      const folded = make('details', { ontoggle: unfold },
        make('summary', {}, make('time', {}, clock(decision.at)), ' ', tag, ' ', decision.head));
      return folded;
    },
  }).element();
}
