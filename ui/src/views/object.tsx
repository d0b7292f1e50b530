// One object: its state and why, what belongs to it, and what happened to it.
import { useEffect, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { ApiError } from '../live/api.ts';
import { explainObject, type Explanation } from '../live/explaining.ts';
import { commandFor, kindOf, pageOf } from '../rules/kinds.ts';
import { headlineOf, type Subject } from '../rules/outlook.ts';
import { claimsOf, containerRows, isReady, ownerOf, whyNotReady } from '../rules/pods.ts';
import { selectorText } from '../rules/services.ts';
import { Logs } from './logs.tsx';
import { aboutPodNamed, Answered, type Answer } from './why.tsx';
import { ago, Folded, Grid, Named, nodeLink, Note, Section, STATE_SIGNS, useCluster, useSeconds } from './parts.tsx';

const EVERY_MS = 5000;
const PODS_SHOWN = 200;
const COMPLETE = 'completed';

interface Seen { explained: Explanation | null; answers: Answer[]; problem: ApiError | null; read: boolean }

async function read(cluster: Cluster, subject: Subject): Promise<Seen> {
  try {
    const explained = await explainObject(cluster, subject);
    // A pod has more behind it: decisions of its node's agent, and of the scheduler. Of a pod that is gone they may still be known.
    const answers = subject.kind === 'Pod' ? await aboutPodNamed(cluster, subject.ns, subject.name)
      : explained?.outlook ? [{ sentence: headlineOf(explained.outlook), subject, outlook: explained.outlook, decision: null, second: null, pod: null, node: '', podInfo: null, notes: [] }] : [];
    return { explained, answers, problem: null, read: true };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { explained: null, answers: [], problem: error, read: true };
  }
}

const phaseOf = (pod: any): string => (pod.metadata.deletionTimestamp ? 'ending' : pod.status?.phase === 'Succeeded' ? COMPLETE : pod.status?.phase === 'Running' ? (isReady(pod) ? 'ready' : 'running, not ready') : pod.status?.reason || pod.status?.phase || 'Pending');

/** The facts of an object, as pairs of a word and a value. */
function factsOf({ subject, object }: Explanation): [string, string][] {
  const { spec = {}, status = {} } = object;
  const pairs: [string, unknown][] = [];
  if (subject.kind === 'Pod') pairs.push(['Phase', phaseOf(object)], ['Address', status.podIP], ['Priority', spec.priority], ['Class', status.qosClass]);
  else if (subject.kind === 'PersistentVolumeClaim') pairs.push(['Phase', status.phase], ['Volume', spec.volumeName], ['StorageClass', spec.storageClassName], ['Size', status.capacity?.storage ?? spec.resources?.requests?.storage], ['Access', (spec.accessModes ?? []).join(', ')]);
  else if (subject.kind === 'Service') pairs.push(['Type', spec.type ?? 'ClusterIP'], ['Address', spec.clusterIP], ['From outside', (status.loadBalancer?.ingress ?? []).map((each: any) => each.ip ?? each.hostname).join(', ')],
    ['Ports', (spec.ports ?? []).map((each: any) => `${each.port}/${each.protocol ?? 'TCP'}${each.nodePort ? ` (node port ${each.nodePort})` : ''}`).join(', ')], ['Selects', selectorText(object)]);
  else if (subject.kind === 'DaemonSet') pairs.push(['Wanted', status.desiredNumberScheduled], ['Ready', status.numberReady]);
  else if (subject.kind === 'Job') pairs.push(['Wanted', spec.completions], ['Succeeded', status.succeeded ?? 0], ['Failed', status.failed ?? 0]);
  else pairs.push(['Wanted', spec.replicas], ['Ready', status.readyReplicas ?? 0], ['Updated', status.updatedReplicas]);
  return pairs.filter(([, value]) => value !== undefined && value !== null && value !== '').map(([word, value]) => [word, String(value)]);
}

function Pods({ title, pods }: { title: string; pods: any[] }) {
  return (
    <Section title={title} sub={`${pods.filter(isReady).length} of ${pods.length} ready`}>
      <div class="table wraps" role="region" aria-label={`List: ${title}`} tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Pod</th><th scope="col">State</th><th scope="col">Restarts</th><th scope="col">Node</th><th scope="col">Why</th></tr></thead>
          <tbody>{pods.slice(0, PODS_SHOWN).map((pod) => (
            <tr key={pod.metadata.name}>
              <td><Named kind="Pod" ns={pod.metadata.namespace} name={pod.metadata.name} /></td><td>{phaseOf(pod)}</td>
              <td>{containerRows(pod).reduce((sum, each) => sum + Number(each.facts.restarts ?? 0), 0)}</td>
              <td>{pod.spec?.nodeName ? <a href={nodeLink(pod.spec.nodeName)}>{pod.spec.nodeName}</a> : '-'}</td><td>{isReady(pod) || pod.status?.phase === 'Succeeded' ? '' : whyNotReady(pod)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {pods.length > PODS_SHOWN && <p class="quiet">and {pods.length - PODS_SHOWN} more</p>}
    </Section>
  );
}

function Containers({ pod }: { pod: any }) {
  const rows = containerRows(pod);
  if (rows.length === 0) return <Note kind="empty">None of its containers has started.</Note>;
  const images = new Map<string, string>([...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map((each: any) => [each.name, each.image ?? '']));
  const restarted = new Set(rows.filter((row) => Number(row.facts.restarts) > 0).map((row) => row.name));
  return (
    <>
      <Grid label="List of containers" wraps table={{ title: 'Containers', marked: -1, headings: ['Container', 'State', 'Restarts', 'Image'],
        rows: rows.map((row) => [row.name, row.state, String(row.facts.restarts), images.get(row.name) ?? '']) }} />
      <Logs pod={pod} containers={rows.map((row) => row.name)} restarted={restarted} />
    </>
  );
}

/** Objects that a pod belongs to or uses. */
function Related({ explained }: { explained: Explanation }) {
  const { object, subject, services } = explained;
  const owner = ownerOf(object);
  const claims = subject.kind === 'Pod' ? claimsOf(object) : [];
  const node = subject.kind === 'Pod' ? object.spec?.nodeName : '';
  if (owner === undefined && claims.length === 0 && services.length === 0 && !node) return null;
  return (
    <ul class="related" aria-label="Related objects">
      {node && <li>Node <a href={nodeLink(node)}>{node}</a></li>}
      {owner !== undefined && <li>{owner.kind} <Named kind={owner.kind} ns={subject.ns} name={owner.name} /></li>}
      {claims.map((each) => <li key={each}>Claim <Named kind="PersistentVolumeClaim" ns={subject.ns} name={each} /></li>)}
      {services.map((each) => <li key={each.metadata.name}>Service <Named kind="Service" ns={subject.ns} name={each.metadata.name} /></li>)}
    </ul>
  );
}

export function ObjectView({ cluster, subject }: { cluster: Cluster; subject: Subject }) {
  useCluster(cluster);
  const now = useSeconds();
  const [seen, setSeen] = useState<Seen>({ explained: null, answers: [], problem: null, read: false });
  const { kind, ns, name } = subject;
  const ready = cluster.nodes.session.phase !== 'loading';
  useEffect(() => {
    if (!ready) return undefined;
    let late = false;
    void (async () => {
      while (!late) {
        if (document.visibilityState !== 'hidden') { const next = await read(cluster, { kind, ns, name }); if (!late) setSeen(next); }
        await new Promise((done) => setTimeout(done, EVERY_MS));
      }
    })();
    return () => { late = true; };
  }, [cluster, kind, ns, name, ready]);
  const known = kindOf(kind);
  if (known === undefined) return <Note kind="empty">There is no page for that kind of object. <a href="#/objects">All objects</a></Note>;
  const { explained, answers, problem } = seen;
  const events = [...cluster.events.items.values()].filter((each) => each.kind === kind && each.ns === ns && each.name === name).sort((a, b) => b.atMs - a.atMs).slice(0, 50);
  const state = explained?.outlook?.state ?? (kind === 'Pod' && explained !== null ? (isReady(explained.object) || explained.object.status?.phase === 'Succeeded' ? 'good' : explained.object.status?.phase === 'Failed' ? 'bad' : 'waits') : 'waits');
  const created = Date.parse(explained?.object.metadata?.creationTimestamp ?? '');
  return (
    <>
      <div class="head">{explained !== null && <i class={`swatch ${state}`} aria-hidden="true">{STATE_SIGNS[state]}</i>}<div><h2 class="big">{name}</h2>
        <p class="quiet">{kind === 'PersistentVolumeClaim' ? 'Claim' : kind} in namespace <a href={`#/objects?ns=${encodeURIComponent(ns)}`}>{ns}</a>{Number.isNaN(created) ? '' : `, made ${ago(created, now)}`}</p></div></div>
      <Section title="Why">
        <div aria-live="polite">
          {!seen.read && <Note kind="loading">Reading {known.names[0]} {name}…</Note>}
          {problem !== null && <Note kind={problem.denied ? 'denied' : 'lost'}>{problem.denied ? <b>You may not read {known.plural}.</b> : 'Not read:'} {problem.message}</Note>}
          {seen.read && problem === null && explained === null && <Note kind="empty">There is no {kind === 'PersistentVolumeClaim' ? 'claim' : kind} of that name in namespace {ns} (any more). <a href={`#/objects?kind=${kind}`}>All {known.title}</a></Note>}
          {answers.filter((each) => each.pod === null || each.pod.ns === ns).map((each, i) => <Answered key={i} cluster={cluster} each={each} page />)}
        </div>
        <p class="quiet">In a terminal: <code>{commandFor(subject)}</code></p>
      </Section>
      <div class="grid">
        {explained !== null && <Section title="State"><dl class="facts">{factsOf(explained).map(([word, value]) => <div key={word}><dt>{word}</dt><dd>{value}</dd></div>)}</dl><Related explained={explained} /></Section>}
        {explained !== null && kind === 'Pod' && <Section title="Containers"><Containers pod={explained.object} /></Section>}
        {explained !== null && kind === 'Service' && <Section title="Endpoints" sub="Addresses to which connections go">
          {explained.endpoints === null ? <Note kind="denied">You may not list endpointslices: its endpoints are not shown.</Note> : explained.endpoints.length === 0 ? <Note kind="empty">It has no endpoints.</Note>
            : <Grid label="List of endpoints" wraps link={(pod) => (pod === '-' ? '' : pageOf({ kind: 'Pod', ns, name: pod }))} table={{ title: 'Endpoints', marked: -1, headings: ['Pod', 'Address', 'Ports', 'State', 'Node'], rows: explained.endpoints.slice(0, PODS_SHOWN).map((each) => [each.pod || '-', each.address, each.ports || '-', each.state, each.node || '-']) }} />}
        </Section>}
        {explained !== null && kind !== 'Pod' && kind !== 'Service' && (explained.pods.length > 0 ? <Pods title={kind === 'PersistentVolumeClaim' ? 'Pods that use it' : 'Pods'} pods={explained.pods} />
          : <Section title={kind === 'PersistentVolumeClaim' ? 'Pods that use it' : 'Pods'}><Note kind="empty">{kind === 'PersistentVolumeClaim' ? 'No pod uses it.' : 'It has no pods.'}</Note></Section>)}
        <Section title="Events" sub="Newest first">
          {cluster.events.session.phase === 'denied' ? <Note kind="denied">You may not list events.</Note> : events.length === 0 ? <Note kind="empty">No events about it are on record.</Note> : <Folded list={events} now={now} />}
        </Section>
      </div>
    </>
  );
}
