// Decisions of all sources as rows of one list: decisions of Spillway agents, and pods and events of a stock cluster.
// Pure.
import { type Decision, headline, isAbout } from './decisions.ts';
import type { Happening, PodInfo } from './objects.ts';

export interface Row {
  id: string; atMs: number; at: string; kind: string; // "Pod" or "Node"
  what: string;     // "evicted", "refused", "tainted", "deleted", "held", "pending"
  ns: string; name: string; node: string; owner: string; reason: string; sentence: string;
  decision: Decision | null; message: string; source: string;
}

export interface Filter { text: string; node: string; owner: string; what: string }
export const WHATS = ['evicted', 'refused', 'tainted', 'deleted', 'held', 'killed', 'pressure', 'not ready', 'spared', 'other'];

function whatOf(decision: Decision): string {
  if (decision.verdict === 'refuses') return 'refused';
  if (decision.verdict === 'waits') return 'held';
  return { evict: 'evicted', preempt: 'evicted', taint: 'tainted', delete: 'deleted', reject: 'refused' }[decision.action] ?? 'other';
}

const leadCode = (decision: Decision): string => decision.reasons.find((each) => each.code !== 'threshold-not-met')?.code ?? '';

const EVENTS: Record<string, string> = {
  Evicted: 'evicted', Preempted: 'evicted', TaintManagerEviction: 'deleted', DeletingAllPods: 'deleted', FailedScheduling: 'refused',
  OutOfmemory: 'refused', OutOfcpu: 'refused', OutOfpods: 'refused', NodeAffinity: 'refused', UnexpectedAdmissionError: 'refused',
  EvictionThresholdMet: 'pressure', FreeDiskSpaceFailed: 'pressure', NodeNotReady: 'not ready', SystemOOM: 'killed', DeletingNode: 'deleted',
};

/** An event of the usual course: nothing failed, and no pod had to go. */
export const isRoutine = (event: Happening): boolean => !event.warning && event.from !== 'this page' && EVENTS[event.reason] === undefined;

const period = (text: string): string => text.replace(/[. \n]+$/, '');

export function rowsOf(decisions: Iterable<Decision[]>, failed: Iterable<PodInfo>, events: Iterable<Happening>): Row[] {
  const rows: Row[] = [];
  const told = new Set<string>(); // uids of pods whose end an agent explains
  const failedPods = [...failed];
  const ownerOf = new Map(failedPods.map((each) => [each.uid, each.owner]));
  for (const list of decisions) {
    for (const decision of list) {
      const { kind, namespace = '', name, uid = '' } = decision.subject;
      if (uid !== '' && decision.verdict !== 'waits') told.add(uid);
      rows.push({
        id: `d/${decision.by}/${decision.atMicros}/${namespace}/${name}`, atMs: decision.atMicros / 1000, at: decision.at, kind, what: whatOf(decision),
        ns: namespace, name, node: kind === 'Node' ? name : decision.by, owner: ownerOf.get(uid) ?? '', reason: leadCode(decision),
        sentence: headline(decision), decision, message: decision.message, source: 'agent',
      });
    }
  }
  for (const pod of failedPods) {
    if (pod.reason === '' || told.has(pod.uid)) continue;
    const ended = pod.conditions.find((each) => each.type === 'DisruptionTarget' || each.type === 'Ready')?.since || pod.startedAt || pod.createdAt;
    const evicted = pod.reason === 'Evicted' || pod.reason === 'Preempting' || pod.reason === 'TerminatedByKubelet';
    rows.push({
      id: `p/${pod.uid}`, atMs: Date.parse(ended) || 0, at: ended, kind: 'Pod', what: evicted ? 'evicted' : 'refused', ns: pod.ns, name: pod.name, node: pod.node,
      owner: pod.owner, reason: pod.reason, decision: null, message: pod.message, source: 'pod',
      sentence: `pod ${pod.ns}/${pod.name} was ${evicted ? 'evicted by' : 'turned away by'} ${pod.node || 'its node'}${pod.message === '' ? '' : `: ${period(pod.message)}`}`,
    });
  }
  const pods = new Set(rows.filter((each) => each.kind === 'Pod').map((each) => `${each.ns}/${each.name}`));
  for (const event of events) {
    if (event.reason === 'NodeNotReady' && event.kind !== 'Node') continue; // each of its pods says it as well
    const what = event.reason === 'TaintManagerEviction' && event.message.startsWith('Cancelling') ? 'spared' : EVENTS[event.reason];
    if (what === undefined || ((what === 'evicted' || what === 'refused') && event.reason !== 'FailedScheduling' && pods.has(`${event.ns}/${event.name}`))) continue;
    const who = event.ns === '' || event.kind === 'Node' ? event.name : `${event.ns}/${event.name}`;
    rows.push({
      id: `e/${event.key}`, atMs: event.atMs, at: event.at, kind: event.kind, what, ns: event.kind === 'Node' ? '' : event.ns, name: event.name, node: event.node, owner: '',
      reason: event.reason, decision: null, message: event.message, source: 'event', sentence: `${event.kind.toLowerCase()} ${who}: ${period(event.message)}`,
    });
  }
  return rows.sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? -1 : 1));
}

