// The heat map: a row per node, time from left to right. Only what is in sight is computed, as pixels, so that 5,000 rows
// scroll as smoothly as fifty.
import { amount, clock, plural } from './format.js';
import { NODE_STATES, placeAt, valueAt } from './data.js';
import { colour, colourScheme, legend, make, pixel } from './colours.js';
import { Frame, gutter, surface } from './canvas.js';

const HEAT_HEIGHT = 420;
const AXIS = 36;
const ROW_HEIGHTS = { whole: 0, small: 3, medium: 8, large: 16 };
const USED_STEPS = 8;

/** The level of used memory: 0 to 7; the last three are above 70, 85 and 95 %. */
export function usedLevel(available, memory) {
  if (available < 0 || memory <= 0) return -1;
  const used = 1 - available / memory;
  if (used >= 0.95) return 7;
  if (used >= 0.85) return 6;
  if (used >= 0.7) return 5;
  return Math.max(0, Math.min(4, Math.floor(used / 0.14)));
}

/** Levels of columns by rows, the worst of what falls into one cell; -1: nothing. `nodes` are in the order of rows. */
export function heatCells(nodes, from, to, columns, rows, level) {
  const cells = new Int8Array(columns * rows).fill(-1);
  const perMs = columns / (to - from);
  nodes.forEach((node, place) => {
    const row = Math.min(rows - 1, Math.floor((place * rows) / nodes.length)) * columns;
    const { series, of } = level(node);
    for (let i = Math.max(0, placeAt(series, from)); i < series.size && series.times[i] <= to; i += 1) {
      const value = of(series.values[i]);
      const begin = Math.max(0, Math.floor((series.times[i] - from) * perMs));
      const end = i + 1 < series.size ? Math.min(columns, Math.ceil((series.times[i + 1] - from) * perMs)) : columns;
      for (let cell = row + begin; cell < row + Math.max(end, Math.min(begin + 1, columns)); cell += 1)
        if (cells[cell] < value) cells[cell] = value;
    }
  });
  return cells;
}

const harmOf = (node) => {
  let worst = 0;
  let first = Infinity;
  for (let i = 0; i < node.level.size; i += 1) {
    if (node.level.values[i] > worst) {
      worst = node.level.values[i];
      first = node.level.times[i];
    }
  }
  return { worst, first };
};

export const HEAT_ORDERS = {
  zone: (a, b) => a.zone - b.zone || a.name.localeCompare(b.name, 'en', { numeric: true }),
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }),
  harm: (a, b) => b.harm.worst - a.harm.worst || a.harm.first - b.harm.first || a.zone - b.zone,
};

export class HeatMap {
  constructor(view) {
    this.view = view;
    this.what = 'state';
    this.size = view.run.nodes.length > HEAT_HEIGHT / 8 ? 'whole' : 'large';
    this.row = 0;
    this.nodes = view.run.nodes.map((node, place) => ({ ...node, place, harm: harmOf(node) }));
    this.order('zone');
    this.canvas = make('canvas', {});
    this.stretch = make('div', {});
    this.box = make('div', {
      class: 'heat', tabIndex: 0, role: 'application', 'aria-label': 'Heat map of nodes over time',
      'aria-describedby': 'heat-keys', onscroll: () => this.draw(), onkeydown: (event) => this.key(event),
    }, this.canvas, this.stretch);
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('click', (event) => {
      this.point(event);
      this.choose();
    });
    this.readout = make('p', { class: 'readout', role: 'status' });
    this.keys = make('div', {});
    view.listen(() => this.draw());
  }

  order(name) {
    this.nodes.sort(HEAT_ORDERS[name]);
    this.sorted = name;
    this.row = 0;
  }

  rowHeight() {
    if (ROW_HEIGHTS[this.size] > 0) return ROW_HEIGHTS[this.size];
    return Math.min(20, (HEAT_HEIGHT - AXIS - 6) / Math.max(1, this.nodes.length));
  }

