// The pods that answer for a Service, and why others do not: the rules of `spillway explain` (src/policy/outlook/service_outlook.cc,
// src/policy/endpoints/slice_plan.cc), held to them by tests/cli/outlooks.jsonl. Pure.
import { partOf, subjectOf, type Outlook, type Row } from './outlook.ts';
import { isReady, isTerminal, ownerOf, whyNotReady } from './pods.ts';
import type { Facts } from './remarks.ts';

type Any = any; // objects of the API as they come

/** `pods`: all of its namespace, by name; `slices`: its endpoint slices; `nodes`: names. null: not read. */
export interface ServiceScene { service: Any; pods: Any[] | null; slices: Any[] | null; nodes: Set<string> | null; notCarried?: string }

const PORTS_MAX = 100;    // ports that are explained; each is searched in every pod
const PER_SLICE = 100;    // endpoints that the controller puts into a slice
const OWN_LABELS = ['kubernetes.io/service-name', 'endpointslice.kubernetes.io/managed-by', 'service.kubernetes.io/headless'];
const SLICE_CONTROLLER = 'endpointslice-controller.k8s.io';
// Addresses that lead to no other host: no slice may have them.
const LEADS_NOWHERE = /^(0\.0\.0\.0$|127\.|169\.254\.|224\.0\.0\.|::1?$|fe[89ab]|ff.2)/i;

const selectorOf = (service: Any): [string, string][] => (Object.entries(service.spec?.selector ?? {}) as [string, string][]).sort(([a], [b]) => (a < b ? -1 : 1));
export const selectorText = (service: Any): string => selectorOf(service).map(([key, value]) => `${key}=${value}`).join(',');
export const selectsPods = (service: Any): boolean => selectorOf(service).length > 0 && service.spec?.type !== 'ExternalName';
export const selects = (service: Any, pod: Any): boolean => selectsPods(service) && selectorOf(service).every(([key, value]) => pod.metadata?.labels?.[key] === value);
const isHeadless = (service: Any): boolean => !service.spec?.clusterIP || service.spec.clusterIP === 'None';
const isEnding = (pod: Any): boolean => Boolean(pod.metadata?.deletionTimestamp);
const familyOf = (address: string): string => (address.includes(':') ? 'IPv6' : 'IPv4');
const countText = (count: number, facts: Facts): Facts => ({ ...facts, pods: count });

function familiesOf(service: Any): string[] {
  const families = ['IPv4', 'IPv6'].filter((each) => (service.spec?.ipFamilies ?? []).includes(each));
  return families.length > 0 ? families : isHeadless(service) ? ['IPv4', 'IPv6'] : [familyOf(service.spec.clusterIP)];
}

function addressesOf(pod: Any, family: string): string[] {
  const all = [pod.status?.podIP, ...(pod.status?.podIPs ?? []).map((each: Any) => each.ip)].filter((each) => typeof each === 'string' && each !== '');
  return [...new Set(all as string[])].filter((each) => familyOf(each) === family && !LEADS_NOWHERE.test(each));
}

/** The number of a port at a pod; undefined: the pod has no port of that name. */
function targetPort(port: Any, pod: Any): number | undefined {
  const target = port.targetPort ?? port.port;
  if (typeof target === 'number') return target;
  const isIt = (each: Any): boolean => each.name === target && (each.protocol ?? 'TCP') === (port.protocol ?? 'TCP');
  const sidecars = (pod.spec?.initContainers ?? []).filter((each: Any) => each.restartPolicy === 'Always');
  return [...(pod.spec?.containers ?? []), ...sidecars].flatMap((each: Any) => each.ports ?? []).find(isIt)?.containerPort;
}

const targetText = (port: Any): string => String(port.targetPort ?? port.port);

interface Endpoint { addresses: string[]; node: string; ready: boolean; serving: boolean; ending: boolean; ns: string; pod: string; uid: string; hostname: string }

/** The endpoint that slices should have for a pod; null: none. */
function endpointOf(pod: Any, { service, nodes }: ServiceScene, family: string): Endpoint | null {
  if (isTerminal(pod) || !pod.status?.podIP) return null;
  const node = pod.spec?.nodeName ?? '';
  const lenient = service.spec?.publishNotReadyAddresses === true;
  if (nodes !== null && !nodes.has(node) && !lenient) return null;
  const addresses = addressesOf(pod, family);
  if (addresses.length === 0) return null;
  const named = pod.spec?.hostname && pod.spec?.subdomain === service.metadata.name;
  return { addresses, node, ready: lenient || (isReady(pod) && !isEnding(pod)), serving: isReady(pod), ending: isEnding(pod), ns: pod.metadata.namespace, pod: pod.metadata.name,
    uid: pod.metadata.uid ?? '', hostname: named ? pod.spec.hostname : '' };
}

