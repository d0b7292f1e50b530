// The parts that all charts share: a canvas as sharp as the screen, the axes, the window of time and its cursor.
import { clock, timeTicks } from './format.js';
import { colour, colourScheme, make } from './colours.js';

/** The visible part of a run: `from` to `to`, cursor and node. Listeners are called after changes, once per frame. */
export class View {
  constructor(run) {
    this.run = run;
    this.from = 0;
    this.to = run.length;
    this.cursor = null;
    this.node = null;
    this.listeners = [];
    this.waiting = false;
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  set(change) {
    Object.assign(this, change);
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const listener of this.listeners) listener();
    });
  }

  look(from, to) {
    const width = Math.min(Math.max(to - from, 5000), this.run.length);
    const begin = Math.min(Math.max(from, 0), this.run.length - width);
    this.set({ from: begin, to: begin + width });
  }

  zoom(factor) {
    const middle = this.cursor ?? (this.from + this.to) / 2;
    this.look(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }
}

/** Sizes the canvas for the screen and clears it. null: it is not shown. */
export function surface(canvas, height) {
  const width = canvas.clientWidth;
  if (width === 0) return null;
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = `12px ${colour('--sans')}`;
  context.textBaseline = 'middle';
  return { context, width, height };
}

export function gutter(width) {
  return width < 520 ? 112 : 124;
}

/** The text, cut so that it fits. */
export function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && context.measureText(`${cut}\u2026`).width > width) cut = cut.slice(0, -1);
  return `${cut}\u2026`;
}

export class Frame {
  /** The part of a surface where time runs: left of it labels, below it the axis. */
  constructor(view, drawn, left, bottom = 34, top = 6) {
    this.view = view;
    this.context = drawn.context;
    this.left = left;
    this.right = drawn.width - 10;
    this.top = top;
    this.bottom = drawn.height - bottom;
  }

  x(at) {
    return this.left + ((at - this.view.from) / (this.view.to - this.view.from)) * (this.right - this.left);
  }

  timeAxis() {
    const { context } = this;
    context.fillStyle = colour('--quiet');
    context.strokeStyle = colour('--grid');
    context.textAlign = 'center';
    context.beginPath();
    const most = Math.floor((this.right - this.left) / 56);
    for (const at of timeTicks(this.view.from, this.view.to, most)) {
      const x = Math.round(this.x(at)) + 0.5;
      context.moveTo(x, this.top);
      context.lineTo(x, this.bottom + 4);
      const half = context.measureText(clock(at)).width / 2;
      if (x - half >= this.left - 14 && x + half <= this.right + 10) context.fillText(clock(at), x, this.bottom + 12);
    }
    context.stroke();
    context.textAlign = 'right';
    context.fillText(this.view.to >= 3600000 ? 'virtual time, h:min:s' : 'virtual time, min:s', this.right, this.bottom + 27);
  }

  cursor() {
    const { cursor, from, to } = this.view;
    if (cursor === null || cursor < from || cursor > to) return;
    const x = Math.round(this.x(cursor)) + 0.5;
    this.context.strokeStyle = colour('--cursor');
    this.context.beginPath();
    this.context.moveTo(x, this.top);
    this.context.lineTo(x, this.bottom);
    this.context.stroke();
  }

  label(text, y, width = this.left - 10) {
    this.context.fillStyle = colour('--text');
    this.context.textAlign = 'right';
    this.context.fillText(fitting(this.context, text, width), this.left - 8, y);
  }

  clip() {
    this.context.save();
    this.context.beginPath();
    this.context.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    this.context.clip();
  }
}

/** A canvas that is drawn when the view changes, moves the cursor, and takes a window of time by dragging. */
export function chart(view, label, height, draw) {
  const canvas = make('canvas', { role: 'img', 'aria-label': label });
  const left = () => gutter(canvas.clientWidth);
  const timeOf = (event) => {
    const share = (event.offsetX - left()) / (canvas.clientWidth - 10 - left());
    return view.from + Math.min(1, Math.max(0, share)) * (view.to - view.from);
  };
  let begin = null;
  const base = document.createElement('canvas'); // all but the cursor, which moves most
  let key = '';
  const redraw = () => {
    const high = typeof height === 'function' ? height() : height;
    const now = [view.from, view.to, canvas.clientWidth, high, window.devicePixelRatio, colourScheme()].join();
    if (canvas.clientWidth === 0) return;
    const fresh = now !== key;
    const drawn = surface(canvas, high);
    const frame = new Frame(view, drawn, left());
    if (fresh) {
      draw(frame);
      base.width = canvas.width;
      base.height = canvas.height;
      base.getContext('2d').drawImage(canvas, 0, 0);
      key = now;
    } else {
      drawn.context.drawImage(base, 0, 0, drawn.width, drawn.height);
    }
    frame.cursor();
  };
  canvas.addEventListener('pointermove', (event) => view.set({ cursor: timeOf(event) }));
  canvas.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'mouse' && event.button === 0) begin = timeOf(event);
  });
  canvas.addEventListener('pointerup', (event) => {
    const end = timeOf(event);
    if (begin !== null && Math.abs(end - begin) > (view.to - view.from) / 50) view.look(Math.min(begin, end), Math.max(begin, end));
    begin = null;
  });
  view.listen(redraw);
  return canvas;
}
