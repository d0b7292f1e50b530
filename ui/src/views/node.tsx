// One node: what it measures against its thresholds, its heartbeats and conditions, and who would go first.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { ApiError, find } from '../live/api.ts';
import { bytesText, secondsText, sentenceOf as reasonSentence, type Decision } from '../rules/decisions.ts';
import { sentenceOf } from '../rules/health.ts';
import { zoneText, type NodeInfo, type PodInfo } from '../rules/objects.ts';
import { aboveRequest, placeWords, rankForMemory } from '../rules/ranking.ts';
import { podUsage, pressureOf, signalsOf, signalsOfSummary, type Pressure, type Signal } from '../rules/signals.ts';
import { Chart } from './chart.tsx';
import { Explained, Grid, Note, problemOf, Section, useCluster, useSeconds, whyLink } from './parts.tsx';

const EVERY_MS = 2000;
const SUMMARY_EVERY = 3; // the summary is read every third time
const POINTS = 900;

interface Sample { at: number; signals: Map<string, Signal>; pressure: Pressure | null }
interface Seen {
  samples: Sample[]; signals: Signal[]; pressure: Pressure | null; standing: Decision | null; pods: PodInfo[] | null; usage: Map<string, number> | null;
  problems: string[]; conditions: Map<string, { at: number; status: string }[]>;
}
const nothing = (): Seen => ({ samples: [], signals: [], pressure: null, standing: null, pods: null, usage: null, problems: [], conditions: new Map() });

async function look(cluster: Cluster, name: string, seen: Seen, count: number, settings: { evictionHard: Record<string, string> | null; read: boolean }, signal: AbortSignal): Promise<void> {
  const problems: string[] = [];
  const attempt = async (what: string, act: () => Promise<void>) => {
    try { await act(); } catch (error) {
      if (signal.aborted || !(error instanceof ApiError)) return;
      problems.push(error.denied ? `You may not read ${what}.` : error.gone ? 'The server does not answer.' : `${what}: ${error.message}`);
    }
  };
  const proxy = `/api/v1/nodes/${encodeURIComponent(name)}/proxy`;
  await attempt("the agent's own view of the node (nodes/proxy)", async () => { seen.standing = await cluster.readNode(name); });
  if (count % SUMMARY_EVERY === 0 || seen.standing === null) {
    if (!settings.read) await attempt("the node's configuration (nodes/proxy)", async () => { const page = await find(`${proxy}/configz`, signal); settings.evictionHard = page?.kubeletconfig?.evictionHard ?? null; settings.read = true; });
    await attempt("the node's statistics (nodes/proxy)", async () => {
      const summary = await find(`${proxy}/stats/summary`, signal);
      if (summary === null) return;
      seen.pressure = pressureOf(summary);
      seen.usage = podUsage(summary);
      if (seen.standing === null) seen.signals = signalsOfSummary(summary, settings.evictionHard);
    });
    await attempt('its pods', async () => { seen.pods = await cluster.readPods(name, signal); });
  }
  if (seen.standing !== null) seen.signals = signalsOf(seen.standing);
  seen.problems = [...new Set(problems)];
  seen.samples.push({ at: Date.now() / 1000, signals: new Map(seen.signals.map((each) => [each.name, each])), pressure: seen.pressure });
  if (seen.samples.length > POINTS) seen.samples.shift();
}

const FORECAST_MAX_S = 86_400; // beyond a day it says nothing

/** Memory first; else in the node's order. */
const inOrder = (signals: Signal[]) => [...signals].sort((a, b) => Number(b.name === 'memory.available') - Number(a.name === 'memory.available'));

function countText(count: number): string {
  for (const [unit, size] of [['M', 1e6], ['k', 1e3]] as const) if (count >= 10 * size) return `${Math.round(count / size)}${unit}`;
  return String(Math.round(count));
}

/** A signal far from its threshold, which is folded: memory never is. */
function isFar(signal: Signal): boolean {
  if (signal.name === 'memory.available' || (signal.forecast !== null && signal.forecast < FORECAST_MAX_S)) return false;
  return (signal.state === 'threshold-not-met' || signal.state === 'no-threshold') && (signal.available === null || signal.threshold === null || signal.available >= 2 * signal.threshold);
}