function readEndpoint(each: Any): Endpoint {
  const conditions = each.conditions ?? {};
  return { addresses: each.addresses ?? [], node: each.nodeName ?? '', ready: conditions.ready === true, serving: conditions.serving === true, ending: conditions.terminating === true,
    ns: each.targetRef?.namespace ?? '', pod: each.targetRef?.name ?? '', uid: each.targetRef?.uid ?? '', hostname: each.hostname ?? '' };
}

const idOf = ({ addresses, hostname, ns, pod }: Endpoint): string => JSON.stringify([[...addresses].sort(), hostname, ns, pod]);
const sameState = (a: Endpoint, b: Endpoint): boolean => a.node === b.node && a.ready === b.ready && a.serving === b.serving && a.ending === b.ending && a.uid === b.uid;
const portsKey = (ports: Any[]): string => JSON.stringify(ports.map((each) => JSON.stringify([each.name ?? '', each.protocol ?? 'TCP', each.port, each.appProtocol ?? ''])).sort());
const otherLabels = (labels: Any): string => JSON.stringify(Object.entries(labels ?? {}).filter(([key]) => !OWN_LABELS.includes(key)).sort());

/** The writes that the controller of slices has to make now for one family; hints for zones are not compared. */
function writesDue(scene: ServiceScene, selected: Any[], slices: Any[], family: string): number {
  const { service } = scene;
  const wanted = new Map<string, Map<string, Endpoint>>();
  for (const pod of selected) {
    if (isTerminal(pod) || !pod.status?.podIP) continue;
    const key = portsKey((service.spec?.ports ?? []).flatMap((port: Any) => { const number = targetPort(port, pod); return number === undefined ? [] : [{ ...port, port: number }]; }));
    const group = wanted.get(key) ?? new Map<string, Endpoint>();
    wanted.set(key, group);
    const endpoint = endpointOf(pod, scene, family);
    if (endpoint !== null) group.set(idOf(endpoint), endpoint);
  }
  const owned = slices.filter((each) => ownerOf(each)?.uid === service.metadata.uid);
  const isPlaceholder = (slice: Any): boolean => (slice.endpoints ?? []).length === 0 && (slice.ports ?? []).length === 0;
  let [created, updated] = [0, 0];
  const deleted: Any[] = [];
  for (const [key, group] of wanted) {
    const rooms: number[] = [];     // endpoints of slices that are written anyway
    const unchanged: number[] = []; // endpoints of slices that are as they should be
    for (const slice of owned.filter((each) => portsKey(each.ports ?? []) === key)) {
      const all: Endpoint[] = (slice.endpoints ?? []).map(readEndpoint);
      const kept = all.filter((each) => group.has(idOf(each)));
      const differs = kept.length !== all.length || kept.some((each) => !sameState(each, group.get(idOf(each))!));
      for (const each of kept) group.delete(idOf(each));
      if (differs && kept.length === 0) deleted.push(slice);
      else if (differs || otherLabels(slice.metadata?.labels) !== otherLabels(service.metadata?.labels)) rooms.push(kept.length);
      else unchanged.push(all.length);
    }
    let left = group.size - rooms.reduce((sum, each) => sum + PER_SLICE - each, 0);
    updated += rooms.length;
    while (left > 0) {
      const place = unchanged.findIndex((each) => left < PER_SLICE && each + left <= PER_SLICE);
      if (place >= 0) { unchanged.splice(place, 1); updated += 1; left = 0; } else { created += 1; left -= PER_SLICE; }
    }
  }
  deleted.push(...slices.filter((each) => !owned.includes(each)), ...owned.filter((each) => !wanted.has(portsKey(each.ports ?? []))));
  if (slices.length === deleted.length && created === 0 && updated === 0) {
    if (deleted.length === 1 && isPlaceholder(deleted[0]) && otherLabels(deleted[0].metadata?.labels) === otherLabels(service.metadata?.labels)) return 0;
    created = 1;
  }
  const reused = Math.min(created, deleted.filter((each) => owned.includes(each)).length); // one write where two would do the same
  return created + updated + deleted.length - reused;
}