  level(node) {
    if (this.what === 'state') return { series: node.level, of: (value) => value };
    return { series: node.available, of: (value) => usedLevel(value, node.memory) };
  }

  palette() {
    const names = this.what === 'state' ? NODE_STATES.map((name, i) => `--s${i}`)
      : Array.from({ length: USED_STEPS }, (none, i) => `--m${i}`);
    return names.map(pixel);
  }

  draw() {
    const inside = Math.ceil(this.rowHeight() * this.nodes.length) + 6;
    const height = Math.min(HEAT_HEIGHT, inside + AXIS);
    const drawn = surface(this.canvas, height);
    if (!drawn) return;
    this.box.style.maxHeight = `${height + 2}px`;
    this.stretch.style.height = `${Math.max(0, inside + AXIS - height)}px`;
    const frame = new Frame(this.view, drawn, gutter(drawn.width), AXIS);
    const sight = frame.bottom - frame.top;
    const rowHeight = this.rowHeight();
    const first = Math.min(Math.floor(this.box.scrollTop / rowHeight), Math.max(0, this.nodes.length - Math.floor(sight / rowHeight)));
    const shown = this.nodes.slice(first, first + Math.floor(sight / rowHeight + 0.001));
    this.first = first;
    this.frame = frame;
    this.cells(frame, shown, rowHeight);
    this.labels(frame, shown, rowHeight);
    frame.timeAxis();
    frame.cursor();
    this.mark(frame, rowHeight);
    this.tell();
  }

  cells(frame, shown, rowHeight) {
    if (shown.length === 0) return;
    const columns = Math.max(1, Math.round(frame.right - frame.left));
    const rows = Math.min(shown.length, Math.max(1, Math.round(shown.length * rowHeight)));
    const { from, to } = this.view;
    const key = [from, to, columns, rows, this.first, this.what, this.sorted, colourScheme()].join();
    if (key !== this.painted) this.sheet = this.paint(shown, from, to, columns, rows);
    this.painted = key;
    frame.context.imageSmoothingEnabled = false;
    frame.context.drawImage(this.sheet, frame.left, frame.top, columns, shown.length * rowHeight);
    if (rowHeight < 8) return;
    frame.context.fillStyle = colour('--card');
    for (let i = 1; i < shown.length; i += 1) frame.context.fillRect(frame.left, frame.top + i * rowHeight - 1, columns, 1);
  }

  paint(shown, from, to, columns, rows) {
    const cells = heatCells(shown, from, to, columns, rows, (node) => this.level(node));
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = this.palette();
    for (let i = 0; i < cells.length; i += 1) if (cells[i] >= 0) pixels[i] = palette[cells[i]];
    const sheet = document.createElement('canvas');
    sheet.width = columns;
    sheet.height = rows;
    sheet.getContext('2d').putImageData(image, 0, 0);
    return sheet;
  }

  /** Names of nodes where there is room for them, else where a zone begins. */
  labels(frame, shown, rowHeight) {
    let free = frame.top;
    let zone = -1;
    shown.forEach((node, i) => {
      const y = frame.top + (i + 0.5) * rowHeight;
      const begins = node.zone !== zone;
      zone = node.zone;
      if (y < free || (rowHeight < 12 && !(begins && this.sorted === 'zone'))) return;
      frame.label(rowHeight < 12 ? this.view.run.zones[node.zone].name : node.name, Math.max(y, frame.top + 7));
      free = y + 13;
    });
  }

  mark(frame, rowHeight) {
    const y = frame.top + (this.row - this.first) * rowHeight;
    if (y < frame.top - 1 || y > frame.bottom) return;
    frame.context.strokeStyle = colour('--cursor');
    frame.context.strokeRect(frame.left - 2.5, y - 0.5, frame.right - frame.left + 4, Math.max(2, rowHeight));
  }

