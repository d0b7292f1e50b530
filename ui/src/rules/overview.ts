// The objects of a cluster that need a look, each with one sentence: the rules and words of `spillway explain` without arguments
// (src/policy/outlook/overview.cc, src/cli/text/outlook_sentence.cc), held together by tests/cli/outlooks.jsonl. Pure.
import { bytesText, secondsText, type Decision } from './decisions.ts';
import { parseQuantity } from './objects.ts';

type Any = any; // objects of the API as they come
type Facts = Record<string, string | number>;

export interface Subject { kind: string; ns: string; name: string }
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

const SENTENCES: Record<string, string> = {
  'pod-no-image': 'container {container} waits for its image {image} ({reason})[: {message}]',
  'pod-no-start': 'container {container} cannot be started ({reason})[: {message}]',
  'pod-out-of-memory': 'the kernel killed container {container}: out of memory[, its limit is {limit_bytes}][; last at {ended_at}][, {restarts:restart|restarts} so far]',
  'pod-crashes': 'container {container} crashes repeatedly: exit code {exit_code}[ ({reason})][: {message}][, last at {ended_at}][, {restarts:restart|restarts} so far]; it restarts after a growing back-off',
  'pod-container-failed': 'container {container} ended with exit code {exit_code}[ ({reason})][: {message}][, at {ended_at}]',
  'pod-evicted': 'node {node} evicted it[: {message}]',
  'pod-failed': 'it failed: {why}',
  'pod-unschedulable': 'no node takes it[: {message}]',
  'pod-claim': 'it waits for its claim {claim}',
  'pod-unready': 'it is not ready: {why}',
  'job-pods-refused': 'its pods are refused[, last at {last_at}]: {message}',
  'claim-binding': 'it names volume {volume}, and the volume is not bound to it yet',
  'claim-lost': 'its volume {volume} does not exist any more, and its data is lost',
  'claim-waits': 'no volume of StorageClass {class} is bound to it yet',
  'claim-first-consumer': 'it waits for a pod with a node (StorageClass {class} has volumeBindingMode WaitForFirstConsumer)',
  'claim-no-class': 'no volume fits, and no StorageClass can make one: it names none, and no class is the default (docs/volumes.md)',
  'claim-class-unknown': 'its StorageClass {class} does not exist, and no volume of that class fits',
  'claim-no-provisioner': 'no volume of StorageClass {class} fits, and that class makes none: create a PersistentVolume',
  'claim-provisioning': '{provisioner} has to make its volume[ on node {node}] (StorageClass {class}); does it run?',
  'service-no-match': 'no pod answers: no pod of its namespace has the labels {selector}',
  'service-none-ready': 'no pod answers: none of its pods ({pods}) is ready',
  'node-no-status': 'it has never reported a status: does its agent run?',
  'node-silent': 'its agent does not report[: {message}]',
  'node-not-ready': 'it is not ready[: {message}]',
  'node-under-pressure': 'it reports {conditions}[ ({signal} {available_bytes} < {threshold_bytes})][ ({signal} {available_inodes} < {threshold_inodes})][ ({signal} {available_pids} < {threshold_pids})]: it may evict pods, and takes no new ones without a toleration',
  'node-near': '{signal} will reach its threshold in {due_seconds}[; {pod} would be evicted first]',
  'cluster-held': 'the node lifecycle controllers are held[: {why}]; `spillway resume` ends it',
};

function valueOf(name: string, value: string | number): string {
  if (typeof value === 'string') return value.replace(/\n/g, ' ');
  return name.endsWith('_bytes') ? bytesText(value) : name.endsWith('_seconds') ? secondsText(value) : String(value);
}

/** null: a fact is not there. */
function filled(text: string, facts: Facts): string | null {
  let isWhole = true;
  const out = text.replace(/\{([a-z_]+)(?::([^|}]*)\|([^}]*))?\}/g, (_, name: string, one?: string, many?: string) => {
    const value = facts[name];
    if (value === undefined) { isWhole = false; return ''; }
    const said = valueOf(name, value);
    return one === undefined ? said : `${said} ${said === '1' ? one : many}`;
  });
  return isWhole ? out : null;
}

/** The sentence of a code; parts in [] whose facts are not there are left out. */
export function sentenceFor(code: string, facts: Facts): string {
  const text = (SENTENCES[code] ?? code).split(/(\[[^\]]*\])/).map((part) => (part.startsWith('[') ? filled(part.slice(1, -1), facts) ?? '' : filled(part, facts) ?? ''));
  return text.join('');
}

const IMAGE_REASONS = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'RegistryUnavailable', 'ImageInspectError'];
const START_REASONS = ['CreateContainerError', 'CreateContainerConfigError', 'RunContainerError', 'PreStartHookError', 'PostStartHookError', 'StartError'];

interface Remark { code: string; facts: Facts }

