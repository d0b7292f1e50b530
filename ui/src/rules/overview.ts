// The objects of a cluster that need a look, each with one sentence: the rules and words of `spillway explain` without arguments
// (src/policy/outlook/overview.cc, src/cli/text/outlook_sentence.cc), held together by tests/cli/outlooks.jsonl. Pure.
import type { Decision } from './decisions.ts';
import { commandFor, kindText } from './kinds.ts';
import { subjectText, type Subject } from './outlook.ts';
import { conditionOf, containersRemark, given, grouped, isTerminal, namespaceOf, ownerOf, whyFailed, whyNotReady } from './pods.ts';
import { sentenceFor, type Facts, type Remark } from './remarks.ts';
import { selects, selectsPods, selectorText } from './services.ts';
import { claimInTheWay, lastRefusals, timeOf, unboundRemark } from './workloads.ts';

type Any = any; // objects of the API as they come

export interface Concern { subject: Subject; code: string; sentence: string; owner: string; more: number; command: string }
export interface Scene {
  nodes: Any[]; pods: Any[]; claims: Any[]; classes: Any[] | null; services: Any[];
  refusals: Any[];                  // events FailedCreate
  makers: Any[];                    // workloads that they may be about, by kind and name
  standings: Map<string, Decision>; // answers of the agents, by node
  hold: string;                     // reason of a hold of the whole cluster; empty: none
}
export interface Overview { nodes: number; nodesReady: number; pods: number; podsRunning: number; concerns: Concern[]; total: number }

export const CONCERNS_MAX = 40;
const START_GRACE_MS = 30_000;
const PLACE_GRACE_MS = 5000;
const NEAR_SECONDS = 600;

/** null: the pod works, or has not had the time yet. */
export function podRemark(pod: Any, scene: Scene, nowMs: number): Remark | null {
  const phase = pod.status?.phase;
  if (phase === 'Succeeded') return null;
  if (pod.status?.reason === 'Evicted') return { code: 'pod-evicted', facts: { node: pod.spec?.nodeName ?? '', message: pod.status.message ?? '' } };
  if (pod.metadata?.deletionTimestamp) return null;
  const containers = containersRemark(pod);
  if (containers !== null) return containers;
  if (phase === 'Failed') return { code: 'pod-failed', facts: { why: whyFailed(pod) } };
  if (conditionOf(pod, 'Ready')?.status === 'True') return null;
  const created = Date.parse(pod.metadata?.creationTimestamp ?? '');
  const scheduled = conditionOf(pod, 'PodScheduled');
  const grace = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable' ? PLACE_GRACE_MS : START_GRACE_MS;
  if (!Number.isNaN(created) && nowMs - created < grace) return null;
  if (!pod.spec?.nodeName) {
    const claim = claimInTheWay(pod, scene.claims, scene.classes);
    if (claim !== undefined) return { code: 'pod-claim', facts: { claim: claim.metadata.name } };
    const message = scheduled?.message;
    return { code: 'pod-unschedulable', facts: message ? { message } : {} };
  }
  return { code: 'pod-unready', facts: { why: whyNotReady(pod) } };
}

/** The measurement that is beyond its threshold, as far as the agent says it. */
function measureOf(standing: Decision | undefined): Facts {
  const met = standing?.reasons.find((each) => each.code === 'threshold-met' || each.code === 'observation-stale');
  return Object.fromEntries((met?.facts ?? []).filter(({ name }) => name === 'signal' || name.startsWith('available_') || name.startsWith('threshold_')).map(({ name, value }) => [name, value]));
}

function nodeRemark(node: Any, scene: Scene): Remark | null {
  const ready = conditionOf(node, 'Ready');
  if (ready === undefined) return { code: 'node-no-status', facts: {} };
  const facts: Facts = ready.message ? { message: ready.message } : {};
  if (ready.status === 'Unknown') return { code: 'node-silent', facts };
  if (ready.status !== 'True') return { code: 'node-not-ready', facts };
  const pressure = (node.status?.conditions ?? []).filter((each: Any) => each.status === 'True' && each.type.endsWith('Pressure')).map((each: Any) => each.type);
  const standing = scene.standings.get(node.metadata.name);
  if (pressure.length > 0) return { code: 'node-under-pressure', facts: { conditions: pressure.join(', '), ...measureOf(standing) } };
  let soonest = NEAR_SECONDS;
  let nearest: Remark | null = null;
  for (const reason of standing?.reasons ?? []) {
    const due = reason.facts.find((each) => each.name === 'forecast_seconds')?.value;
    const signal = reason.facts.find((each) => each.name === 'signal')?.value;
    if (typeof due !== 'number' || typeof signal !== 'string' || due > soonest) continue;
    soonest = due;
    const first = standing!.candidates.find((each) => each.reason.code === 'ranked-first');
    nearest = { code: 'node-near', facts: { signal, due_seconds: due, ...(first === undefined ? {} : { pod: `${first.subject.namespace ?? ''}/${first.subject.name}` }) } };
  }
  return nearest;
}

function claimRemark(claim: Any, scene: Scene): Remark | null {
  const phase = claim.status?.phase;
  if (phase === 'Bound' || claim.metadata?.deletionTimestamp) return null;
  if (phase === 'Lost') return { code: 'claim-lost', facts: { volume: claim.spec?.volumeName ?? '' } };
  const remark = unboundRemark(claim, scene.classes);
  // A claim that waits for a pod lacks nothing yet: the pod has an entry of its own, if it needs a look.
  return remark.code === 'claim-first-consumer' ? null : remark;
}