export function matches(row: Row, filter: Filter): boolean {
  const within = (text: string, part: string) => part === '' || text.toLowerCase().includes(part.trim().toLowerCase());
  return within(`${row.ns}/${row.name} ${row.reason} ${row.sentence}`, filter.text) && within(row.node, filter.node) && within(row.owner, filter.owner) &&
    (filter.what === '' || row.what === filter.what);
}

/** The decision of the scheduler that left the pod without a node, as its status says it; null: there is none. */
export function fromStatus(pod: PodInfo): Decision | null {
  const scheduled = pod.conditions.find((each) => each.type === 'PodScheduled' && each.status === 'False');
  if (scheduled === undefined || pod.phase === 'Failed') return null;
  const atMs = Date.parse(scheduled.since) || 0;
  return { at: new Date(atMs).toISOString(), atMicros: atMs * 1000, by: pod.scheduler, area: 'scheduling', verdict: 'refuses', action: 'bind',
    subject: { kind: 'Pod', namespace: pod.ns, name: pod.name, uid: pod.uid }, message: scheduled.message, reasons: [], candidates: [], candidatesTotal: 0, cost: [] };
}

/** The sentence first: what is known of a pod from the API alone. */
export function podSentence(pod: PodInfo): string {
  const name = `pod ${pod.ns}/${pod.name}`;
  if (pod.phase === 'Failed') {
    const what = pod.reason === 'Evicted' ? `was evicted by ${pod.node}` : pod.reason === '' ? 'failed' : `failed (${pod.reason})`;
    return `${name} ${what}${pod.message === '' ? '' : `: ${period(pod.message)}`}`;
  }
  const scheduled = pod.conditions.find((each) => each.type === 'PodScheduled');
  if (pod.node === '') return `${name} waits for a node${scheduled?.message ? `: ${period(scheduled.message)}` : ''}`;
  const target = pod.conditions.find((each) => each.type === 'DisruptionTarget' && each.status === 'True');
  if (target !== undefined) return `${name} is to leave ${pod.node}: ${period(target.message || target.reason)}`;
  if (pod.phase === 'Succeeded') return `${name} has done its work on ${pod.node}`;
  if (pod.phase === 'Running') return `${name} runs on ${pod.node}${pod.ready ? '' : ', and is not ready'}; nothing has been decided against it`;
  return `${name} is starting on ${pod.node}`;
}

export const aboutPod = (row: Row, ns: string, name: string): boolean =>
  row.kind === 'Pod' && row.ns === ns && row.name === name && (row.decision === null || isAbout(row.decision.subject, { ns, name }));
