// Every node a tile, by zone, and what happens now.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { countZones, readyStatus, sentenceOf, STATE_MARKS, STATE_WORDS, STATES, type State } from '../rules/health.ts';
import { zoneText } from '../rules/objects.ts';
import { layOut, tileAt, type Layout, type Tile } from '../rules/tiles.ts';
import { Folded, nodeLink, Note, problemOf, Section, useCluster, useSeconds, useWidth } from './parts.tsx';
import { bytesText, secondsText } from '../rules/decisions.ts';
import { signalsOf } from '../rules/signals.ts';
import { pageOf } from '../rules/kinds.ts';

const TROUBLES_SHOWN = 50;
const SOON_SECONDS = 3600; // later than this an extrapolation of the last seconds means nothing
const FEW = 12; // nodes that have a row each besides their tile
const FLASH_MS = 900;
const ORDER = new Intl.Collator('en', { numeric: true });

/** Colours come from the style sheet, so that they follow the colour scheme. */
function palette(): Record<string, string> {
  const style = getComputedStyle(document.documentElement);
  const names = [...STATES.map((each) => `--t-${each}`), '--text', '--quiet', '--accent', '--card', '--mark'];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
}

interface Shown { layout: Layout; states: Map<string, State>; focus: string | null; dim: State | null; flashes: Map<string, number> }

function draw(canvas: HTMLCanvasElement, shown: Shown, colours: Record<string, string>, width: number): boolean {
  const { layout } = shown;
  const scale = devicePixelRatio || 1;
  const height = Math.max(1, layout.height + 2);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d')!;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '600 12px system-ui, sans-serif';
  pen.textBaseline = 'alphabetic';
  // Rectangles by colour: many fillRect of one style cost far less than a path of as many.
  const byState = new Map<State, Tile[]>(STATES.map((each) => [each, []]));
  const marks: [string, number, number][] = [];
  const now = performance.now();
  let moving = false;
  let focus: [number, number] | null = null;
  for (const zone of layout.zones) {
    const ready = zone.tiles.filter((each) => ['ready', 'cordoned', 'pressure', 'late'].includes(shown.states.get(each.name) ?? '')).length;
    const count = `${ready}/${zone.tiles.length}`;
    pen.fillStyle = colours['--text']!;
    pen.fillText(zoneText(zone.zone) === '-' ? 'no zone label' : zone.zone, zone.x, zone.y + 14, Math.max(40, zone.width - 60));
    pen.fillStyle = colours['--quiet']!;
    pen.textAlign = 'right';
    pen.fillText(count, zone.x + Math.max(zone.width, 60), zone.y + 14);
    pen.textAlign = 'left';
    for (const tile of zone.tiles) {
      const state = shown.states.get(tile.name) ?? 'unknown';
      byState.get(state)!.push(tile);
      if (layout.size >= 13 && STATE_MARKS[state] !== '') marks.push([STATE_MARKS[state], tile.x + layout.size / 2, tile.y + layout.size / 2]);
      if (tile.name === shown.focus) focus = [tile.x, tile.y];
    }
  }
  for (const [state, tiles] of byState) {
    pen.globalAlpha = shown.dim !== null && shown.dim !== state ? 0.18 : 1;
    pen.fillStyle = colours[`--t-${state}`]!;
    for (const tile of tiles) pen.fillRect(tile.x, tile.y, layout.size, layout.size);
  }
  pen.globalAlpha = 1;
  pen.fillStyle = colours['--mark']!;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  for (const [mark, x, y] of marks) pen.fillText(mark, x, y + 1);
  pen.textAlign = 'left';
  pen.strokeStyle = colours['--text']!;
  if (shown.flashes.size > 0) {
    for (const zone of layout.zones) {
      for (const tile of zone.tiles) {
        const since = shown.flashes.get(tile.name);
        if (since === undefined) continue;
        const part = (now - since) / FLASH_MS;
        if (part >= 1) { shown.flashes.delete(tile.name); continue; }
        moving = true;
        pen.globalAlpha = 1 - part;
        pen.lineWidth = 2;
        const grow = 1 + 4 * part;
        pen.strokeRect(tile.x - grow, tile.y - grow, layout.size + 2 * grow, layout.size + 2 * grow);
      }
    }
    pen.globalAlpha = 1;
  }
  if (focus !== null) {
    pen.strokeStyle = colours['--accent']!;
    pen.lineWidth = 2;
    pen.strokeRect(focus[0] - 1.5, focus[1] - 1.5, layout.size + 3, layout.size + 3);
  }
  return moving;
}