function SignalChart({ signal, seen }: { signal: Signal; seen: Seen }) {
  const format = (value: number) => (signal.unit === 'bytes' ? bytesText(value) : countText(value));
  return (
    <div class={`signal ${signal.name === 'memory.available' ? 'first' : ''}`}>
      <p class="signal-line"><b>{signal.name}</b> <span class={`state ${signal.state === 'threshold-not-met' || signal.state === 'no-threshold' ? '' : 'bad'}`}>{signal.state.replace(/-/g, ' ')}</span>
        {signal.forecast !== null && signal.forecast < FORECAST_MAX_S && <span class="forecast"> threshold met in {secondsText(signal.forecast)} at the present rate</span>}</p>
      <Chart label={signal.name} titled times={seen.samples.map((each) => each.at)} format={format} binary={signal.unit === 'bytes'} height={signal.name === 'memory.available' ? 180 : 100}
        range={signal.capacity === null ? null : [0, signal.name === 'memory.available' ? signal.capacity : Math.max(signal.capacity, signal.available ?? 0)]}
        series={[{ label: 'available', colour: '--line1', values: seen.samples.map((each) => each.signals.get(signal.name)?.available ?? null) },
          { label: 'threshold', colour: '--bad', dashed: true, values: seen.samples.map((each) => each.signals.get(signal.name)?.threshold ?? null) }]} />
    </div>
  );
}

function Signals({ seen }: { seen: Seen }) {
  const far = inOrder(seen.signals).filter(isFar);
  const [open, setOpen] = useState(false); // curves are drawn only where they are seen
  return (
    <>
      <div class="signals">{inOrder(seen.signals).filter((each) => !isFar(each)).map((each) => <SignalChart key={each.name} signal={each} seen={seen} />)}</div>
      {far.length > 0 && <details onToggle={(event) => setOpen(event.currentTarget.open)}><summary>{far.length === 1 ? '1 other signal is far from its threshold' : `${far.length} other signals are far from their thresholds`}</summary>
        {open && <div class="signals">{far.map((each) => <SignalChart key={each.name} signal={each} seen={seen} />)}</div>}</details>}
    </>
  );
}

function Heartbeats({ cluster, name, now }: { cluster: Cluster; name: string; now: number }) {
  const beat = cluster.beats.get(name);
  const silence = cluster.silence(name);
  void now;
  if (cluster.leases.session.phase === 'denied') return <Note kind="denied">You may not list leases in kube-node-lease: heartbeats are not shown.</Note>;
  if (beat === undefined) return <Note kind="empty">This node has no lease: it reports by its status alone.</Note>;
  const gaps = beat.gapsMs.slice(-40);
  const most = Math.max(10_000, ...gaps.map((each) => each.gap));
  return (
    <>
      <p>The lease was renewed {silence === null ? 'at a time this page has not seen' : `${Math.round(silence)}s ago`}{gaps.length === 0 ? '; no renewal has been seen since this page was opened' : `, ${gaps.length === 40 ? 'the last 40' : gaps.length} seen with at most ${secondsText(Math.round(Math.max(...gaps.map((each) => each.gap)) / 100) / 10)} between two`}.</p>
      {gaps.length > 0 && <div class="beats" role="img" aria-label={`Time between ${gaps.length} heartbeats`}>{gaps.map((each) => <i key={each.at} class={each.gap > 25_000 ? 'late' : ''} style={{ height: `${Math.max(8, (100 * each.gap) / most)}%` }} />)}</div>}
    </>
  );
}

function Conditions({ node, now }: { node: NodeInfo; now: number }) {
  const span = 3600_000;
  const good = (type: string, status: string) => (type === 'Ready' ? status === 'True' : status === 'False');
  return (
    <ul class="conditions">
      {node.conditions.map((each) => {
        const since = Date.parse(each.since);
        const share = Number.isNaN(since) ? 1 : Math.min(1, Math.max(0.02, (now - since) / span));
        const kind = each.status === 'Unknown' ? 'unknown' : good(each.type, each.status) ? 'good' : 'bad';
        return (
          <li key={each.type}>
            <span class="name">{each.type}</span>
            <span class="strip" role="img" aria-label={`${each.type} is ${each.status} since ${each.since}`}><i class={kind} style={{ width: `${share * 100}%` }} /></span>
            <span class="quiet">{each.status} since {Number.isNaN(since) ? 'an unknown time' : each.since.replace('T', ' ')}{each.reason ? `, ${each.reason}` : ''}</span>
          </li>
        );
      })}
    </ul>
  );
}

function Order({ seen }: { seen: Seen }) {
  if (seen.standing !== null && seen.standing.candidates.length > 0) {
    return <><p class="sub">As the node's own agent would choose now.</p><Explained decision={{ ...seen.standing, reasons: [], cost: [], message: '' }} sentence={false} /></>;
  }
  if (seen.pods === null) return <Note kind="loading">Loading pods…</Note>;
  const active = seen.pods.filter((each) => each.phase === 'Running' || each.phase === 'Pending');
  if (active.length === 0) return <Note kind="empty">No pods run here.</Note>;
  if (seen.usage === null) return <Note kind="empty">{active.length} pods run here. How much memory they use is not known, so neither is their order.</Note>;
  const ranked = rankForMemory(active.map((each) => ({ uid: each.uid, ns: each.ns, name: each.name, usage: seen.usage!.get(each.uid) ?? null, request: each.requests ?? 0, priority: each.priority, critical: each.critical })));
  return (
    <>
      <p class="sub">Worked out by the kubelet's rules from its statistics: over its request, then priority, then how far over.</p>
      <Grid table={{ title: 'Order of eviction under memory pressure', headings: ['#', 'Pod', 'Uses', 'Requests', 'Above its request', 'Priority', 'Why in this place'], marked: -1,
        rows: ranked.map((pod, place) => [String(place + 1), `${pod.ns}/${pod.name}`, pod.usage === null ? '-' : bytesText(pod.usage), bytesText(pod.request), pod.usage === null ? '-' : bytesText(aboveRequest(pod)), String(pod.priority), placeWords(pod)]) }} />
    </>
  );
}

