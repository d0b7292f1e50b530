// A name goes in, a sentence comes out, and below it what it rests on.
import { useEffect, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { ApiError, find, get } from '../live/api.ts';
import { parseAsked } from '../rules/asked.ts';
import { bestAbout, headline, readDecision, type Decision, type Pod } from '../rules/decisions.ts';
import { sentenceOf } from '../rules/health.ts';
import { leanPod, type PodInfo } from '../rules/objects.ts';
import { aboutPod, podSentence, type Row } from '../rules/rows.ts';
import { allRows, Opened } from './decisions.tsx';
import { Explained, Happenings, nodeLink, Note, problemOf, Section, useCluster, useSeconds } from './parts.tsx';

interface Answer { sentence: string; decision: Decision | null; second: Decision | null; pod: Pod | null; node: string; podInfo: PodInfo | null; notes: string[] }

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
  return { sentence, decision: lifecycle, second: standing, pod: null, node: name, podInfo: null, notes };
}

async function podsNamed(ns: string, name: string): Promise<PodInfo[]> {
  if (ns !== '') { const found = await find(`/api/v1/namespaces/${ns}/pods/${name}`); return found === null ? [] : [leanPod(found)]; }
  const list = await get(`/api/v1/pods?fieldSelector=metadata.name%3D${encodeURIComponent(name)}`);
  return (list.items ?? []).map(leanPod);
}

async function aboutPodNamed(cluster: Cluster, ns: string, name: string): Promise<Answer[]> {
  const notes: string[] = [];
  const pods = await podsNamed(ns, name);
  const rows = allRows(cluster);
  const keys = new Map<string, PodInfo | null>(pods.map((each) => [each.ns, each]));
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
    const sentence = about || (best !== null && !refused && (info === null || best.verdict !== 'acts')) ? headline(best!, pod) : info !== null ? podSentence(info) : best !== null ? headline(best, pod) : rows.find((each) => aboutPod(each, space, name))?.sentence ?? `pod ${space}/${name} is gone`;
    answers.push({ sentence, decision: best !== null && (about || !refused) ? best : null, second: null, pod, node: info?.node ?? best?.by ?? '', podInfo: info, notes });
  }
  return answers;
}

/** The decision about the pod that is known by now: events may come after the answer. */
function rowOf(cluster: Cluster, { decision, pod }: Answer): Row | null {
  return decision !== null || pod === null ? null : allRows(cluster).find((each) => aboutPod(each, pod.ns, pod.name)) ?? null;
}

export async function answer(cluster: Cluster, text: string): Promise<Answer[]> {
  const asked = parseAsked(text);
  if (asked === null) return [];
  const answers: Answer[] = [];
  if (asked.kind !== 'pod') { const node = await aboutNode(cluster, asked.name); if (node !== null) answers.push(node); }
  if (asked.kind !== 'node') answers.push(...(await aboutPodNamed(cluster, asked.ns, asked.name)).slice(0, MANY));
  return answers;
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
  const events = state.answers === null ? [] : [...cluster.events.items.values()].filter((each) => state.answers!.some((one) => (one.pod !== null ? each.ns === one.pod.ns && each.name === one.pod.name : each.kind === 'Node' && each.name === one.node)))
    .sort((a, b) => b.atMs - a.atMs).slice(0, 20);
  return (
    <Section title="Why" sub="Type the name of a pod or of a node: cart-7, shop/cart-7, node/n1">
      <form class="ask" role="search" aria-label="Ask why" onSubmit={(event) => { event.preventDefault(); setTries(tries + 1); location.hash = `#/why?q=${encodeURIComponent(text.trim())}`; }}>
        <input type="search" aria-label="Pod or node" value={text} list="names" autoFocus onInput={(event) => setText(event.currentTarget.value)} />
        <datalist id="names">{names.map((each) => <option key={each} value={`node/${each}`} />)}{failed.map((each) => <option key={each} value={each} />)}</datalist>
        <button type="submit" class="primary">Why?</button>
      </form>
      <div aria-live="polite">
        {problemOf(cluster.nodes.session, 'nodes', false)}
        {asked !== '' && state.problem !== '' && <Note kind="denied">{state.problem}</Note>}
        {asked !== '' && state.problem === '' && state.answers === null && <Note kind="loading">Asking…</Note>}
        {state.of === asked && asked !== '' && state.answers?.length === 0 && cluster.nodes.session.phase !== 'denied' && <Note kind="empty">{parseAsked(asked) === null ? 'That is no name of a pod or a node.' : `Nothing of that name is known, and nothing has been decided about it.`}</Note>}
        {state.of === asked && asked !== '' && state.answers?.map((each) => ({ ...each, row: rowOf(cluster, each) })).map((each, i) => (
          <article key={i}>
            <p class="answer">{each.sentence}.</p>
            {each.notes.map((note) => <Note kind="denied" key={note}>Not asked: {note}</Note>)}
            {each.decision !== null && <Explained decision={each.decision} pod={each.pod} sentence={false} />}
            {each.second !== null && <><h3>What its agent says</h3><Explained decision={each.second} /></>}
            {each.row !== null && <Opened row={each.row} cluster={cluster} />}
            {each.podInfo !== null && <p class="quiet">{each.podInfo.phase}{each.podInfo.owner === '' ? '' : `, of ${each.podInfo.owner}`}, priority {each.podInfo.priority}</p>}
            {each.node !== '' && cluster.nodes.items.has(each.node) && <p><a href={nodeLink(each.node)}>Node {each.node}</a></p>}
          </article>
        ))}
        {asked !== '' && events.length > 0 && <><h3>Events about it</h3><Happenings list={events} now={now} /></>}
      </div>
    </Section>
  );
}