function Tiles({ cluster, dim }: { cluster: Cluster; dim: State | null }) {
  const [room, width] = useWidth<HTMLDivElement>();
  const drawn = useRef(width); // as wide as the last render was: a listener paints with it, too
  drawn.current = width;
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useRef<Shown>({ layout: { size: 1, gap: 1, height: 1, zones: [] }, states: cluster.states, focus: null, dim: null, flashes: new Map() });
  const [focus, setFocus] = useState<string | null>(null);
  const [hover, setHover] = useState<{ name: string; x: number; y: number } | null>(null);
  const colours = useRef(palette());
  const before = useRef(new Map<string, State>());
  const groups = useMemo(() => {
    const zones = new Map<string, string[]>();
    for (const node of cluster.nodes.items.values()) {
      const names = zones.get(node.zone);
      if (names === undefined) zones.set(node.zone, [node.name]); else names.push(node.name);
    }
    return [...zones].sort(([a], [b]) => (a < b ? -1 : 1)).map(([zone, names]): [string, string[]] => [zone, names.sort(ORDER.compare)]);
  }, [cluster, cluster.membership]);
  const layout = useMemo(() => layOut(groups, Math.max(width, 1), width < 700 ? 420 : 560), [groups, width]);
  const frame = useRef(0);
  const order = useMemo(() => groups.flatMap(([, names]) => names), [groups]);

  const paint = () => {
    if (frame.current !== 0) return;
    const step = () => {
      const begin = performance.now();
      const moving = drawn.current > 0 && canvas.current !== null && draw(canvas.current, shown.current, colours.current, drawn.current);
      performance.clearMeasures('spillway-draw');
      performance.measure('spillway-draw', { start: begin, end: performance.now() });
      frame.current = moving ? requestAnimationFrame(step) : 0;
    };
    frame.current = requestAnimationFrame(step);
  };
  useLayoutEffect(() => {
    const now = performance.now();
    for (const [name, state] of cluster.states) {
      const was = before.current.get(name);
      if (was !== undefined && was !== state && shown.current.flashes.size < 500) shown.current.flashes.set(name, now);
      before.current.set(name, state);
    }
    Object.assign(shown.current, { layout, states: cluster.states, focus, dim });
    paint();
  });
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const look = () => { colours.current = palette(); paint(); };
    scheme.addEventListener('change', look);
    return () => { scheme.removeEventListener('change', look); cancelAnimationFrame(frame.current); };
  }, []);

  const at = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return { name: tileAt(layout, event.clientX - box.left, event.clientY - box.top), x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const move = (event: KeyboardEvent) => {
    const zone = layout.zones.find((each) => each.tiles.some((tile) => tile.name === focus));
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(zone?.columns ?? 1), ArrowDown: zone?.columns ?? 1 };
    if (event.key === 'Enter' && focus !== null) { location.hash = nodeLink(focus); return; }
    if (order.length === 0) return;
    const place = focus === null ? -1 : order.indexOf(focus);
    let next: number;
    if (event.key === 'Home') next = 0;
    else if (event.key === 'End') next = order.length - 1;
    else if (steps[event.key] !== undefined) next = place < 0 ? 0 : Math.min(order.length - 1, Math.max(0, place + steps[event.key]!));
    else return;
    event.preventDefault();
    setFocus(order[next]!);
  };
  const say = (name: string) => {
    const node = cluster.nodes.items.get(name);
    return node === undefined ? name : sentenceOf(node, cluster.states.get(name) ?? 'unknown', cluster.silence(name));
  };
  return (
    <div class="tiles" ref={room}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-roledescription="map of nodes" aria-label={`${order.length} nodes; arrow keys move from node to node, Enter opens one`}
        onKeyDown={move} onFocus={() => setFocus(focus ?? order[0] ?? null)} onBlur={() => setFocus(null)}
        onMouseMove={(event) => { const found = at(event); setHover(found.name === null ? null : { name: found.name, x: found.x, y: found.y }); }}
        onMouseLeave={() => setHover(null)} onClick={(event) => { const { name } = at(event); if (name !== null) location.hash = nodeLink(name); }} />
      {hover !== null && <div class="tip" style={{ left: `${Math.max(0, Math.min(hover.x + 12, width - 260))}px`, top: `${hover.y + 16}px` }}>{say(hover.name)}</div>}
      <p class="spoken" aria-live="polite">{focus === null ? '' : say(focus)}</p>
    </div>
  );
}