export function NodeView({ cluster, name }: { cluster: Cluster; name: string }) {
  useCluster(cluster);
  const now = useSeconds();
  const seen = useRef<Seen>(nothing());
  const [, redraw] = useState(0);
  const node = cluster.nodes.items.get(name);
  useEffect(() => {
    const stop = new AbortController();
    seen.current = nothing();
    const settings = { evictionHard: null, read: false };
    void (async () => {
      for (let count = 0; !stop.signal.aborted; count += 1) {
        if (document.visibilityState !== 'hidden') await look(cluster, name, seen.current, count, settings, stop.signal);
        if (!stop.signal.aborted) redraw(count);
        await new Promise((done) => setTimeout(done, EVERY_MS));
      }
    })();
    return () => stop.abort();
  }, [cluster, name]);
  if (node === undefined) {
    return <Section title={`Node ${name}`}>{problemOf(cluster.nodes.session, 'nodes', true) ?? <Note kind="empty">There is no node of that name (any more). <a href="#/cluster">All nodes</a>; <a href={whyLink(`node/${name}`)}>what is known about it</a>.</Note>}</Section>;
  }
  const state = cluster.states.get(name) ?? 'unknown';
  const { samples, pressure } = seen.current;
  const per = (value: number) => `${Math.round(value * 10) / 10}%`;
  const pressureNames: [keyof Pressure, string, string][] = [['memorySome', 'memory, some', '--line1'], ['memoryFull', 'memory, all', '--bad'], ['cpuSome', 'cpu, some', '--line2'], ['ioSome', 'io, some', '--line3']];
  const beside = seen.current.standing?.reasons.filter((each) => ['in-blind-zone', 'estimate-disagrees', 'eviction-in-progress', 'held'].includes(each.code)) ?? [];
  return (
    <>
      <div class="head"><i class={`swatch ${state}`} aria-hidden="true" /><div><h2 class="big">{name}</h2><p>{sentenceOf(node, state, cluster.silence(name))}.</p>
        <p class="quiet">{node.zone === '' ? 'no zone label' : `zone ${zoneText(node.zone)}`}, {node.version || 'unknown version'}{node.taints.length > 0 ? `, taints ${node.taints.map((each) => `${each.key}:${each.effect}`).join(' ')}` : ''}</p></div></div>
      {seen.current.problems.map((each) => <Note kind="denied" key={each}>{each}</Note>)}
      <div class="grid">
        <Section title="Signals against thresholds" sub="Since this page was opened on this node" wide tall>
          {seen.current.signals.length === 0 ? (samples.length === 0 ? <Note kind="loading">Asking the node…</Note> : <Note kind="empty">The node does not report what it measures.</Note>) : <Signals seen={seen.current} />}
          {beside.map((each, i) => <Note kind="lost" key={i}>{reasonSentence(each)}</Note>)}
        </Section>
        <Section title="Order of eviction" sub="Who would go first if memory ran short" wide><Order seen={seen.current} /></Section>
        <Section title="Pressure stall" sub="Share of time in which tasks waited, over ten seconds">
          {pressure === null ? <Note kind="empty">{samples.length === 0 ? 'Asking the node…' : 'This node does not measure pressure stall information.'}</Note>
            : <Chart label="PSI" times={samples.map((each) => each.at)} format={per} range={[0, Math.max(5, ...samples.flatMap((each) => Object.values(each.pressure ?? {}).map((value) => Number(value ?? 0))))]}
              series={pressureNames.filter(([key]) => pressure[key] !== null).map(([key, label, colour]) => ({ label, colour, values: samples.map((each) => each.pressure?.[key] ?? null) }))} />}
        </Section>
        <Section title="Heartbeats"><Heartbeats cluster={cluster} name={name} now={now} /></Section>
        <Section title="Conditions" sub="The strip is the last hour" wide>{node.conditions.length === 0 ? <Note kind="empty">It has not reported any condition.</Note> : <Conditions node={node} now={now} />}</Section>
      </div>
    </>
  );
}
