// The parts of the API's objects that the page keeps: lean values, so that thousands fit. Pure.
import { kindText } from './kinds.ts';

export interface Condition { type: string; status: string; reason: string; message: string; since: string }
export interface Taint { key: string; effect: string }
export interface NodeInfo {
  name: string;
  uid: string;
  zone: string; // "region::zone" as `spillway zones` prints it; "" without zone labels
  conditions: Condition[];
  taints: Taint[];
  cordoned: boolean;
  port: number;
  version: string;
  created: string;
  pods: number; // the number that may run
  memory: number | null; // bytes for pods
}
export interface PodInfo {
  ns: string; name: string; uid: string; node: string; phase: string; reason: string; message: string;
  priority: number; critical: boolean;
  requests: number | null; // bytes of memory; null: none
  owner: string; // "ReplicaSet/web"; "" for none
  startedAt: string; createdAt: string; conditions: Condition[];
  ready: boolean;
  scheduler: string; // "the scheduler" if the pod names none
}
export interface Happening {
  key: string; at: string; atMs: number; kind: string; ns: string; name: string;
  reason: string; message: string; warning: boolean; from: string; node: string; count: number;
}

type Any = any; // objects of the API as they come

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Source: kube_features zone labels, today's before the beta ones. */
export function zoneOf(labels: Record<string, string> | undefined): string {
  const region = labels?.['topology.kubernetes.io/region'] ?? labels?.['failure-domain.beta.kubernetes.io/region'] ?? '';
  const zone = labels?.['topology.kubernetes.io/zone'] ?? labels?.['failure-domain.beta.kubernetes.io/zone'] ?? '';
  return region === '' && zone === '' ? '' : `${region}::${zone}`;
}

/** "-" for the nodes without zone labels, as the commands write it. */
export const zoneText = (zone: string): string => (zone === '' ? '-' : zone);

function conditions(list: Any[] | undefined): Condition[] {
  return (list ?? []).map((each) => ({
    type: text(each.type), status: text(each.status), reason: text(each.reason), message: text(each.message),
    since: text(each.lastTransitionTime),
  }));
}

export function leanNode(object: Any): NodeInfo {
  return {
    name: text(object.metadata?.name), uid: text(object.metadata?.uid), zone: zoneOf(object.metadata?.labels),
    conditions: conditions(object.status?.conditions),
    taints: (object.spec?.taints ?? []).map((each: Any) => ({ key: text(each.key), effect: text(each.effect) })),
    cordoned: object.spec?.unschedulable === true,
    port: object.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0,
    version: text(object.status?.nodeInfo?.kubeletVersion), created: text(object.metadata?.creationTimestamp),
    pods: Number(object.status?.allocatable?.pods ?? 0), memory: parseQuantity(object.status?.allocatable?.memory),
  };
}

export function leanPod(object: Any): PodInfo {
  const owner = (object.metadata?.ownerReferences ?? []).find((each: Any) => each.controller) ?? null;
  const priority = Number(object.spec?.priority ?? 0);
  const annotations = object.metadata?.annotations ?? {};
  const isStatic = annotations['kubernetes.io/config.source'] !== undefined && annotations['kubernetes.io/config.source'] !== 'api';
  const list = conditions(object.status?.conditions);
  return {
    ns: text(object.metadata?.namespace), name: text(object.metadata?.name), uid: text(object.metadata?.uid),
    node: text(object.spec?.nodeName), phase: text(object.status?.phase), reason: text(object.status?.reason),
    message: text(object.status?.message), priority,
    critical: isStatic || annotations['kubernetes.io/config.mirror'] !== undefined || priority >= 2_000_000_000,
    requests: memoryRequest(object.spec), owner: owner === null ? '' : `${kindText(owner)}/${owner.name}`,
    startedAt: text(object.status?.startTime), createdAt: text(object.metadata?.creationTimestamp), conditions: list,
    scheduler: text(object.spec?.schedulerName) || 'the scheduler',
    ready: list.some((each) => each.type === 'Ready' && each.status === 'True'),
  };
}

export function leanEvent(object: Any): Happening {
  const at = text(object.series?.lastObservedTime) || text(object.lastTimestamp) || text(object.eventTime) || text(object.metadata?.creationTimestamp);
  const about = object.involvedObject ?? {};
  return {
    key: `${text(object.metadata?.namespace)}/${text(object.metadata?.name)}`, at, atMs: Date.parse(at) || 0,
    kind: kindText(about), ns: text(about.namespace), name: text(about.name),
    reason: text(object.reason), message: text(object.message), warning: object.type === 'Warning',
    from: text(object.source?.component) || text(object.reportingComponent),
    node: kindText(about) === 'Node' ? text(about.name) : text(object.source?.host),
    count: Number(object.series?.count ?? object.count ?? 1),
  };
}

const SUFFIXES: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** "128Mi", "0.5", "1e3"; null: it is none. Source: Kubernetes docs, "Quantity". */
export function parseQuantity(value: unknown): number | null {
  const found = /^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(String(value ?? ''));
  if (found === null) return null;
  const number = Number(found[1] + (found[2] ?? ''));
  return Number.isFinite(number) ? number * (SUFFIXES[found[3] ?? ''] ?? 1) : null;
}

/** The pod's memory request, as its order of eviction counts it: containers together, or the largest init container; the overhead besides, where it requests anything. null: it requests none. */
export function memoryRequest(spec: Any): number | null {
  const of = (container: Any) => parseQuantity(container?.resources?.requests?.memory) ?? 0;
  const sum = (spec?.containers ?? []).reduce((total: number, each: Any) => total + of(each), 0);
  const asked = Math.max(sum, ...(spec?.initContainers ?? []).map(of));
  return asked === 0 ? null : asked + (parseQuantity(spec?.overhead?.memory) ?? 0);
}
