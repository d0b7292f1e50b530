// Claims, and workloads with the pods that they want and have: the rules of `spillway explain` (src/policy/outlook/claim_outlook.cc,
// workload_outlook.cc, src/policy/workloads/rollout_outlook.cc), held to the first two by tests/cli/outlooks.jsonl. Pure.
import { parseQuantity } from './objects.ts';
import { partOf, subjectOf, type Outlook, type Row } from './outlook.ts';
import { claimsOf, conditionOf, containersRemark, given, isReady, isTerminal, ownerOf, whyNotReady } from './pods.ts';
import type { Facts, Remark } from './remarks.ts';

type Any = any; // objects of the API as they come

const NOT_READ = (what: string): Remark => ({ code: 'not-read', facts: { what } });
export const timeOf = (event: Any): string => event.lastTimestamp ?? event.metadata?.creationTimestamp ?? '';

/** The last of these events FailedCreate by the uid of its object. */
export function lastRefusals(events: Any[]): Map<string, Any> {
  const last = new Map<string, Any>();
  for (const event of events) {
    const uid = String(event.involvedObject?.uid ?? '');
    if (!last.has(uid) || timeOf(event) > timeOf(last.get(uid))) last.set(uid, event);
  }
  return last;
}

/** The remark about a claim that is not bound. */
export function unboundRemark(claim: Any, classes: Any[] | null): Remark {
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

/** `pods`: all of its namespace. null: they could not be read, as with classes. `warning`: the message of the last warning about it. */
export function explainClaim(claim: Any, classes: Any[] | null, pods: Any[] | null, warning = ''): Outlook {
  const out: Outlook = { subject: subjectOf('PersistentVolumeClaim', claim), state: 'waits', remarks: [], parts: [] };
  const volume = claim.spec?.volumeName ?? '';
  const remark: Remark = claim.metadata?.deletionTimestamp ? { code: 'being-deleted', facts: {} } : claim.status?.phase === 'Lost' ? { code: 'claim-lost', facts: { volume } }
    : claim.status?.phase === 'Bound' ? { code: 'claim-bound', facts: { volume } } : unboundRemark(claim, classes);
  out.state = remark.code === 'claim-bound' ? 'good' : remark.code === 'claim-first-consumer' || remark.code === 'being-deleted' ? 'waits' : 'bad';
  out.remarks.push(remark);
  if (warning !== '') out.remarks.push({ code: 'claim-warning', facts: { message: warning } });
  const wanted = parseQuantity(claim.spec?.resources?.requests?.storage);
  const held = parseQuantity(claim.status?.capacity?.storage);
  if (wanted !== null) out.remarks.push({ code: 'claim-size', facts: { wanted_bytes: wanted, ...(held === null ? {} : { capacity_bytes: held }) } });
  if (pods === null) { out.remarks.push(NOT_READ('pods')); return out; }
  const users = pods.filter((pod) => claimsOf(pod).includes(claim.metadata.name))
    .map((pod): Row => ({ name: pod.metadata.name, state: pod.status?.phase ?? '', facts: pod.spec?.nodeName ? { node: pod.spec.nodeName } : {} }));
  if (users.length === 0) out.remarks.push({ code: 'claim-unused', facts: {} });
  else out.parts.push(partOf('pods', users));
  return out;
}

/** The claim that keeps a pod from a node; undefined: none does. A claim that waits for the first pod with a node keeps no pod from one. */
export function claimInTheWay(pod: Any, claims: Any[], classes: Any[] | null): Any {
  if (pod.spec?.nodeName) return undefined;
  return claimsOf(pod).map((name) => claims.find((each) => each.metadata.namespace === pod.metadata.namespace && each.metadata.name === name && each.status?.phase !== 'Bound'))
    .find((claim) => claim !== undefined && unboundRemark(claim, classes).code !== 'claim-first-consumer');
}

const ofClaim = (claim: Any, classes: Any[] | null): Remark => { const { code, facts } = unboundRemark(claim, classes); return { code, facts: { claim: claim.metadata.name, ...facts } }; };

/** null: no claim keeps the pod from a node. */
export function explainClaimOf(pod: Any, claims: Any[], classes: Any[] | null): Outlook | null {
  const claim = claimInTheWay(pod, claims, classes);
  if (claim === undefined) return null;
  return { subject: subjectOf('Pod', pod), state: 'bad', remarks: [{ code: 'pod-claim', facts: { claim: claim.metadata.name } }, ofClaim(claim, classes)], parts: [] };
}

export interface WorkloadScene {
  kind: string; object: Any; pods: Any[] | null; claims: Any[]; classes: Any[] | null;
  refusal: Any; // the last event FailedCreate about it; null: none
}

/** The number of pods that a ReplicaSet, StatefulSet or DaemonSet wants. */
const wantedOf = (kind: string, object: Any): number => Number(kind === 'DaemonSet' ? object.status?.desiredNumberScheduled ?? 0 : object.spec?.replicas ?? 1);

/** The answer for a ReplicaSet, StatefulSet or DaemonSet. `pods`: those it owns, by name; null: not read. */
export function explainWorkload({ kind, object, pods, claims, classes, refusal }: WorkloadScene): Outlook {
  const wanted = wantedOf(kind, object);
  const own = (pods ?? []).filter((pod) => !isTerminal(pod));
  const waiting = own.filter((pod) => !isReady(pod));
  const first = waiting[0];
  const claim = first === undefined ? undefined : claimInTheWay(first, claims, classes);
  const out: Outlook = { subject: subjectOf(kind, object), state: 'waits', remarks: [], parts: [] };
  const say = (code: string, facts: Facts = {}): void => { out.remarks.push({ code, facts }); };
  if (object.metadata?.deletionTimestamp) say('being-deleted');
  else if (wanted === 0) say(kind === 'DaemonSet' ? 'workload-no-node' : 'workload-zero');
  else if (pods === null) say('workload-wants', { wanted });
  else if (own.length - waiting.length >= wanted && waiting.length === 0) say('workload-ready', { wanted });
  else say('workload-waits', { ready: own.length - waiting.length, wanted,
    ...(first !== undefined ? { pod: first.metadata.name, ...(claim === undefined ? { why: whyNotReady(first) } : { claim: claim.metadata.name }) } : own.length < wanted ? { missing: wanted - own.length } : {}) });
  out.state = out.remarks[0]!.code === 'workload-waits' ? 'bad' : out.remarks[0]!.code === 'being-deleted' ? 'waits' : 'good';
  if (first !== undefined) {
    const trouble = claim !== undefined ? ofClaim(claim, classes) : containersRemark(first);
    if (trouble !== null) out.remarks.push(trouble);
    if (kind === 'StatefulSet' && object.spec?.podManagementPolicy !== 'Parallel' && own.length < wanted) say('workload-one-by-one', { pod: first.metadata.name });
  }
  if (refusal !== null && own.length < wanted) {
    const facts: Facts = { message: String(refusal.message ?? '') };
    given(facts, 'last_at', timeOf(refusal));
    say('job-pods-refused', facts);
  }
  if (pods === null) out.remarks.push(NOT_READ('pods'));
  if (waiting.length > 0) {
    out.parts.push(partOf('pods', waiting.map(waitingRow)));
  }
  return out;
}

const waitingRow = (pod: Any): Row => ({ name: pod.metadata.name, state: 'not ready', facts: { ...(pod.spec?.nodeName ? { node: pod.spec.nodeName } : {}), why: whyNotReady(pod) } });

/** The state of a Job by its conditions and pods: the first answers of `spillway explain job/NAME`, which knows the next steps, too. */
export function explainJob(job: Any, pods: Any[] | null, refusal: Any): Outlook {
  const out: Outlook = { subject: subjectOf('Job', job), state: 'good', remarks: [], parts: [] };
  const say = (state: Outlook['state'], code: string, facts: Facts = {}): void => { if (out.remarks.length === 0) out.state = state; out.remarks.push({ code, facts }); };
  const status = job.status ?? {};
  const holds = (type: string): Any => { const found = conditionOf(job, type); return found?.status === 'True' ? found : undefined; };
  const reasons = (condition: Any): Facts => { const facts: Facts = { reason: String(condition.reason ?? '') }; given(facts, 'message', condition.message); return facts; };
  const active = (pods ?? []).filter((pod) => !isTerminal(pod) && !pod.metadata?.deletionTimestamp);
  const running = active.filter((pod) => pod.status?.phase === 'Running').length;
  const pending = active.find((pod) => pod.status?.phase !== 'Running');
  if (holds('Complete')) say('good', 'job-complete', { succeeded: Number(status.succeeded ?? 0) });
  else if (holds('Failed')) say('bad', 'job-failed', reasons(holds('Failed')));
  else if (job.metadata?.deletionTimestamp) say('waits', 'being-deleted');
  else if (job.spec?.managedBy) say('waits', 'job-managed-elsewhere', { manager: String(job.spec.managedBy) });
  else if (job.spec?.suspend) say('waits', 'job-suspended');
  else if (refusal !== null && active.length === 0) { const facts: Facts = { message: String(refusal.message ?? '') }; given(facts, 'last_at', timeOf(refusal)); say('bad', 'job-pods-refused', facts); }
  else if (running > 0) say('good', 'job-runs', { running });
  else if (pending !== undefined) say('bad', 'job-pods-pending', { pods: active.length, pod: pending.metadata.name, why: whyNotReady(pending) });
  else say('waits', 'job-rests');
  out.remarks.push({ code: 'job-progress', facts: { succeeded: Number(status.succeeded ?? 0), ...(job.spec?.completions === undefined ? {} : { completions: job.spec.completions }), ...(running > 0 ? { running } : {}),
    ...(active.length > running ? { pending: active.length - running } : {}), failed: Number(status.failed ?? 0), ...(job.spec?.backoffLimit === undefined ? {} : { backoff_limit: job.spec.backoffLimit }) } });
  if (pods === null) out.remarks.push(NOT_READ('pods'));
  return out;
}

const REVISION = 'deployment.kubernetes.io/revision';
const revisionOf = (object: Any): number => Number(object.metadata?.annotations?.[REVISION] ?? 0);

/** "25%" of the whole, or the number that is written. */
function shareOf(written: unknown, whole: number, up: boolean): number {
  const percent = /^([0-9]+)%$/.exec(String(written ?? 0));
  if (percent === null) return Number(written ?? 0) || 0;
  return up ? Math.ceil(Number(percent[1]) * whole / 100) : Math.floor(Number(percent[1]) * whole / 100);
}

/** `sets`: ReplicaSets of its namespace; `pods`: all of it, by name. The ReplicaSet of its template is the one with its revision. */
export function explainRollout(deployment: Any, sets: Any[] | null, pods: Any[] | null): Outlook {
  const own = (sets ?? []).filter((each) => ownerOf(each)?.uid === deployment.metadata.uid);
  const latest = own.find((each) => revisionOf(each) === revisionOf(deployment));
  const old = own.filter((each) => each !== latest);
  const wanted = Number(deployment.spec?.replicas ?? 1);
  const status = deployment.status ?? {};
  const [updated, available] = [Number(status.updatedReplicas ?? 0), Number(status.availableReplicas ?? 0)];
  const seen = Number(status.observedGeneration ?? 0) >= Number(deployment.metadata.generation ?? 0);
  const isComplete = seen && updated === wanted && Number(status.replicas ?? 0) === wanted && available === wanted;
  const out: Outlook = { subject: subjectOf('Deployment', deployment), lead: isComplete ? ' is rolled out' : ' is not rolled out yet', state: isComplete ? 'good' : 'bad', remarks: [], parts: [] };
  const say = (code: string, facts: Facts = {}): void => { out.remarks.push({ code, facts }); };
  if (!seen) say('rollout-unobserved');
  if (isComplete) say('rolled-out', { pods_wanted: wanted });
  if (deployment.spec?.paused) say('rollout-paused');
  if (isComplete) return out;
  const progress = conditionOf(deployment, 'Progressing');
  if (progress?.reason === 'ProgressDeadlineExceeded') say('deadline-exceeded', { deadline_seconds: Number(deployment.spec?.progressDeadlineSeconds ?? 0) });
  for (const set of latest === undefined ? old : [latest, ...old]) {
    const failure = conditionOf(set, 'ReplicaFailure');
    if (failure?.status === 'True') say('pods-refused', { replica_set: set.metadata.name, message: String(failure.message ?? '') });
  }
  const ofSets = (pods ?? []).filter((pod) => own.some((set) => ownerOf(pod)?.uid === set.metadata.uid));
  const isLatest = (pod: Any): boolean => latest !== undefined && ownerOf(pod)?.uid === latest.metadata.uid;
  if (!deployment.spec?.paused && sets !== null) {
    if (deployment.spec?.strategy?.type === 'Recreate') {
      const leaving = ofSets.filter((pod) => !isLatest(pod) && !isTerminal(pod)).length;
      if (leaving > 0) say('old-pods-leave', { pods: leaving });
    } else {
      const rolling = deployment.spec?.strategy?.rollingUpdate ?? {};
      const surge = shareOf(rolling.maxSurge, wanted, true);
      const unavailable = shareOf(rolling.maxUnavailable, wanted, false);
      const unavailableMax = wanted > 0 ? Math.min(surge === 0 && unavailable === 0 ? 1 : unavailable, wanted) : 0;
      const asked = own.reduce((sum, each) => sum + Number(each.spec?.replicas ?? 0), 0);
      const latestWanted = Number(latest?.spec?.replicas ?? 0);
      if (latestWanted < wanted && asked >= wanted + surge) say('surge-reached', { pods: asked, pods_max: wanted + surge, pods_wanted: wanted, surge_max: surge });
      const missing = latestWanted - Number(latest?.status?.availableReplicas ?? 0);
      if (old.some((each) => Number(each.spec?.replicas ?? 0) > 0) && asked - (wanted - unavailableMax) - missing <= 0) {
        say('unavailable-reached', { available_min: wanted - unavailableMax, pods_wanted: wanted, unavailable_max: unavailableMax, pods_available: own.reduce((sum, each) => sum + Number(each.status?.availableReplicas ?? 0), 0) });
      }
    }
  }
  const before = own.map(revisionOf).sort((a, b) => b - a)[1] ?? 0;
  say('rollout-moves', { pods_updated: updated, pods_wanted: wanted, pods_available: available, ...(before > 0 ? { undo_revision: before } : {}) });
  const waiting = ofSets.filter((pod) => isLatest(pod) && !isReady(pod));
  if (waiting.length > 0) out.parts.push(partOf('pods', waiting.map(waitingRow)));
  if (pods === null) out.remarks.push(NOT_READ('pods'));
  return out;
}