/** The memory of a few nodes, and when it runs short, as their agents say it. */
function Few({ cluster, names }: { cluster: Cluster; names: string[] }) {
  const rows = names.map((name) => ({ name, signal: signalsOf(cluster.standing.get(name) ?? null).find((each) => each.name === 'memory.available') })).filter((each) => each.signal !== undefined);
  if (rows.length === 0) return null;
  return (
    <ul class="few" aria-label="Memory of the nodes">{rows.map(({ name, signal }) => {
      const share = signal!.capacity === null || signal!.available === null ? 0 : Math.min(1, Math.max(0, 1 - signal!.available / signal!.capacity));
      const soon = signal!.forecast !== null && signal!.forecast < SOON_SECONDS;
      return (
        <li key={name}><a href={nodeLink(name)}>{name}</a><span class="memory" aria-hidden="true"><i class={soon || signal!.state === 'threshold-met' ? 'bad' : ''} style={{ width: `${share * 100}%` }} /></span>
          <span class="quiet">{signal!.available === null ? 'not measured' : `${bytesText(signal!.available)} of ${bytesText(signal!.capacity ?? 0)} available`}{soon ? `; threshold met in ${secondsText(signal!.forecast!)}` : ''}</span></li>
      );
    })}</ul>
  );
}

/** The list that `spillway explain` prints without arguments: the first thing on the page. */
function Overview({ cluster }: { cluster: Cluster }) {
  const { overview, overviewProblem } = cluster;
  const sub = overview === null ? undefined
    : `${overview.nodesReady} of ${overview.nodes} nodes ready, ${overview.podsRunning} of ${overview.pods} pods running`;
  return (
    <Section title="What needs a look" sub={sub}>
      {overview === null && overviewProblem === null && <Note kind="loading">Reading the cluster…</Note>}
      {overviewProblem !== null && <Note kind={overviewProblem.gone ? 'loading' : 'denied'}>Not read: {overviewProblem.message}</Note>}
      {overview !== null && overview.total === 0 && <p class="calm">Nothing: every node is ready, and every pod, claim and Service works.</p>}
      {overview !== null && overview.total > 0 && (
        <ul class="concerns" aria-label="What needs a look">{overview.concerns.map((each) => {
          const link = pageOf(each.subject);
          const [head, ...rest] = each.sentence.split(': ');
          return (
            <li key={`${each.subject.kind}/${each.subject.ns}/${each.subject.name}`}>
              {link === '' ? <b>{head}</b> : <a href={link}>{head}</a>}: {rest.join(': ')}
              {each.command !== '' && <code>{each.command}</code>}
            </li>
          );
        })}</ul>
      )}
      {overview !== null && overview.total > overview.concerns.length && <p class="quiet">and {overview.total - overview.concerns.length} more</p>}
      <p class="actions"><a href="#/objects">All pods, workloads, claims and Services</a></p>
      {cluster.overviewPods > 0 && <p class="quiet">Only the first {cluster.overviewPods} pods were read.</p>}
    </Section>
  );
}