const given = (facts: Facts, name: string, value: unknown): void => { if (value !== undefined && value !== '') facts[name] = value as string; };

function containerRemark(pod: Any, container: Any): Remark | null {
  const facts: Facts = { container: container.name };
  const end = container.state?.terminated ?? container.lastState?.terminated;
  const waiting = container.state?.waiting;
  const reason = String(waiting?.reason ?? '');
  if (IMAGE_REASONS.includes(reason) || START_REASONS.includes(reason)) {
    facts.reason = reason;
    given(facts, 'message', waiting.message);
    facts.image = String(container.image ?? '');
    return { code: START_REASONS.includes(reason) ? 'pod-no-start' : 'pod-no-image', facts };
  }
  if (end === undefined || ((end.exitCode ?? 0) === 0 && waiting === undefined)) return null;
  if (container.state?.running !== undefined && container.ready) return null;
  if (waiting !== undefined && reason !== 'CrashLoopBackOff') return null;
  facts.exit_code = Number(end.exitCode ?? 0);
  given(facts, 'reason', end.reason);
  given(facts, 'message', end.message);
  given(facts, 'ended_at', end.finishedAt);
  if ((container.restartCount ?? 0) > 0) facts.restarts = container.restartCount;
  const spec = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].find((each: Any) => each.name === container.name);
  const limit = parseQuantity(spec?.resources?.limits?.memory ?? '');
  if (limit !== null) facts.limit_bytes = limit;
  return { code: end.reason === 'OOMKilled' ? 'pod-out-of-memory' : waiting !== undefined ? 'pod-crashes' : 'pod-container-failed', facts };
}

function containersRemark(pod: Any): Remark | null {
  if (pod.status?.reason) return null;
  for (const container of [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]) {
    const remark = containerRemark(pod, container);
    if (remark !== null) return remark;
  }
  return null;
}

const joined = (reason: string, message: string): string => (message === '' ? reason : reason === '' ? message : `${reason}: ${message}`);
const conditionOf = (object: Any, type: string): Any => (object.status?.conditions ?? []).find((each: Any) => each.type === type);

function whyNotReady(pod: Any): string {
  for (const container of pod.status?.containerStatuses ?? []) {
    const state = container.state?.waiting ?? container.state?.terminated;
    if (state !== undefined) return joined(String(state.reason ?? ''), String(state.message ?? ''));
  }
  for (const type of ['PodScheduled', 'Ready']) {
    const condition = conditionOf(pod, type);
    if (condition?.status === 'False') return joined(String(condition.reason ?? ''), String(condition.message ?? ''));
  }
  return pod.status?.phase || 'Pending';
}

function whyFailed(pod: Any): string {
  if (pod.status?.reason) return joined(pod.status.reason, String(pod.status.message ?? ''));
  return pod.status?.message || 'Failed';
}

const claimsOf = (pod: Any): string[] => (pod.spec?.volumes ?? []).flatMap((each: Any) =>
  each.persistentVolumeClaim ? [each.persistentVolumeClaim.claimName] : each.ephemeral ? [`${pod.metadata.name}-${each.name}`] : []);
const isTerminal = (pod: Any): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';

