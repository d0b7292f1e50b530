// Colours come from the style sheet, so that they follow the colour scheme.

let known = new Map();
let scheme = 0;

export function forgetColours() {
  known = new Map();
  scheme += 1;
}

/** Another number when the colours may be others. */
export function colourScheme() {
  return scheme;
}

/** The value of a custom property, e.g. colour('--s1'). */
export function colour(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return known.get(name);
}

/** "#rgb" or "#rrggbb" as a pixel of an ImageData seen as 32 bits. */
export function pixel(name) {
  let hex = colour(name).slice(1);
  if (hex.length === 3) hex = [...hex].map((each) => each + each).join('');
  const [red, green, blue] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/** An element; children that are strings become text, whatever is in them. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === 'class') element.className = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** [[property, label, kind?], ...] as a legend. */
export function legend(entries) {
  return make('ul', { class: 'legend' }, ...entries.map(([property, label, kind]) => {
    const mark = make('i', { class: kind ?? '' });
    if (kind === 'dashed') mark.style.borderColor = `var(${property})`;
    else mark.style.background = `var(${property})`;
    return make('li', {}, mark, label);
  }));
}