const readyOf = (slices: Any[]): number => slices.reduce((sum, slice) => sum + (slice.endpoints ?? []).filter((each: Any) => each.conditions?.ready ?? true).length, 0);
const totalOf = (slices: Any[]): number => slices.reduce((sum, slice) => sum + (slice.endpoints ?? []).length, 0);

// Places of pods in the order in which they are listed: problems first.
const PLACES = ['not ready', 'no address', 'left out', 'ending', 'not selected', 'ready', 'ended'] as const;
type Place = (typeof PLACES)[number];
interface Placed { place: Place; pod: Any; why: string }

/** The only label that keeps a pod from being selected; null: several do, or it belongs to something else. */
function nearMiss(selector: [string, string][], pod: Any, noneSelected: boolean): { key: string; wanted: string; has: string | undefined } | null {
  const differing = selector.filter(([key, wanted]) => pod.metadata?.labels?.[key] !== wanted);
  if (differing.length !== 1) return null;
  const [key, wanted] = differing[0]!;
  const has: string | undefined = pod.metadata?.labels?.[key];
  // With a single label, a pod with another value of it belongs to something else, unless no pod has the label as wanted.
  return selector.length > 1 || (noneSelected && has !== undefined) ? { key, wanted, has } : null;
}

function placeOf(pod: Any, scene: ServiceScene, ports: Any[]): Placed {
  const endpoint = familiesOf(scene.service).map((family) => endpointOf(pod, scene, family)).find((each) => each !== null);
  if (endpoint === undefined || endpoint === null) {
    if (isTerminal(pod)) return { place: 'ended', pod, why: pod.status.phase };
    if (!pod.status?.podIP) return { place: 'no address', pod, why: whyNotReady(pod) };
    const node = pod.spec?.nodeName ?? '';
    return { place: 'left out', pod, why: scene.nodes !== null && !scene.nodes.has(node) ? `its node ${node} is not there` : 'none of its addresses is of a family of the service' };
  }
  if (endpoint.ending) return { place: 'ending', pod, why: endpoint.serving ? 'it still answers' : 'it no longer answers' };
  if (!endpoint.serving) return { place: 'not ready', pod, why: whyNotReady(pod) };
  const missing = ports.filter((port) => targetPort(port, pod) === undefined).map(targetText);
  return { place: 'ready', pod, why: missing.length === 0 ? '' : `it has no port named ${missing.join(', ')}` };
}

