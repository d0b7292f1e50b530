// A name goes in, a sentence comes out, and below it what it rests on.
import { useEffect, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { ApiError, find, get } from '../live/api.ts';
import { explainObject, troubleOf } from '../live/explaining.ts';
import { kindOf, listPath, namedPath, objectLink, pageOf } from '../rules/kinds.ts';
import { headlineOf, type Outlook, type Subject } from '../rules/outlook.ts';
import { parseAsked } from '../rules/asked.ts';
import { bestAbout, headline, readDecision, type Decision, type Pod } from '../rules/decisions.ts';
import { sentenceOf } from '../rules/health.ts';
import { leanPod, type PodInfo } from '../rules/objects.ts';
import { aboutPod, fromStatus, podSentence, type Row } from '../rules/rows.ts';
import { allRows, Opened } from './decisions.tsx';
import { Explained, Happenings, OutlookText, nodeLink, Note, problemOf, Section, useCluster, useSeconds } from './parts.tsx';

export interface Answer { sentence: string; subject: Subject | null; outlook: Outlook | null; decision: Decision | null; second: Decision | null; pod: Pod | null; node: string; podInfo: PodInfo | null; notes: string[] }

const MANY = 8;

async function aboutNode(cluster: Cluster, name: string): Promise<Answer | null> {
  const node = cluster.nodes.items.get(name);
  const notes: string[] = [];
  const ask = async <T,>(what: string, act: () => Promise<T>): Promise<T | null> => {
    try { return await act(); } catch (error) { notes.push(`${what}: ${error instanceof ApiError ? error.message : String(error)}`); return null; }
  };
  const lifecycle = readDecision(cluster.zones === null ? null : await ask('the controllers', () => find(`/debug/spillway/nodes/${encodeURIComponent(name)}`)));
  const standing = node === undefined || cluster.ours === false ? null : await ask('the agent', () => cluster.readNode(name));
  if (node === undefined && lifecycle === null) return null;
  const state = cluster.states.get(name) ?? 'unknown';
  const own = node === undefined ? '' : sentenceOf(node, state, cluster.silence(name));
  const sentence = lifecycle !== null ? headline(lifecycle) : own;
  return { sentence, subject: null, outlook: null, decision: lifecycle, second: standing, pod: null, node: name, podInfo: null, notes };
}

async function podsNamed(ns: string, name: string): Promise<any[]> {
  if (ns !== '') { const found = await find(`/api/v1/namespaces/${ns}/pods/${name}`); return found === null ? [] : [found]; }
  const list = await get(`/api/v1/pods?fieldSelector=metadata.name%3D${encodeURIComponent(name)}`);
  return list.items ?? [];
}

export async function aboutPodNamed(cluster: Cluster, ns: string, name: string): Promise<Answer[]> {
  const notes: string[] = [];
  const pods = await podsNamed(ns, name);
  const rows = allRows(cluster);
  const whole = new Map<string, any>(pods.map((each) => [String(each.metadata.namespace), each]));
  const keys = new Map<string, PodInfo | null>(pods.map((each) => [String(each.metadata.namespace), leanPod(each)]));
  for (const row of rows) if (row.kind === 'Pod' && row.name === name && (ns === '' || row.ns === ns) && !keys.has(row.ns)) keys.set(row.ns, null);
  const answers: Answer[] = [];
  for (const [space, info] of keys) {
    const pod = { ns: space, name };
    if (info !== null && info.node !== '' && cluster.nodes.items.has(info.node)) {
      try { await cluster.readNode(info.node); } catch (error) { if (error instanceof ApiError) notes.push(`node ${info.node}: ${error.message}`); }
    }
    let best: Decision | null = null;
    const places = info !== null && info.node !== '' ? [info.node] : [...cluster.decisions.keys()];
    for (const node of places) {
      const found = bestAbout(cluster.decisions.get(node) ?? [], cluster.standing.get(node) ?? null, pod);
      if (found !== null && (best === null || found.atMicros > best.atMicros)) best = found;
    }
    const about = best !== null && best.subject.kind === 'Pod' && best.subject.name === name && (best.subject.namespace ?? '') === space && (info === null || !best.subject.uid || best.subject.uid === info.uid);
    const refused = info !== null && (info.phase === 'Failed' || info.node === '');
    const outlook = whole.has(space) ? await troubleOf(cluster, whole.get(space)).catch(() => null) : null;
    const status = info === null ? null : fromStatus(info);
    const byNode = about || (best !== null && !refused && (info === null || best.verdict !== 'acts'));
    // As the command does it: the problems of its containers, a decision about the pod, its status, a decision in which it was compared.
    const sentence = outlook !== null ? headlineOf(outlook) : byNode && about ? headline(best!, pod) : status !== null ? headline(status) : byNode ? headline(best!, pod) : info !== null ? podSentence(info)
      : best !== null ? headline(best, pod) : rows.find((each) => aboutPod(each, space, name))?.sentence ?? `pod ${space}/${name} is gone`;
    answers.push({ sentence, subject: info === null ? null : { kind: 'Pod', ns: space, name }, outlook, decision: best !== null && (about || (!refused && outlook === null)) ? best : null, second: null, pod, node: info?.node ?? best?.by ?? '', podInfo: info, notes });
  }
  return answers;
}

/** The decision about the pod that is known by now: events may come after the answer. */
function rowOf(cluster: Cluster, { decision, pod }: Answer): Row | null {
  return decision !== null || pod === null ? null : allRows(cluster).find((each) => aboutPod(each, pod.ns, pod.name)) ?? null;
}

/** Objects of that name: in all namespaces, if none is given. */
async function aboutObjects(cluster: Cluster, kind: string, ns: string, name: string): Promise<Answer[]> {
  const path = kindOf(kind)!;
  const list = await get(ns === '' ? `${listPath(path)}?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}` : namedPath(path, ns, name));
  const found = (list.items ?? []).filter((each: any) => each.metadata?.name === name).slice(0, MANY);
  const answers: Answer[] = [];
  for (const each of found) {
    const subject = { kind, ns: String(each.metadata.namespace ?? ''), name };
    const explained = await explainObject(cluster, subject);
    if (explained?.outlook) answers.push({ sentence: headlineOf(explained.outlook), subject, outlook: explained.outlook, decision: null, second: null, pod: null, node: '', podInfo: null, notes: [] });
  }
  return answers;
}

export async function answer(cluster: Cluster, text: string): Promise<Answer[]> {
  const asked = parseAsked(text);
  if (asked === null) return [];
  if (asked.kind !== '' && asked.kind !== 'Pod' && asked.kind !== 'Node') return aboutObjects(cluster, asked.kind, asked.ns, asked.name);
  const answers: Answer[] = [];
  if (asked.kind !== 'Pod') { const node = await aboutNode(cluster, asked.name); if (node !== null) answers.push(node); }
  if (asked.kind !== 'Node') answers.push(...(await aboutPodNamed(cluster, asked.ns, asked.name)).slice(0, MANY));
  return answers;
}

/** The answer about one object: the sentence, and below it what it rests on. `page`: this is the page of the object. */
export function Answered({ cluster, each, page = false }: { cluster: Cluster; each: Answer; page?: boolean }) {
  const row = rowOf(cluster, each);
  return (
    <article>
      <p class="answer">{each.sentence}.</p>
      {each.notes.map((note) => <Note kind="denied" key={note}>Not asked: {note}</Note>)}
      {each.outlook !== null && <OutlookText outlook={each.outlook} without={page ? ['Containers', ...(each.subject?.kind === 'Service' ? ['Slices'] : ['Pods'])] : []} />}
      {each.decision !== null && <Explained decision={each.decision} pod={each.pod} sentence={each.outlook !== null} />}
      {each.second !== null && <><h3>What its agent says</h3><Explained decision={each.second} /></>}
      {row !== null && <Opened row={row} cluster={cluster} />}
      {!page && each.podInfo !== null && <p class="quiet">{each.podInfo.phase}{each.podInfo.owner === '' ? '' : `, of ${each.podInfo.owner}`}, priority {each.podInfo.priority}</p>}
      {!page && each.subject !== null && <p><a href={objectLink(each.subject)}>More about {each.subject.ns}/{each.subject.name}</a></p>}
      {!page && each.node !== '' && cluster.nodes.items.has(each.node) && <p><a href={nodeLink(each.node)}>Node {each.node}</a></p>}
    </article>
  );
}

export function WhyView({ cluster, query }: { cluster: Cluster; query: URLSearchParams }) {
  useCluster(cluster);
  const now = useSeconds();
  const asked = query.get('q') ?? '';
  const [text, setText] = useState(asked);
  const [tries, setTries] = useState(0);
  const [state, setState] = useState<{ of: string; answers: Answer[] | null; problem: string }>({ of: '', answers: null, problem: '' });
  const ready = cluster.nodes.session.phase !== 'loading' && cluster.zonesAsked;
  const controllersAnswer = cluster.zones !== null; // once they do, they may have a better answer than the node's status alone
  useEffect(() => setText(asked), [asked]);
  useEffect(() => {
    if (asked === '' || !ready) return undefined;
    let late = false;
    setState((before) => before.of === asked ? before : { of: asked, answers: null, problem: '' });
    answer(cluster, asked).then((answers) => { if (!late) setState({ of: asked, answers, problem: '' }); },
      (error: Error) => { if (!late) setState({ of: asked, answers: null, problem: error.message }); });
    return () => { late = true; };
  }, [asked, ready, controllersAnswer, tries]);
  const names = [...cluster.nodes.items.keys()].slice(0, 200);
  const failed = [...cluster.failed.items.keys()].slice(0, 200);
  const events = state.answers === null ? [] : [...cluster.events.items.values()].filter((each) => state.answers!.some((one) => (one.subject !== null && one.pod === null ? each.kind === one.subject.kind && each.ns === one.subject.ns && each.name === one.subject.name : one.pod !== null ? each.ns === one.pod.ns && each.name === one.pod.name : each.kind === 'Node' && each.name === one.node)))
    .sort((a, b) => b.atMs - a.atMs).slice(0, 20);
  return (
    <Section title="Why" sub="Type the name of a pod, node, workload, claim or Service: cart-7, shop/cart-7, node/n1, svc/shop/web, pvc/shop/data">
      <form class="ask" role="search" aria-label="Ask why" onSubmit={(event) => { event.preventDefault(); setTries(tries + 1); location.hash = `#/why?q=${encodeURIComponent(text.trim())}`; }}>
        <input type="search" aria-label="Name of an object" value={text} list="names" autoFocus onInput={(event) => setText(event.currentTarget.value)} />
        <datalist id="names">{names.map((each) => <option key={each} value={`node/${each}`} />)}{failed.map((each) => <option key={each} value={each} />)}</datalist>
        <button type="submit" class="primary">Why?</button>
      </form>
      <div aria-live="polite">
        {problemOf(cluster.nodes.session, 'nodes', false)}
        {asked !== '' && state.problem !== '' && <Note kind="denied">{state.problem}</Note>}
        {asked !== '' && state.problem === '' && state.answers === null && <Note kind="loading">Asking…</Note>}
        {state.of === asked && asked !== '' && state.answers?.length === 0 && cluster.nodes.session.phase !== 'denied' && <Note kind="empty">{parseAsked(asked) === null ? 'That is no name of an object. Kinds: pod, node, deployment, replicaset, statefulset, daemonset, job, pvc, service.' : `Nothing of that name is known, and nothing has been decided about it.`}</Note>}
        {state.of === asked && asked !== '' && state.answers?.map((each, i) => <Answered key={i} cluster={cluster} each={each} />)}
        {asked === '' && (cluster.overview?.concerns.length ?? 0) > 0 && <>
          <h3>What needs a look</h3>
          <ul class="links">{cluster.overview!.concerns.map(({ subject, sentence }) => <li key={`${subject.kind}/${subject.ns}/${subject.name}`}><a href={pageOf(subject)}>{sentence.split(': ')[0]}</a>: {sentence.split(': ').slice(1).join(': ')}</li>)}</ul>
        </>}
        {asked !== '' && events.length > 0 && <><h3>Events about it</h3><Happenings list={events} now={now} /></>}
      </div>
    </Section>
  );
}
