// Where the tiles of all nodes lie: zones below one another or side by side, as large as the room allows. Pure.
export interface Tile { name: string; x: number; y: number }
export interface ZoneBox { zone: string; x: number; y: number; width: number; height: number; columns: number; tiles: Tile[] }
export interface Layout { size: number; gap: number; height: number; zones: ZoneBox[] }

const HEAD = 22; // height of a zone's name
const PAD = 10;
const NAME_WIDTH = 130; // width of a zone's name
export const SIZE_MAX = 34;
export const SIZE_MIN = 4;

/** Where the boxes lie, still without tiles. */
function boxes(groups: [string, string[]][], width: number, size: number, gap: number): Layout {
  const step = size + gap;
  const zones: ZoneBox[] = [];
  let x = 0;
  let y = 0;
  let row = 0; // height of the row of boxes at hand
  for (const [zone, names] of groups) {
    const columnsMax = Math.max(1, Math.floor((width + gap) / step));
    const columns = Math.min(columnsMax, Math.max(Math.ceil(NAME_WIDTH / step), Math.ceil(Math.sqrt(names.length * 2.2)))); // about twice as wide as high
    const boxWidth = Math.min(width, columns * step - gap);
    const rows = Math.ceil(names.length / columns);
    const boxHeight = HEAD + rows * step - gap;
    if (x > 0 && x + boxWidth > width) { x = 0; y += row + PAD; row = 0; }
    zones.push({
      zone, x: Math.round(x), y: Math.round(y), width: boxWidth, height: boxHeight, columns, tiles: [],
    });
    x += boxWidth + PAD * 1.6;
    row = Math.max(row, boxHeight);
  }
  return { size, gap, height: y + row, zones };
}

function filled(layout: Layout, groups: [string, string[]][]): Layout {
  const step = layout.size + layout.gap;
  layout.zones.forEach((zone, place) => {
    zone.tiles = groups[place]![1].map((name, i) => ({ name, x: zone.x + (i % zone.columns) * step, y: zone.y + HEAD + Math.floor(i / zone.columns) * step }));
  });
  return layout;
}

/** `groups`: names by zone, in the order in which they are shown. `room`: the height that is not to be passed, if it can
 *  be helped. */
export function layOut(groups: [string, string[]][], width: number, room: number): Layout {
  for (let size = SIZE_MAX; size > SIZE_MIN; size -= size > 14 ? 2 : 1) {
    const layout = boxes(groups, width, size, size > 12 ? 3 : size > 6 ? 2 : 1);
    if (layout.height <= room) return filled(layout, groups);
  }
  return filled(boxes(groups, width, SIZE_MIN, 1), groups);
}

export function tileAt(layout: Layout, x: number, y: number): string | null {
  for (const zone of layout.zones) {
    if (x < zone.x || y < zone.y || x > zone.x + zone.width || y > zone.y + zone.height) continue;
    const step = layout.size + layout.gap;
    const first = zone.tiles[0];
    if (first === undefined) return null;
    const column = Math.floor((x - first.x + layout.gap / 2) / step);
    const row = Math.floor((y - first.y + layout.gap / 2) / step);
    if (column < 0 || row < 0 || column >= zone.columns) return null;
    return zone.tiles[row * zone.columns + column]?.name ?? null;
  }
  return null;
}