/** `near`: the pods of its namespace. */
function serviceRemark(service: Any, near: Any[]): Remark | null {
  if (!selectsPods(service) || service.metadata?.deletionTimestamp) return null;
  const pods = near.filter((pod) => !isTerminal(pod) && selects(service, pod));
  if (pods.length === 0) return { code: 'service-no-match', facts: { selector: selectorText(service) } };
  const answers = service.spec?.publishNotReadyAddresses === true || pods.some((pod) => conditionOf(pod, 'Ready')?.status === 'True');
  return answers ? null : { code: 'service-none-ready', facts: { pods: pods.length } };
}

/** The number of pods that a workload wants now. */
function wantedOf(maker: Any): number {
  if (maker.kind === 'DaemonSet') return Number(maker.status?.desiredNumberScheduled ?? 0);
  if (maker.kind !== 'Job') return Number(maker.spec?.replicas ?? 1);
  const isOver = (maker.status?.conditions ?? []).some((each: Any) => ['Complete', 'Failed'].includes(each.type) && each.status === 'True');
  if (isOver || maker.spec?.suspend || maker.spec?.managedBy) return 0;
  const parallelism = Number(maker.spec?.parallelism ?? 1);
  return maker.spec?.completions === undefined ? parallelism : Math.min(parallelism, maker.spec.completions - Number(maker.status?.succeeded ?? 0));
}

/** Workloads whose pods are refused, and of which none was made since. A Deployment stands for its ReplicaSet: users know its name. */
function refused(scene: Scene): { kind: string; object: Any; remark: Remark }[] {
  const last = lastRefusals(scene.refusals);
  if (last.size === 0) return [];
  const owned = new Map<string, { active: number; newest: string }>();
  for (const pod of scene.pods) {
    const owner = ownerOf(pod);
    if (owner === undefined) continue;
    const pods = owned.get(owner.uid) ?? { active: 0, newest: '' };
    if (!isTerminal(pod) && !pod.metadata.deletionTimestamp) pods.active += 1;
    if ((pod.metadata.creationTimestamp ?? '') > pods.newest) pods.newest = pod.metadata.creationTimestamp;
    owned.set(owner.uid, pods);
  }
  return scene.makers.flatMap((maker) => {
    const event = last.get(String(maker.metadata?.uid ?? ''));
    const pods = owned.get(maker.metadata?.uid) ?? { active: 0, newest: '' };
    if (event === undefined || pods.active >= wantedOf(maker) || pods.newest > timeOf(event) || maker.metadata.deletionTimestamp) return [];
    const owner = (maker.metadata.ownerReferences ?? []).find((each: Any) => each.controller && kindText(each) === 'Deployment');
    const facts: Facts = { message: String(event.message ?? '') };
    given(facts, 'last_at', timeOf(event));
    const object = owner === undefined ? maker : { metadata: { namespace: maker.metadata.namespace, name: owner.name } };
    return [{ kind: owner?.kind ?? maker.kind, object, remark: { code: 'job-pods-refused', facts } }];
  });
}

export function overviewOf(scene: Scene, nowMs: number, usual = 'default'): Overview {
  const concerns: (Concern & { words: string })[] = [];
  const ofOwners = new Map<string, Concern>(); // by namespace, owner and code
  const podsOf = grouped(scene.pods, namespaceOf);
  const claimsOf = grouped(scene.claims, namespaceOf);
  const add = (kind: string, object: Any, remark: Remark | null, owner = ''): void => {
    if (remark === null) return;
    const subject = { kind, ns: String(object?.metadata?.namespace ?? ''), name: String(object?.metadata?.name ?? '') };
    const group = `${subject.ns}/${owner}/${remark.code}`;
    const same = owner === '' ? undefined : ofOwners.get(group);
    if (same !== undefined) { same.more += 1; return; }
    const concern = { subject, code: remark.code, sentence: '', owner, more: 0, command: commandFor(subject, usual), words: sentenceFor(remark.code, remark.facts) };
    concerns.push(concern);
    if (owner !== '') ofOwners.set(group, concern);
  };
  if (scene.hold !== '') add('Cluster', null, { code: 'cluster-held', facts: { why: scene.hold } });
  for (const node of scene.nodes) add('Node', node, nodeRemark(node, scene));
  for (const pod of scene.pods) {
    const owner = ownerOf(pod);
    add('Pod', pod, podRemark(pod, { ...scene, claims: claimsOf.get(namespaceOf(pod)) ?? [] }, nowMs), owner === undefined ? '' : `${kindText(owner)} ${owner.name}`);
  }
  for (const { kind, object, remark } of refused(scene)) add(kind, object, remark);
  for (const claim of scene.claims) add('PersistentVolumeClaim', claim, claimRemark(claim, scene));
  for (const service of scene.services) add('Service', service, serviceRemark(service, podsOf.get(namespaceOf(service)) ?? []));
  return {
    nodes: scene.nodes.length,
    nodesReady: scene.nodes.filter((each) => conditionOf(each, 'Ready')?.status === 'True').length,
    pods: scene.pods.length,
    podsRunning: scene.pods.filter((each) => each.status?.phase === 'Running').length,
    concerns: concerns.slice(0, CONCERNS_MAX).map(({ words, ...each }) => ({
      ...each, sentence: `${subjectText(each.subject)}${each.more > 0 ? ` and ${each.more} more of ${each.owner}` : ''}: ${words}`,
    })),
    total: concerns.length,
  };
}