  point(event) {
    if (!this.frame) return;
    const { left, right, top } = this.frame;
    const share = Math.min(1, Math.max(0, (event.offsetX - left) / (right - left)));
    const row = this.first + Math.floor((event.offsetY - top) / this.rowHeight());
    this.row = Math.min(Math.max(row, 0), this.nodes.length - 1);
    this.view.set({ cursor: this.view.from + share * (this.view.to - this.view.from) });
  }

  choose() {
    const node = this.nodes[this.row];
    if (node) this.view.set({ node: node.place });
  }

  key(event) {
    const step = (this.view.to - this.view.from) / 60;
    const page = Math.max(1, Math.floor((HEAT_HEIGHT - AXIS) / this.rowHeight()));
    const rows = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -this.nodes.length, End: this.nodes.length };
    const times = { ArrowLeft: -step, ArrowRight: step };
    if (event.key in rows) this.row = Math.min(Math.max(this.row + rows[event.key], 0), this.nodes.length - 1);
    else if (event.key === 'Enter') this.choose();
    else if (event.key === '+') this.view.zoom(0.5);
    else if (event.key === '-') this.view.zoom(2);
    else if (!(event.key in times)) return;
    event.preventDefault();
    const cursor = (this.view.cursor ?? this.view.from) + (times[event.key] ?? 0);
    this.view.set({ cursor: Math.min(Math.max(cursor, this.view.from), this.view.to) });
    const y = this.row * this.rowHeight();
    const sight = this.frame.bottom - this.frame.top;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    if (y + this.rowHeight() > this.box.scrollTop + sight) this.box.scrollTop = y + this.rowHeight() - sight;
  }

  tell() {
    const node = this.nodes[this.row];
    const at = this.view.cursor;
    if (!node || at === null) {
      this.readout.textContent = 'Point at a cell, or use the keys, to read it.';
      return;
    }
    const available = valueAt(node.available, at, -1);
    const memory = available < 0 ? 'memory not measured' : `${amount(available)} of ${amount(node.memory)} available`;
    this.readout.textContent = `${clock(at)}  ${node.name} (${this.view.run.zones[node.zone].name}): `
      + `${NODE_STATES[valueAt(node.level, at, 0)]}, ${memory}`;
  }

  legend() {
    if (this.what === 'state') return legend(NODE_STATES.map((name, i) => [`--s${i}`, name]));
    const names = ['below 14 %', '14 %', '28 %', '42 %', '56 % of memory used', '70 %', '85 %', '95 %'];
    return legend(names.map((name, i) => [`--m${i}`, name]));
  }

  select(label, names, value, change) {
    const options = Object.entries(names).map(([key, name]) => make('option', { value: key }, name));
    const list = make('select', { onchange: () => { change(list.value); this.show(); } }, ...options);
    list.value = value;
    return make('label', {}, label, list);
  }

  show() {
    this.keys.replaceChildren(this.legend());
    this.box.scrollTop = 0;
    this.draw();
  }

  element() {
    const tools = make('div', { class: 'tools' },
      this.select('Colour', { state: 'state of the node', memory: 'memory used' }, 'state', (value) => { this.what = value; }),
      this.select('Order', { zone: 'by zone', name: 'by name', harm: 'worst first' }, 'zone', (value) => this.order(value)),
      this.select('Rows', { whole: 'all in sight', small: 'small', medium: 'medium', large: 'large' }, this.size,
        (value) => { this.size = value; }));
    this.keys.append(this.legend());
    return make('section', { 'aria-label': 'Heat map' },
      make('h2', {}, 'Heat map'),
      make('p', { class: 'sub', id: 'heat-keys' }, `${plural(this.nodes.length, 'node', 'nodes')}, one row each, over time. Where `
        + 'several share a row, it shows the worst. With the keyboard: arrows move, + and - zoom, Enter opens the node.'),
      tools, this.keys, this.box, this.readout);
  }
}
