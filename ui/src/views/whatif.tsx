// The same future twice: nodes or a zone fall silent, with the brakes off and on; or pods grow, under two thresholds.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { ApiError, mayAt, open } from '../live/api.ts';
import { growthOf, namesIn, minutesText, outcomeOf, questionOf, verdictOf, zoneLabel, type Asked, type Future, type Happened, type Outcome } from '../rules/whatif.ts';
import { Grid, Note, problemOf, Section, useCluster } from './parts.tsx';

const EVENTS_SHOWN = 200;
type Kind = Asked['kind'];
interface Played { outcome: Outcome; labels: [string, string] }

const labelsOf = (asked: Asked): [string, string] =>
  asked.kind === 'threshold' ? [`at ${asked.thresholds[0]}`, `at ${asked.thresholds[1]}`] : ['without brakes', 'with brakes'];

/** True if the user may have futures played by the API server behind this door; null: not known yet. Those of `spillway dashboard` are played with the rights of the user who started it. */
function useMayPlay(cluster: Cluster): boolean | null {
  const asks = cluster.door.through === 'apiserver' && cluster.door.whatIf === true;
  const [may, setMay] = useState<boolean | null>(null);
  useEffect(() => { if (asks) void mayAt('post', '/ui/what-if').then(setMay); }, [asks]);
  return asks ? may : true;
}

/** Pods lost and nodes tainted, over time. */
function Lane({ future, label, most }: { future: Future; label: string; most: number }) {
  const bar = (counts: number[], kind: string, base: number) => counts.map((count, i) => (count === 0 ? null
    : <rect key={`${kind}${i}`} class={kind} x={i * 10 + 1} width={8} y={base - (30 * count) / most} height={(30 * count) / most} />));
  return (
    <figure class="lane">
      <figcaption><b>{label}</b>: {future.lost === 0 ? 'no pod' : future.lost === 1 ? '1 pod' : `${future.lost} pods`} lost, {future.recovered === null ? 'not all well at the end' : `all well ${future.recovered}`}</figcaption>
      <svg viewBox="0 0 600 70" preserveAspectRatio="none" role="img" aria-label={`${label}: pods lost and nodes tainted over ${minutesText(future.lastedSeconds)}`}>
        <path class="base" d="M0 34H600M0 68H600" />
        {bar(future.lostPerBin, 'lost', 34)}
        {bar(future.taintedPerBin, 'tainted', 68)}
      </svg>
    </figure>
  );
}

const eventRows = (events: Happened[]): string[][] =>
  events.slice(0, EVENTS_SHOWN).map((each) => [minutesText(each.atSeconds), each.what, each.object, each.node, each.reason]);

function Futures({ played: { outcome, labels } }: { played: Played }) {
  const { a, b } = outcome;
  const most = Math.max(1, ...a.lostPerBin, ...b.lostPerBin, ...a.taintedPerBin, ...b.taintedPerBin);
  return (
    <>
      <p class="answer">{verdictOf(outcome, labels)}.</p>
      <p class="quiet">{outcome.nodes} nodes, {outcome.pods} pods, {minutesText(a.lastedSeconds)} of virtual time each. Above: <span class="key lost">pods lost</span>, below: <span class="key tainted">nodes tainted</span>.</p>
      <Lane future={a} label={labels[0]} most={most} />
      <Lane future={b} label={labels[1]} most={most} />
      <Grid label="Both futures compared" wraps table={{ title: 'Both futures compared', headings: ['', labels[0], labels[1], 'Differs'], marked: -1, rows: outcome.figures.map((each) => [each.what, each.a, each.b, each.differs ? 'yes' : '']) }} />
      {([[labels[0], outcome.eventsA], [labels[1], outcome.eventsB]] as [string, Happened[]][]).map(([label, events]) => (
        <details key={label}>
          <summary>What happens {label} ({events.length})</summary>
          <Grid label={`What happens ${label}`} table={{ title: label, headings: ['After', 'What', 'Object', 'Node', 'Reason'], rows: eventRows(events), marked: -1 }} />
          {events.length > EVENTS_SHOWN && <p class="quiet">The first {EVENTS_SHOWN} of {events.length}.</p>}
        </details>
      ))}
      {outcome.notWell.map((lines, i) => lines.length > 0 && <details key={i}><summary>What is not well at the end {labels[i]} ({lines.length})</summary><ul>{lines.map((each) => <li key={each}>{each}</li>)}</ul></details>)}
      {outcome.leftOut.length > 0 && <details><summary>What the simulation leaves out ({outcome.leftOut.length})</summary><ul>{outcome.leftOut.slice(0, EVENTS_SHOWN).map((each) => <li key={each}>{each}</li>)}</ul></details>}
    </>
  );
}

