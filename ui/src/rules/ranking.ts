// The order in which a kubelet would evict pods under memory pressure, where no agent of ours says it itself.
// Source: Kubernetes docs, "Node-pressure Eviction", pod selection; held against tests/vectors/eviction/rank_memory. Pure.
export interface Ranked { uid: string; ns: string; name: string; usage: number | null; request: number; priority: number; critical: boolean }

export const aboveRequest = (pod: Ranked): number => (pod.usage ?? 0) - pod.request;

function compare(a: Ranked, b: Ranked): number {
  const missing = Number(b.usage === null) - Number(a.usage === null);
  if (missing !== 0) return missing;
  const exceeds = Number(aboveRequest(b) > 0) - Number(aboveRequest(a) > 0);
  if (a.usage !== null && exceeds !== 0) return exceeds;
  if (a.priority !== b.priority) return a.priority - b.priority;
  const above = a.usage === null ? 0 : aboveRequest(b) - aboveRequest(a);
  if (above !== 0) return above;
  const [left, right] = [`${a.ns}/${a.name}`, `${b.ns}/${b.name}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

export const rankForMemory = (pods: Ranked[]): Ranked[] => [...pods].sort(compare);

/** Why a pod stands where it does. */
export function placeWords(pod: Ranked): string {
  if (pod.critical) return 'critical: never evicted';
  if (pod.usage === null) return 'not measured: goes first';
  return aboveRequest(pod) > 0 ? 'uses more than it asked for' : 'within what it asked for';
}
