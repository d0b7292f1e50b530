// Reads an object with what its state depends on, and explains it by the rules of `spillway explain`.
import { kindOf, namedPath } from '../rules/kinds.ts';
import type { Outlook, Subject } from '../rules/outlook.ts';
import { claimsOf, explainContainers, ownerOf } from '../rules/pods.ts';
import { explainService, selects } from '../rules/services.ts';
import { explainClaim, explainClaimOf, explainJob, explainRollout, explainWorkload, lastRefusals } from '../rules/workloads.ts';
import { find } from './api.ts';
import type { Cluster } from './cluster.ts';

/** `endpoints`: of a Service; `services`: those that select a pod. null: not read. */
export interface Explanation { subject: Subject; object: any; outlook: Outlook | null; pods: any[]; endpoints: EndpointRow[] | null; services: any[] }
export interface EndpointRow { address: string; ports: string; pod: string; node: string; state: string }

const byName = (a: any, b: any): number => (a.metadata?.name < b.metadata?.name ? -1 : 1);
const placed = (ns: string): string => `?fieldSelector=${encodeURIComponent(`metadata.namespace=${ns}`)}`;

/** The pods of a namespace by name; null: they may not be read. */
async function podsOf(cluster: Cluster, ns: string): Promise<any[] | null> {
  return (await cluster.listed(`/api/v1/namespaces/${ns}/pods`))?.sort(byName) ?? null;
}

const stateOf = (conditions: any): string => (conditions?.terminating ? 'ending' : conditions?.ready ?? true ? 'ready' : 'not ready');

function endpointRows(slices: any[]): EndpointRow[] {
  return slices.flatMap((slice) => (slice.endpoints ?? []).flatMap((each: any) => (each.addresses ?? []).map((address: string): EndpointRow => ({
    address, ports: (slice.ports ?? []).map((port: any) => `${port.port ?? 0}/${port.protocol ?? 'TCP'}`).join(', '), pod: each.targetRef?.kind === 'Pod' ? each.targetRef.name : '',
    node: each.nodeName ?? '', state: stateOf(each.conditions) }))));
}

/** The problem of a pod: a claim that keeps it from a node, or its containers. null: neither. */
export async function troubleOf(cluster: Cluster, pod: any): Promise<Outlook | null> {
  if (!pod.spec?.nodeName && claimsOf(pod).length > 0) {
    const claims = await cluster.listed(`/api/v1/persistentvolumeclaims${placed(pod.metadata.namespace)}`);
    const classes = await cluster.listed('/apis/storage.k8s.io/v1/storageclasses');
    const waits = explainClaimOf(pod, claims ?? [], classes);
    if (waits !== null) return waits;
  }
  if (explainContainers(pod) === null || !pod.spec?.nodeName) return explainContainers(pod);
  return explainContainers(pod, await cluster.listed(`/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(pod.spec.nodeName)}`) ?? []);
}

/** null: there is no such object. */
export async function explainObject(cluster: Cluster, subject: Subject): Promise<Explanation | null> {
  const { kind, ns, name } = subject;
  const known = kindOf(kind);
  if (known === undefined) return null;
  const list = await find(kind === 'Pod' ? `/api/v1/namespaces/${ns}/pods/${name}` : namedPath(known, ns, name));
  const object = kind === 'Pod' ? list : (list?.items ?? []).find((each: any) => each.metadata?.name === name && (each.metadata.namespace ?? '') === ns);
  if (object === undefined || object === null) return null;
  const out: Explanation = { subject, object, outlook: null, pods: [], endpoints: null, services: [] };
  if (kind === 'Pod') {
    out.outlook = await troubleOf(cluster, object);
    out.services = ((await cluster.listed(`/api/v1/services${placed(ns)}`)) ?? []).filter((each) => selects(each, object));
    return out;
  }
  const pods = await podsOf(cluster, ns);
  const owned = pods?.filter((pod) => ownerOf(pod)?.uid === object.metadata.uid) ?? null;
  const warnings = [...cluster.events.items.values()].filter((each) => each.warning && each.kind === kind && each.ns === ns && each.name === name).sort((a, b) => b.atMs - a.atMs);
  if (kind === 'Service') {
    const all = object.spec?.type === 'ExternalName' ? [] : await cluster.listed(`/apis/discovery.k8s.io/v1/endpointslices${placed(ns)}`);
    const slices = all?.filter((each) => each.metadata?.labels?.['kubernetes.io/service-name'] === name).sort(byName) ?? null;
    const nodes = cluster.nodes.session.phase === 'live' ? new Set(cluster.nodes.items.keys()) : null;
    const carried = cluster.zones === null ? null : await find('/debug/spillway/services').catch(() => null); // nothing else depends on it
    out.outlook = explainService({ service: object, pods, slices, nodes, notCarried: carried?.notCarried ?? '' });
    out.endpoints = slices === null ? null : endpointRows(slices);
    out.pods = pods?.filter((pod) => selects(object, pod)) ?? [];
    return out;
  }
  if (kind === 'PersistentVolumeClaim') {
    const classes = await cluster.listed('/apis/storage.k8s.io/v1/storageclasses');
    out.outlook = explainClaim(object, classes, pods, object.status?.phase === 'Bound' ? '' : warnings[0]?.message ?? '');
    out.pods = pods?.filter((pod) => claimsOf(pod).includes(name)) ?? [];
    return out;
  }
  if (kind === 'Deployment') {
    const sets = await cluster.listed(`/apis/apps/v1/replicasets${placed(ns)}`);
    out.outlook = explainRollout(object, sets, pods);
    out.pods = pods?.filter((pod) => sets?.some((set) => ownerOf(set)?.uid === object.metadata.uid && ownerOf(pod)?.uid === set.metadata.uid)) ?? [];
    return out;
  }
  const refusals = await cluster.listed('/api/v1/events?fieldSelector=reason%3DFailedCreate');
  const refusal = lastRefusals(refusals ?? []).get(object.metadata.uid) ?? null;
  const waits = (owned ?? []).some((pod) => !pod.spec?.nodeName && claimsOf(pod).length > 0);
  const claims = waits ? await cluster.listed(`/api/v1/persistentvolumeclaims${placed(ns)}`) ?? [] : [];
  const classes = waits ? await cluster.listed('/apis/storage.k8s.io/v1/storageclasses') : null;
  out.outlook = kind === 'Job' ? explainJob(object, owned, refusal) : explainWorkload({ kind, object, pods: owned, claims, classes, refusal });
  out.pods = owned ?? [];
  return out;
}
