// Numbers and times as people read them. Times are virtual milliseconds since the beginning of the run; people count them
// from the beginning of the timeline, as the terminal does.

let origin = 0;

/** `ms`: the time that clock() shows as 0:00. */
export function countFrom(ms) {
  origin = ms;
}

export function clock(ms) {
  const since = Math.round((ms - origin) / 1000);
  const sign = since < 0 ? '\u2212' : '';
  const all = Math.abs(since);
  const hours = Math.floor(all / 3600);
  const minutes = Math.floor(all / 60) % 60;
  const two = (n) => String(n).padStart(2, '0');
  return sign + (hours > 0 ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`);
}

/** "90 s", "20 min", "1 h 30 min". */
export function span(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

const UNITS = ['Ki', 'Mi', 'Gi', 'Ti'];

export function amount(kib) {
  let value = kib;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  const digits = value !== 0 && Math.abs(value) < 10 && value % 1 !== 0 ? 1 : 0;
  return `${value.toFixed(digits)}${UNITS[unit]}`;
}

export function count(n) {
  return n.toLocaleString('en-US').replaceAll(',', '\u2009');
}

export function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Times in [from, to] that clock() shows as round ones, at most about `most` of them. */
export function timeTicks(from, to, most) {
  const wanted = (to - from) / 1000 / Math.max(1, most);
  const step = 1000 * (TIME_STEPS.find((each) => each >= wanted) ?? 172800);
  const ticks = [];
  for (let at = origin + Math.ceil((from - origin) / step) * step; at <= to; at += step) ticks.push(at);
  return ticks;
}

/** Round values from 0 to `max`, three to six of them. */
export function valueTicks(max, binary) {
  const base = binary ? 2 ** Math.floor(Math.log2(max / 4)) : 10 ** Math.floor(Math.log10(max / 4 || 1));
  const step = [1, 2, 5, 10].map((each) => (binary ? base * Math.min(each, 4) : base * each)).find((each) => max / each <= 5) ?? max;
  const whole = binary ? step : Math.max(1, step);
  const ticks = [];
  for (let value = 0; value <= max; value += whole) ticks.push(value);
  return ticks;
}