export function explainService(scene: ServiceScene): Outlook {
  const { service, pods, slices } = scene;
  const spec = service.spec ?? {};
  const selector = selectorOf(service);
  const ports: Any[] = (spec.ports ?? []).slice(0, PORTS_MAX);
  const out: Outlook = { subject: subjectOf('Service', service), state: 'good', remarks: [], parts: [] };
  const say = (code: string, facts: Facts = {}): void => { out.remarks.push({ code, facts }); };
  const isOther = spec.type === 'ExternalName';
  const isDeleted = Boolean(service.metadata?.deletionTimestamp);
  const selected = pods === null ? [] : pods.filter((pod) => selects(service, pod));
  const placed = selected.map((pod) => placeOf(pod, scene, ports));
  const at = (place: Place): Placed[] => placed.filter((each) => each.place === place);
  const ready = placed.filter(({ place, pod }) => (place === 'ready' || (spec.publishNotReadyAddresses === true && (place === 'not ready' || place === 'ending'))) && !isTerminal(pod)).map((each) => each.pod);
  const draining = at('ending').filter(({ pod }) => isReady(pod)).length;
  const missesByKey = new Map<string, { pods: number; wanted: string }>();
  if (pods !== null && selectsPods(service)) {
    for (const pod of pods) {
      if (isTerminal(pod) || selects(service, pod)) continue;
      const miss = nearMiss(selector, pod, selected.length === 0);
      if (miss === null) continue;
      missesByKey.set(miss.key, { pods: (missesByKey.get(miss.key)?.pods ?? 0) + 1, wanted: miss.wanted });
      placed.push({ place: 'not selected', pod, why: miss.has ? `its label ${miss.key} is ${miss.has}, not ${miss.wanted}` : `it has no label ${miss.key}` });
    }
  }
  const podsWith = (port: Any): number => ready.filter((pod) => targetPort(port, pod) !== undefined).length;
  const missingPort = (port: Any): void => say('service-port-missing', { port: port.port, target: targetText(port), pods: ready.length - podsWith(port), ready: ready.length });

  if (isDeleted) say('being-deleted');
  else if (isOther) say('service-external-name', { external_name: String(spec.externalName ?? '') });
  else if (selector.length === 0) {
    say('service-no-selector', slices === null ? {} : { endpoints: totalOf(slices) });
    if (slices !== null && totalOf(slices) === 0) out.state = 'bad';
  } else if (pods === null) {
    if (slices !== null) { say('service-ready', { ready: readyOf(slices), pods: totalOf(slices) }); out.state = readyOf(slices) > 0 ? 'good' : 'bad'; }
    say('not-read', { what: 'pods' });
  } else if (selected.length === 0) {
    say('service-no-match', { selector: selectorText(service) });
    out.state = 'bad';
  } else if (ready.length === 0 && draining > 0) {
    say('service-draining', { pods: draining });
    out.state = 'waits';
  } else if (ready.length === 0) {
    const first = at('not ready')[0] ?? at('no address')[0] ?? at('left out')[0];
    say('service-none-ready', countText(selected.length - at('ended').length, first === undefined ? {} : { pod: first.pod.metadata.name, why: first.why }));
    out.state = 'bad';
  } else if (ports.length === 1 && spec.ports.length === 1 && podsWith(ports[0]) === 0) {
    missingPort(ports[0]);
    out.state = 'bad';
  } else if (scene.notCarried && !isHeadless(service) && ports.length > 0) {
    say('service-not-carried', { ready: ready.length, pods: selected.length - at('ended').length, address: spec.clusterIP ?? '', why: scene.notCarried,
      name: service.metadata.name, port: ports[0].port });
    out.state = 'bad';
  } else say('service-ready', { ready: ready.length, pods: selected.length - at('ended').length });

  if (!isOther) {
    if (ports.length === 0 && selector.length > 0) say('service-no-ports');
    for (const port of ports) if (podsWith(port) < ready.length && !out.remarks.some((each) => each.code === 'service-port-missing')) missingPort(port);
    if (isHeadless(service)) say('service-headless');
    if (spec.publishNotReadyAddresses === true) say('service-not-ready-published');
    const most = [...missesByKey].sort(([a, x], [b, y]) => y.pods - x.pods || (a < b ? -1 : 1))[0];
    if (most !== undefined) say('service-left-out', { pods: most[1].pods, key: most[0], wanted: most[1].wanted });
    if (slices === null) say('not-read', { what: 'endpoint slices' });
    else {
      say('service-slices', { slices: slices.length, endpoints: totalOf(slices), ready: readyOf(slices) });
      if (pods !== null && selectsPods(service) && !isDeleted) {
        const own = slices.filter((each) => each.metadata?.labels?.['endpointslice.kubernetes.io/managed-by'] === SLICE_CONTROLLER && !each.metadata?.deletionTimestamp);
        const families = familiesOf(service);
        const writes = families.reduce((sum, family) => sum + writesDue(scene, selected, own.filter((each) => each.addressType === family), family), 0) +
          own.filter((each) => !families.includes(each.addressType)).length;
        if (writes > 0) say('service-behind', { writes });
      }
    }
  }
  if (placed.length > 0) {
    const ordered = PLACES.flatMap((place) => placed.filter((each) => each.place === place));
    out.parts.push(partOf('pods', ordered.map(({ place, pod, why }): Row => ({ name: pod.metadata.name, state: place, facts: { node: pod.spec?.nodeName ?? '', why } }))));
  }
  if (!isOther && (spec.ports ?? []).length > 0) {
    out.parts.push(partOf('ports', spec.ports.map((port: Any): Row => ({ name: port.name ?? '', state: `${port.port}/${port.protocol ?? 'TCP'}`,
      facts: { target: targetText(port), ...(pods !== null && selectsPods(service) ? { pods: podsWith(port) } : {}) } }))));
  }
  if (slices !== null && slices.length > 0) {
    out.parts.push(partOf('slices', slices.map((slice: Any): Row => ({ name: slice.metadata.name, state: slice.addressType ?? '', facts: { endpoints: (slice.endpoints ?? []).length, ready: readyOf([slice]),
      ports: (slice.ports ?? []).map((each: Any) => `${each.port ?? 0}/${each.protocol ?? 'TCP'}`).join(', ') } }))));
  }
  return out;
}
