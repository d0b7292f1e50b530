// The state of a node, in one word, and the sentence for it. Pure.
import type { NodeInfo } from './objects.ts';

/** Worst first. */
export const STATES = ['tainted', 'unknown', 'notready', 'late', 'pressure', 'held', 'cordoned', 'ready'] as const;
export type State = (typeof STATES)[number];

export const STATE_WORDS: Record<State, string> = {
  tainted: 'Tainted, pods leave', unknown: 'Unknown', notready: 'Not ready', late: 'Heartbeat late',
  pressure: 'Under pressure', held: 'Held by a brake', cordoned: 'Cordoned', ready: 'Ready',
};

/** A letter on tiles that are large enough, so that colour is not the only sign. */
export const STATE_MARKS: Record<State, string> = {
  tainted: 'T', unknown: '?', notready: 'N', late: 'L', pressure: 'P', held: 'H', cordoned: 'C', ready: '',
};

const LIFECYCLE_TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable', 'node.alpha.kubernetes.io/notReady', 'node.alpha.kubernetes.io/unreachable'];
const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];
/** Without a renewal for so long a heartbeat is late: the lease is renewed every ten seconds. */
export const LATE_SECONDS = 25;

export const readyStatus = (node: NodeInfo): string => node.conditions.find((each) => each.type === 'Ready')?.status ?? '';
export const pressures = (node: NodeInfo): string[] => node.conditions.filter((each) => PRESSURES.includes(each.type) && each.status === 'True').map((each) => each.type);
export const isTainted = (node: NodeInfo): boolean => node.taints.some((each) => each.effect === 'NoExecute' && LIFECYCLE_TAINTS.includes(each.key));

/** `silence`: seconds since this page saw the lease change, by its own clock; null: there is no lease to go by.
 *  `held`: a brake holds the node's zone back. */
export function stateOf(node: NodeInfo, silence: number | null, held: boolean): State {
  const ready = readyStatus(node);
  if (ready !== 'True' && isTainted(node)) return 'tainted';
  if (ready !== 'True' && held) return 'held';
  if (ready === 'Unknown' || ready === '') return 'unknown';
  if (ready !== 'True') return 'notready';
  if (silence !== null && silence > LATE_SECONDS) return 'late';
  if (pressures(node).length > 0) return 'pressure';
  return node.cordoned ? 'cordoned' : 'ready';
}

export function sentenceOf(node: NodeInfo, state: State, silence: number | null): string {
  const ready = node.conditions.find((each) => each.type === 'Ready');
  const why = ready?.message ? `: ${ready.message.replace(/[. ]+$/, '')}` : '';
  switch (state) {
    case 'tainted': return `node ${node.name} is tainted and its pods leave it${why}`;
    case 'held': return `node ${node.name} does not report, and a brake keeps it from being tainted${why}`;
    case 'unknown': return ready === undefined ? `node ${node.name} has not reported yet` : `node ${node.name} does not report any more${why}`;
    case 'notready': return `node ${node.name} is not ready${why}`;
    case 'late': return `node ${node.name} is ready, but its last heartbeat is ${Math.round(silence ?? 0)}s old`;
    case 'pressure': return `node ${node.name} is under ${pressures(node).map((each) => each.replace(/Pressure$/, '').toLowerCase()).join(' and ')} pressure: it takes no new pods that do not tolerate it, and may evict`;
    case 'cordoned': return `node ${node.name} is ready, and cordoned: no new pods come to it`;
    case 'ready': return `node ${node.name} is ready`;
  }
}

export interface ZoneCount { zone: string; nodes: number; ready: number; states: Record<State, number> }

export function countZones(nodes: Iterable<{ zone: string; state: State; ready: boolean }>): ZoneCount[] {
  const zones = new Map<string, ZoneCount>();
  for (const node of nodes) {
    let zone = zones.get(node.zone);
    if (zone === undefined) {
      zone = { zone: node.zone, nodes: 0, ready: 0, states: Object.fromEntries(STATES.map((each) => [each, 0])) as Record<State, number> };
      zones.set(node.zone, zone);
    }
    zone.nodes += 1;
    zone.ready += node.ready ? 1 : 0;
    zone.states[node.state] += 1;
  }
  return [...zones.values()].sort((a, b) => (a.zone < b.zone ? -1 : a.zone > b.zone ? 1 : 0));
}

/** The state of a zone for a lifecycle controller with the default settings. Source: Kubernetes docs, "Nodes", rate limits on
 *  eviction; `--unhealthy-zone-threshold` 0.55. */
export function zoneState(zone: { nodes: number; ready: number }): string {
  const silent = zone.nodes - zone.ready;
  if (zone.ready === 0 && silent > 0) return 'FullDisruption';
  return silent > 2 && silent / zone.nodes >= 0.55 ? 'PartialDisruption' : 'Normal';
}