export function ClusterView({ cluster }: { cluster: Cluster }) {
  const version = useCluster(cluster);
  const now = useSeconds();
  const [dim, setDim] = useState<State | null>(null);
  const problem = problemOf(cluster.nodes.session, 'nodes', cluster.nodes.items.size === 0);
  const { rows, zones, counts, troubles, list } = useMemo(() => {
    const all = [...cluster.nodes.items.values()].map((node) => ({ node, zone: node.zone, state: cluster.states.get(node.name) ?? ('unknown' as State), ready: readyStatus(node) === 'True' }));
    const counted = countZones(all);
    return {
      rows: all, zones: counted, counts: STATES.map((state) => [state, counted.reduce((sum, zone) => sum + zone.states[state], 0)] as const),
      troubles: all.filter((each) => each.state !== 'ready' && each.state !== 'cordoned').sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || (a.node.name < b.node.name ? -1 : 1)),
      list: cluster.happening(120),
    };
  }, [cluster, version]);
  return (
    <>
    <Overview cluster={cluster} />
    <div class="columns">
      <Section title="Nodes" sub={rows.length === 0 ? undefined : `${rows.length} in ${zones.length} ${zones.length === 1 ? 'zone' : 'zones'}`}>
        {problem}
        {problem === null && rows.length === 0 && <Note kind="empty">No node has joined this cluster yet. They appear here as soon as they register.</Note>}
        {rows.length > 0 && <>
          <ul class="legend" aria-label="Nodes by state">
            {counts.filter(([state, count]) => count > 0 || state === 'ready').map(([state, count]) => (
              <li key={state}><button type="button" aria-pressed={dim === state} onClick={() => setDim(dim === state ? null : state)}>
                <i class={`swatch ${state}`} aria-hidden="true">{STATE_MARKS[state]}</i>{STATE_WORDS[state]} <b>{count}</b></button></li>
            ))}
          </ul>
          <Tiles cluster={cluster} dim={dim} />
          {cluster.leases.session.phase === 'denied' && <Note kind="denied">Heartbeats are not shown: you may not list leases in kube-node-lease.</Note>}
          {rows.length <= FEW && <Few cluster={cluster} names={rows.map((each) => each.node.name).sort(ORDER.compare)} />}
          <h3>Nodes with a problem</h3>
          {troubles.length === 0 ? <p class="quiet">None: every node is ready.</p> : (
            <ul class="troubles">{troubles.slice(0, TROUBLES_SHOWN).map(({ node, state }) => (
              <li key={node.name}><i class={`swatch ${state}`} aria-hidden="true">{STATE_MARKS[state]}</i><a href={nodeLink(node.name)}>{node.name}</a> <span>{sentenceOf(node, state, cluster.silence(node.name)).replace(`node ${node.name} `, '')}</span></li>
            ))}</ul>
          )}
          {troubles.length > TROUBLES_SHOWN && <p class="quiet">and {troubles.length - TROUBLES_SHOWN} more</p>}
        </>}
      </Section>
      <Section title="What is happening" sub="Newest first: what changed while you look, and the cluster's events">
        {problemOf(cluster.events.session, 'events', cluster.events.items.size === 0)}
        {cluster.events.session.phase === 'live' && list.length === 0 && <Note kind="empty">Nothing has happened lately.</Note>}
        <div role="log" aria-label="What is happening" tabIndex={0} class="scroll"><Folded list={list} now={now} /></div>
      </Section>
    </div>
    </>
  );
}