function podRemark(pod: Any, scene: Scene, nowMs: number): Remark | null {
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
    const claims = claimsOf(pod);
    // A claim that waits for the first pod with a node keeps no pod from one.
    const waits = claims.find((name) => scene.claims.some((each) => each.metadata.namespace === pod.metadata.namespace && each.metadata.name === name &&
      each.status?.phase !== 'Bound' && unboundRemark(each, scene.classes).code !== 'claim-first-consumer'));
    if (waits !== undefined) return { code: 'pod-claim', facts: { claim: waits } };
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

/** The remark about a claim that is not bound. */
function unboundRemark(claim: Any, classes: Any[] | null): Remark {
  const volume = claim.spec?.volumeName ?? '';
  if (volume !== '') return { code: 'claim-binding', facts: { volume } };
  const annotations = claim.metadata?.annotations ?? {};
  const name = annotations['volume.beta.kubernetes.io/storage-class'] ?? claim.spec?.storageClassName ?? '';
  if (name === '') return { code: 'claim-no-class', facts: {} };
  if (classes === null) return { code: 'claim-waits', facts: { class: name } };
  const found = classes.find((each) => each.metadata?.name === name);
  if (found === undefined) return { code: 'claim-class-unknown', facts: { class: name } };
  const node = annotations['volume.kubernetes.io/selected-node'];
  if (found.volumeBindingMode === 'WaitForFirstConsumer' && node === undefined) return { code: 'claim-first-consumer', facts: { class: name } };
  if (!found.provisioner || found.provisioner === 'kubernetes.io/no-provisioner') return { code: 'claim-no-provisioner', facts: { class: name } };
  return { code: 'claim-provisioning', facts: { provisioner: found.provisioner, class: name, ...(node === undefined ? {} : { node }) } };
}

function claimRemark(claim: Any, scene: Scene): Remark | null {
  const phase = claim.status?.phase;
  if (phase === 'Bound' || claim.metadata?.deletionTimestamp) return null;
  if (phase === 'Lost') return { code: 'claim-lost', facts: { volume: claim.spec?.volumeName ?? '' } };
  const remark = unboundRemark(claim, scene.classes);
  // A claim that waits for a pod lacks nothing yet: the pod has an entry of its own, if it needs a look.
  return remark.code === 'claim-first-consumer' ? null : remark;
}

function serviceRemark(service: Any, scene: Scene): Remark | null {
  const selector = Object.entries(service.spec?.selector ?? {}) as [string, string][];
  if (selector.length === 0 || service.spec?.type === 'ExternalName' || service.metadata?.deletionTimestamp) return null;
  const pods = scene.pods.filter((pod) => pod.metadata.namespace === service.metadata.namespace && !isTerminal(pod) && selector.every(([key, value]) => pod.metadata.labels?.[key] === value));
  if (pods.length === 0) return { code: 'service-no-match', facts: { selector: selector.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => `${key}=${value}`).join(',') } };
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

const timeOf = (event: Any): string => event.lastTimestamp ?? event.metadata?.creationTimestamp ?? '';

/** Workloads whose pods are refused, and of which none was made since. A Deployment stands for its ReplicaSet: users know its name. */
function refused(scene: Scene): { kind: string; object: Any; remark: Remark }[] {
  const last = new Map<string, Any>();
  for (const event of scene.refusals) {
    const uid = String(event.involvedObject?.uid ?? '');
    if (!last.has(uid) || timeOf(event) > timeOf(last.get(uid))) last.set(uid, event);
  }
  if (last.size === 0) return [];
  const owned = new Map<string, { active: number; newest: string }>();
  for (const pod of scene.pods) {
    const owner = (pod.metadata?.ownerReferences ?? []).find((each: Any) => each.controller);
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
    const owner = (maker.metadata.ownerReferences ?? []).find((each: Any) => each.controller && each.kind === 'Deployment');
    const facts: Facts = { message: String(event.message ?? '') };
    given(facts, 'last_at', timeOf(event));
    const object = owner === undefined ? maker : { metadata: { namespace: maker.metadata.namespace, name: owner.name } };
    return [{ kind: owner?.kind ?? maker.kind, object, remark: { code: 'job-pods-refused', facts } }];
  });
}

/** As src/cli/text/overview_text.cc prints it. `usual`: the namespace that needs no flag. */
function commandFor({ kind, ns, name }: Subject, usual: string): string {
  if (kind === 'Cluster') return '';
  return `spillway explain ${kind === 'PersistentVolumeClaim' ? 'pvc' : kind.toLowerCase()}/${name}${ns === '' || ns === usual ? '' : ` -n ${ns}`}`;
}

/** "pod shop/web": the first letter of the kind is small. */
function subjectText({ kind, ns, name }: Subject): string {
  if (kind === 'Cluster') return 'cluster';
  return `${kind.charAt(0).toLowerCase()}${kind.slice(1)} ${ns === '' ? '' : `${ns}/`}${name}`;
}

export function overviewOf(scene: Scene, nowMs: number, usual = 'default'): Overview {
  const concerns: (Concern & { words: string })[] = [];
  const add = (kind: string, object: Any, remark: Remark | null, owner = ''): void => {
    if (remark === null) return;
    const subject = { kind, ns: String(object?.metadata?.namespace ?? ''), name: String(object?.metadata?.name ?? '') };
    if (owner !== '') {
      const same = concerns.find((each) => each.subject.ns === subject.ns && each.owner === owner && each.code === remark.code);
      if (same !== undefined) { same.more += 1; return; }
    }
    concerns.push({ subject, code: remark.code, sentence: '', owner, more: 0, command: commandFor(subject, usual), words: sentenceFor(remark.code, remark.facts) });
  };
  if (scene.hold !== '') add('Cluster', null, { code: 'cluster-held', facts: { why: scene.hold } });
  for (const node of scene.nodes) add('Node', node, nodeRemark(node, scene));
  for (const pod of scene.pods) {
    const owner = (pod.metadata?.ownerReferences ?? []).find((each: Any) => each.controller);
    add('Pod', pod, podRemark(pod, scene, nowMs), owner === undefined ? '' : `${owner.kind} ${owner.name}`);
  }
  for (const { kind, object, remark } of refused(scene)) add(kind, object, remark);
  for (const claim of scene.claims) add('PersistentVolumeClaim', claim, claimRemark(claim, scene));
  for (const service of scene.services) add('Service', service, serviceRemark(service, scene));
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
