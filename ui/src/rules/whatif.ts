// The question to a simulation of the cluster, and the text of the two futures that come back (docs/simulate.md,
// "As JSON"). Pure.

export type Asked =
  | { kind: 'zone'; zone: string; minutes: number }
  | { kind: 'nodes'; nodes: string[]; minutes: number }
  | { kind: 'threshold'; pods: string; to: string; minutes: number; thresholds: [string, string] };

/** The label of a zone, of "region::zone". */
export const zoneLabel = (zone: string): string => zone.slice(zone.lastIndexOf(':') + 1);

/** The request body, or the mistake in the form. */
export function questionOf(asked: Asked): { body: unknown } | { problem: string } {
  if (!Number.isInteger(asked.minutes) || asked.minutes < 1 || asked.minutes > 60) return { problem: 'Minutes: 1 to 60.' };
  switch (asked.kind) {
    case 'zone': return zoneLabel(asked.zone) === '' ? { problem: 'Choose a zone.' } : { body: { zone: zoneLabel(asked.zone), minutes: asked.minutes } };
    case 'nodes':
      if (asked.nodes.length === 0 || asked.nodes.length > 1000) return { problem: 'Name 1 to 1,000 nodes.' };
      return { body: { nodes: asked.nodes, minutes: asked.minutes } };
    case 'threshold':
      if (!/^[a-z0-9.*-]+\/[a-z0-9.*-]+$/.test(asked.pods)) return { problem: 'Pods: a pattern like default/web-*.' };
      if (!/^[0-9.]+([KMGT]i?|k)?$/.test(asked.to)) return { problem: 'Memory: an amount like 2Gi.' };
      if (asked.thresholds.some((each) => !/^[0-9.]+([KMGT]i?|k|%)?$/.test(each))) return { problem: 'Thresholds: amounts like 100Mi or 5%.' };
      return { body: { pods: asked.pods, to: asked.to, minutes: asked.minutes, memoryAvailable: asked.thresholds } };
  }
}

/** The names in a text, apart by commas or blanks. */
export const namesIn = (text: string): string[] => [...new Set(text.split(/[\s,]+/).filter((each) => each !== ''))];

export interface Future { counts: Record<string, number>; recovered: string | null; lastedSeconds: number; lostPerBin: number[]; taintedPerBin: number[]; lost: number; heldBy: string[]; hash: string }
export interface Happened { atSeconds: number; what: string; object: string; node: string; reason: string }
export interface Figure { what: string; a: string; b: string; differs: boolean }
export interface Outcome { nodes: number; pods: number; a: Future; b: Future; figures: Figure[]; leftOut: string[]; notWell: [string[], string[]]; eventsA: Happened[]; eventsB: Happened[] }

export const BINS = 60;
const LOST = new Set(['evicted', 'deletions', 'oomKills']);
const WORDS: [string, string][] = [['evicted', 'Pods evicted by their node'], ['deletions', 'Pods deleted by controllers'], ['oomKills', 'Pods killed by the kernel'],
  ['unplaced', 'Pods for which no node was found'], ['flips', 'Nodes that left Ready'], ['taints', 'Nodes tainted so that pods leave']];

export const minutesText = (seconds: number): string => (seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`);

function futureOf(run: any): Future {
  const bins = (kinds: (what: string) => boolean): number[] => {
    const counts = new Array<number>(BINS).fill(0);
    for (const each of run.events ?? []) {
      if (!kinds(each.what) || run.lastedSeconds <= 0) continue;
      const bin = Math.min(BINS - 1, Math.max(0, Math.floor((each.atSeconds / run.lastedSeconds) * BINS)));
      counts[bin] = counts[bin]! + 1;
    }
    return counts;
  };
  const lostPerBin = bins((what) => LOST.has(what));
  return {
    counts: run.counts ?? {}, lastedSeconds: run.lastedSeconds ?? 0, lostPerBin, taintedPerBin: bins((what) => what === 'taints'), lost: lostPerBin.reduce((sum, each) => sum + each, 0),
    recovered: typeof run.recoveredAtSeconds === 'number' ? `after ${minutesText(run.recoveredAtSeconds)}` : null, heldBy: run.heldBy ?? [], hash: String(run.traceHash ?? ''),
  };
}

const HAPPENED: Record<string, string> = { evicted: 'evicted', deletions: 'deleted', oomKills: 'killed by the kernel', unplaced: 'no node found', flips: 'left Ready', taints: 'tainted' };
const eventsOf = (run: any): Happened[] => (run.events ?? []).map((each: any) => ({ atSeconds: each.atSeconds, what: HAPPENED[each.what] ?? String(each.what), object: String(each.object), node: String(each.node ?? ''), reason: String(each.reason ?? '') }));

/** null: it is no comparison. */
export function outcomeOf(document: any): Outcome | null {
  if (!document?.a?.counts || !document?.b?.counts) return null;
  const [a, b] = [futureOf(document.a), futureOf(document.b)];
  const row = (what: string, left: string, right: string): Figure => ({ what, a: left, b: right, differs: left !== right });
  const figures = WORDS.map(([key, words]) => row(words, String(a.counts[key] ?? 0), String(b.counts[key] ?? 0)));
  figures.push(row('Nodes tainted at the same time', String(document.a.taintedNodesMax ?? 0), String(document.b.taintedNodesMax ?? 0)));
  figures.push(row('All well again', a.recovered ?? 'not by the end', b.recovered ?? 'not by the end'));
  figures.push(row('Brakes that held', a.heldBy.join(', ') || 'none', b.heldBy.join(', ') || 'none'));
  const leftOut = (document.a.leftOut ?? []).map((each: any) => `${each.what}: ${each.why}`);
  const notWell = (run: any): string[] => (run.unrecovered ?? []).map(String);
  return { notWell: [notWell(document.a), notWell(document.b)], nodes: document.a.nodes ?? 0, pods: document.a.pods ?? 0, a, b, figures, leftOut, eventsA: eventsOf(document.a), eventsB: eventsOf(document.b) };
}

/** The verdict on the two futures, in one sentence. */
export function verdictOf({ a, b }: Outcome, [left, right]: [string, string]): string {
  const pods = (count: number): string => (count === 0 ? 'no pod is lost' : count === 1 ? '1 pod is lost' : `${count} pods are lost`);
  const same = a.lost === b.lost ? `${pods(a.lost)} either way` : `${pods(a.lost)} ${left}, ${b.lost} ${right}`;
  if (a.recovered === b.recovered) return `${same}; the cluster ${a.recovered === null ? 'does not recover' : `recovers ${a.recovered}`}`;
  return `${same}; recovery: ${a.recovered ?? 'not by the end'} ${left}, ${b.recovered ?? 'not by the end'} ${right}`;
}

/** An amount to which a pod may grow on nodes with so many bytes: half of them, at most 2Gi. */
export function growthOf(bytes: number): string {
  const half = Math.min(bytes / 2, 2 * 2 ** 30);
  return half >= 2 ** 30 ? `${Math.floor(half / 2 ** 30)}Gi` : `${Math.max(1, Math.floor(half / 2 ** 20))}Mi`;
}
