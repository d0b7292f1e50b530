// The problems of a pod's containers: the rules of `spillway explain` (src/policy/outlook/pod_outlook.cc), held to them by
// tests/cli/outlooks.jsonl. Pure.
import { partOf, subjectOf, type Outlook, type Row } from './outlook.ts';
import { parseQuantity } from './objects.ts';
import type { Facts, Remark } from './remarks.ts';

type Any = any; // objects of the API as they come

const IMAGE_REASONS = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'RegistryUnavailable', 'ImageInspectError'];
const START_REASONS = ['CreateContainerError', 'CreateContainerConfigError', 'RunContainerError', 'PreStartHookError', 'PostStartHookError', 'StartError'];

export const given = (facts: Facts, name: string, value: unknown): void => { if (value !== undefined && value !== '') facts[name] = value as string; };

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

const statusesOf = (pod: Any): Any[] => [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];

export function containersRemark(pod: Any): Remark | null {
  if (pod.status?.reason) return null;
  for (const container of statusesOf(pod)) {
    const remark = containerRemark(pod, container);
    if (remark !== null) return remark;
  }
  return null;
}

const joined = (reason: string, message: string): string => (message === '' ? reason : reason === '' ? message : `${reason}: ${message}`);
/** Objects by a key, those of one key in their order. */
export function grouped(objects: Any[], key: (object: Any) => string): Map<string, Any[]> {
  const groups = new Map<string, Any[]>();
  for (const object of objects) {
    const name = key(object);
    const list = groups.get(name);
    if (list === undefined) groups.set(name, [object]);
    else list.push(object);
  }
  return groups;
}

export const namespaceOf = (object: Any): string => String(object?.metadata?.namespace ?? '');

export const conditionOf = (object: Any, type: string): Any => (object.status?.conditions ?? []).find((each: Any) => each.type === type);

/** As src/policy/workloads/pod_complaint.cc says it. */
export function whyNotReady(pod: Any): string {
  if (pod.metadata?.deletionTimestamp) return 'it is being ended';
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

export function whyFailed(pod: Any): string {
  if (pod.status?.reason) return joined(pod.status.reason, String(pod.status.message ?? ''));
  for (const container of statusesOf(pod)) {
    const ended = container.state?.terminated;
    if ((ended?.exitCode ?? 0) !== 0) return `${container.name} exited with ${ended.exitCode} (${joined(String(ended.reason ?? ''), String(ended.message ?? ''))})`;
  }
  return pod.status?.message || 'Failed';
}

export const claimsOf = (pod: Any): string[] => (pod.spec?.volumes ?? []).flatMap((each: Any) =>
  each.persistentVolumeClaim ? [each.persistentVolumeClaim.claimName] : each.ephemeral ? [`${pod.metadata.name}-${each.name}`] : []);
export const isTerminal = (pod: Any): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
export const isReady = (pod: Any): boolean => conditionOf(pod, 'Ready')?.status === 'True';
export const ownerOf = (object: Any): Any => (object.metadata?.ownerReferences ?? []).find((each: Any) => each.controller);

function stateOf(container: Any): string {
  const { waiting, terminated, running } = container.state ?? {};
  if (waiting !== undefined) return waiting.reason ? `waiting: ${waiting.reason}` : 'waiting';
  if (terminated !== undefined) return 'ended';
  return running === undefined ? 'waiting' : container.ready ? 'ready' : 'running, not ready';
}

export function containerRows(pod: Any): Row[] {
  return statusesOf(pod).map((container) => {
    const end = container.state?.terminated ?? container.lastState?.terminated;
    const facts: Facts = { restarts: Number(container.restartCount ?? 0) };
    if (end !== undefined) facts.last_exit_code = Number(end.exitCode ?? 0);
    given(facts, 'last_reason', end?.reason);
    return { name: container.name, state: stateOf(container), facts };
  });
}

const usesNodeNetwork = (pod: Any): boolean => Boolean(pod.status?.podIP) && pod.status.podIP === pod.status.hostIP;

/** The first port of the pod that a pod of its node has already, where both use the network of the node. */
function takenPort(pod: Any, neighbours: Any[]): Remark | null {
  if (!usesNodeNetwork(pod)) return null;
  const protocolOf = (port: Any): string => port.protocol ?? 'TCP';
  for (const port of (pod.spec?.containers ?? []).flatMap((each: Any) => each.ports ?? [])) {
    const holds = (other: Any): boolean => (other.spec?.containers ?? []).some((container: Any) =>
      statusesOf(other).some((each) => each.name === container.name && each.ready) &&
      (container.ports ?? []).some((each: Any) => each.containerPort === port.containerPort && protocolOf(each) === protocolOf(port)));
    const holder = neighbours.find((other) => other.metadata.uid !== pod.metadata.uid && other.spec?.nodeName === pod.spec?.nodeName && usesNodeNetwork(other) && holds(other));
    if (holder !== undefined) return { code: 'pod-port-taken', facts: { port: port.containerPort, node: pod.spec.nodeName, pod: `${holder.metadata.namespace}/${holder.metadata.name}` } };
  }
  return null;
}

/** null: its containers have no problem. */
export function explainContainers(pod: Any, neighbours: Any[] = []): Outlook | null {
  if (pod.status?.reason) return null;
  const remarks = statusesOf(pod).map((each) => containerRemark(pod, each)).filter((each): each is Remark => each !== null);
  if (remarks.length === 0) return null;
  const taken = remarks.some((each) => each.code === 'pod-crashes' || each.code === 'pod-container-failed') ? takenPort(pod, neighbours) : null;
  return { subject: subjectOf('Pod', pod), state: 'bad', remarks: taken === null ? remarks : [...remarks, taken], parts: [partOf('containers', containerRows(pod))] };
}