export function WhatIfView({ cluster, query }: { cluster: Cluster; query: URLSearchParams }) {
  useCluster(cluster);
  const zones = [...new Set([...cluster.nodes.items.values()].map((each) => each.zone))].filter((each) => zoneLabel(each) !== '').sort();
  const [chosenKind, setKind] = useState<Kind | null>(query.has('nodes') ? 'nodes' : query.has('zone') ? 'zone' : null);
  const kind: Kind = chosenKind ?? (zones.length > 0 || cluster.nodes.items.size === 0 ? 'zone' : 'nodes'); // no zone can fall silent where no node has a zone label
  const [zone, setZone] = useState(query.get('zone') ?? '');
  const [typedNodes, setNodes] = useState(query.get('nodes'));
  const nodes = typedNodes ?? [...cluster.nodes.items.keys()].sort()[0] ?? '';
  const [minutes, setMinutes] = useState('10');
  const [pods, setPods] = useState('default/*');
  const [typedTo, setTo] = useState<string | null>(null);
  const smallest = Math.min(...[...cluster.nodes.items.values()].map((each) => each.memory ?? Infinity));
  const to = typedTo ?? growthOf(smallest);
  const [thresholds, setThresholds] = useState<[string, string]>(['100Mi', '10%']);
  const [problem, setProblem] = useState('');
  const [denied, setDenied] = useState(false);
  const [played, setPlayed] = useState<Played | null>(null);
  const [since, setSince] = useState<number | null>(null);
  const cancel = useRef<AbortController | null>(null);
  useEffect(() => () => cancel.current?.abort(), []);
  const may = useMayPlay(cluster);
  const chosen = zone !== '' ? zone : zones[0] ?? '';
  const ask = () => {
    const asked: Asked = kind === 'zone' ? { kind, zone: chosen, minutes: Number(minutes) } : kind === 'nodes' ? { kind, nodes: namesIn(nodes), minutes: Number(minutes) }
      : { kind, pods: pods.trim(), to: to.trim(), minutes: Number(minutes), thresholds: [thresholds[0].trim(), thresholds[1].trim()] };
    const question = questionOf(asked);
    setPlayed(null);
    if ('problem' in question) { setProblem(question.problem); return; }
    setProblem('');
    setDenied(false);
    setSince(Date.now());
    const mine = new AbortController();
    cancel.current = mine;
    open('ui/what-if', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(question.body), signal: mine.signal })
      .then((answer) => answer.json())
      .then((document) => { const outcome = outcomeOf(document); if (outcome === null) throw new Error('the answer is not a comparison'); setPlayed({ outcome, labels: labelsOf(asked) }); })
      .catch((error: Error) => {
        if (mine.signal.aborted) return;
        setDenied(error instanceof ApiError && error.denied);
        setProblem(error instanceof ApiError && error.gone ? 'The connection was lost.' : error.message);
      })
      .finally(() => setSince(null));
  };
  const busy = since !== null;
  const blocked = problemOf(cluster.nodes.session, 'nodes', cluster.nodes.items.size === 0);
  if (cluster.door.through !== '' && !cluster.door.whatIf) {
    return <Section title="What if"><Note kind="empty">Simulations are switched off here: {cluster.door.through === 'dashboard' ? 'this dashboard' : 'this API server'} was started with <code>--what-if=off</code>. In a terminal: <code>spillway simulate --from-cluster</code>.</Note></Section>;
  }
  if (may === null) return <Section title="What if"><Note kind="loading">Asking what you may do…</Note></Section>;
  if (!may) {
    return (
      <Section title="What if">
        <Note kind="denied"><b>You may not run simulations on this API server.</b> An administrator can give you the verb <code>post</code> on the path <code>/ui/what-if</code>, and <code>list</code> on what is simulated: nodes, pods, workloads, disruption budgets, priority classes.</Note>
        <p class="quiet">Without that, <code>spillway dashboard</code> and <code>spillway simulate --from-cluster</code> run them on your own machine, with what you may read.</p>
      </Section>
    );
  }
  return (
    <Section title="What if" sub="A simulation of the cluster as it is now plays the same future twice. The cluster itself is not changed.">
      {blocked}
      <form class="filters" onSubmit={(event) => { event.preventDefault(); ask(); }}>
        <label>What happens<select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
          <option value="zone">A zone falls silent</option><option value="nodes">Nodes fall silent</option><option value="threshold">Pods grow: which threshold?</option></select></label>
        {kind === 'zone' && <label>Zone<select value={chosen} onChange={(event) => setZone(event.currentTarget.value)}>{zones.length === 0 && <option value="">no node has a zone label</option>}{zones.map((each) => <option key={each} value={each}>{each}</option>)}</select></label>}
        {kind === 'nodes' && <label>Nodes, separated by commas<input value={nodes} list="what-if-nodes" onInput={(event) => setNodes(event.currentTarget.value)} /></label>}
        {kind === 'threshold' && <>
          <label>Pods<input value={pods} onInput={(event) => setPods(event.currentTarget.value)} /></label>
          <label>Memory that each of them grows to<input value={to} onInput={(event) => setTo(event.currentTarget.value)} /></label>
          <label>First threshold of memory.available<input value={thresholds[0]} onInput={(event) => setThresholds([event.currentTarget.value, thresholds[1]])} /></label>
          <label>Second threshold<input value={thresholds[1]} onInput={(event) => setThresholds([thresholds[0], event.currentTarget.value])} /></label>
        </>}
        <label>{kind === 'threshold' ? 'Minutes until then' : 'Minutes of silence'}<input type="number" min={1} max={60} value={minutes} onInput={(event) => setMinutes(event.currentTarget.value)} /></label>
        <p class="actions"><button type="submit" class="primary" disabled={busy || blocked !== null || (kind === 'zone' && chosen === '')}>Simulate</button>{busy && <button type="button" onClick={() => cancel.current?.abort()}>Stop</button>}</p>
      </form>
      <datalist id="what-if-nodes">{[...cluster.nodes.items.keys()].slice(0, 200).map((each) => <option key={each} value={each} />)}</datalist>
      <div aria-live="polite">
        {problem !== '' && <Note kind="denied">{denied ? <b>You may not run this simulation.</b> : 'Not run:'} {problem}</Note>}
        {busy && <Note kind="loading">Simulating both futures, which takes between a second and two minutes…</Note>}
        {played !== null && <Futures played={played} />}
        {played === null && !busy && problem === '' && blocked === null && <Note kind="empty">{kind === 'threshold' ? 'The pods use more and more memory, once with the first threshold of hard eviction on every node and once with the second.' : 'The nodes stop reporting and come back later, once with the brakes of Spillway’s controllers off, as stock controllers are, and once with them on.'}</Note>}
      </div>
    </Section>
  );
}
