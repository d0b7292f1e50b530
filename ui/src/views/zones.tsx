// The state of the zones, and the brake by hand.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Cluster, ZoneRow } from '../live/cluster.ts';
import { ApiError, find, may, send } from '../live/api.ts';
import { secondsText, sentenceOf } from '../rules/decisions.ts';
import { countZones, readyStatus, zoneState } from '../rules/health.ts';
import { plan, readHold, type Act, type Hold } from '../rules/hold.ts';
import { zoneText } from '../rules/objects.ts';
import { zoneLabel } from '../rules/whatif.ts';
import { nodeLink, Note, problemOf, Section, useCluster, useSeconds } from './parts.tsx';

const HOLDS = '/api/v1/namespaces/kube-system/configmaps';
const HOLD = `${HOLDS}/spillway-hold`;
const ATTEMPTS = 5;
const STATE_WORDS: Record<string, string> = { Normal: 'normal', PartialDisruption: 'partly disrupted', FullDisruption: 'fully disrupted', Initial: 'not judged yet' };

/** A conflict means that another client has just changed it: tries once more, with the present object. */
async function carryOut(act: Act): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await find(HOLD);
    const write = plan(found, act);
    if (write === null) return;
    try {
      await send(write.method, write.method === 'POST' ? HOLDS : HOLD, write.body);
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409 || attempt === ATTEMPTS) throw error;
    }
  }
}

function Confirm({ act, close }: { act: Act; close: (done: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [why, setWhy] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => { dialog.current!.showModal(); }, []);
  const what = act.zone === null ? 'everything' : act.zone === '' ? 'the nodes without zone label' : `zone ${act.zone}`;
  const holds = act.kind === 'hold';
  return (
    <dialog ref={dialog} aria-labelledby="confirm" onClose={() => close(false)}>
      <form method="dialog" onSubmit={(event) => {
        event.preventDefault();
        setBusy(true);
        carryOut({ ...act, why: why.trim() }).then(() => close(true), (error: Error) => { setBusy(false); setProblem(error.message); });
      }}>
        <h2 id="confirm">{holds ? 'Hold' : 'Resume'} {what}?</h2>
        <p>{holds ? `From then on no node of ${act.zone === null ? 'the cluster' : 'it'} is marked, tainted or emptied by the lifecycle controllers, however silent it is. Nodes still evict when they run short themselves.`
          : 'Nodes that are silent are marked, tainted and emptied again, at the rate of their zone.'}</p>
        {holds && <label>Why <input value={why} maxLength={200} onInput={(event) => setWhy(event.currentTarget.value)} placeholder="moving racks" /></label>}
        {problem !== '' && <Note kind="denied">{problem}</Note>}
        <p class="actions"><button type="submit" class="primary" disabled={busy}>{holds ? 'Hold' : 'Resume'} {what}</button><button type="button" disabled={busy} onClick={() => close(false)}>Cancel</button></p>
      </form>
    </dialog>
  );
}

/** A zone in which nothing is to be done. */
const isQuiet = (zone: ZoneRow & { guessed: boolean }): boolean => !zone.guessed && zone.state === 'Normal' && zone.waitingNodes === 0 && zone.brake === undefined;

export function ZonesView({ cluster }: { cluster: Cluster }) {
  useCluster(cluster);
  useSeconds();
  const [allowed, setAllowed] = useState<boolean | null>(null);
  const [hold, setHold] = useState<Hold | null>(null);
  const [act, setAct] = useState<Act | null>(null);
  const [said, setSaid] = useState('');
  const readHolds = () => find(HOLD).then((map) => setHold(map === null ? { everything: null, zones: new Map() } : readHold(map)), () => setHold(null));
  useEffect(() => {
    void Promise.all([may('create', 'configmaps', 'kube-system', ''), may('update', 'configmaps', 'kube-system', 'spillway-hold'), may('delete', 'configmaps', 'kube-system', 'spillway-hold')])
      .then((answers) => setAllowed(answers.every((each) => each)));
    void readHolds();
    const timer = setInterval(() => void readHolds(), 3000);
    return () => clearInterval(timer);
  }, []);
  const page = cluster.zones;
  const problem = problemOf(cluster.nodes.session, 'nodes', cluster.nodes.items.size === 0);
  const counted = countZones([...cluster.nodes.items.values()].map((node) => ({ zone: node.zone, state: cluster.states.get(node.name) ?? 'unknown', ready: readyStatus(node) === 'True' })));
  const rows: (ZoneRow & { guessed: boolean })[] = page !== null ? page.items.map((each) => ({ ...each, guessed: false }))
    : counted.map((each) => ({ zone: each.zone, state: zoneState(each), nodes: each.nodes, readyNodes: each.ready, nodesPerSecond: 0, waitingNodes: 0, guessed: true }));
  const since = page === null ? 0 : (performance.now() - page.readMs) / 1000;
  const canHold = page !== null && allowed === true;
  const ask = (next: Act) => { setSaid(''); setAct(next); };
  const everything = hold?.everything ?? null;
  return (
    <Section title="Zones" sub={page !== null ? 'As the lifecycle controllers see them' : 'Counted from the nodes, by the rules of a controller with default settings'}>
      {problem}
      {page === null && problem === null && (cluster.zonesProblem?.denied
        ? <Note kind="denied">You may not read /debug/spillway/zones, or no controller of Spillway answers through this server: rates, queues and brakes are not shown.</Note>
        : <Note kind="empty">No lifecycle controller of Spillway answers through this server: rates, queues and brakes are not shown, and nothing can be held from here.</Note>)}
      {page?.brake !== undefined && <Note kind="lost"><b>Nothing is marked, tainted or deleted:</b> {sentenceOf(page.brake)}</Note>}
      {page?.masterDisruption && <Note kind="lost"><b>Every zone is fully disrupted:</b> nothing is evicted, because the fault may be on this side.</Note>}
      {page !== null && page.newNodes > 0 && <p class="quiet">{page.newNodes === 1 ? 'One node is' : `${page.newNodes} nodes are`} new: the controllers have not synced {page.newNodes === 1 ? 'it' : 'them'} yet.</p>}
      {page !== null && allowed === false && <Note kind="denied">You may look, not hold: that takes create, update and delete on the ConfigMap kube-system/spillway-hold.</Note>}
      {canHold && <p class="actions">{everything === null ? <button type="button" onClick={() => ask({ kind: 'hold', zone: null, why: '' })}>Hold everything…</button>
        : <button type="button" onClick={() => ask({ kind: 'resume', zone: null, why: '' })}>Resume everything…</button>}<span role="status">{said}</span></p>}
      {problem === null && rows.length === 0 && <Note kind="empty">No zones: there are no nodes.</Note>}
      <ul class="zones">
        {rows.map((zone) => {
          const held = hold?.zones.has(zone.zone) ?? false;
          const token = zone.nextTokenInSeconds === undefined ? null : Math.max(0, zone.nextTokenInSeconds - since);
          const next = zone.nextActInSeconds === undefined ? null : Math.max(0, zone.nextActInSeconds - since);
          return (
            <li key={zone.zone} class={zone.state}>
              <h3>{zone.zone === '' ? 'Nodes without zone label' : zone.zone}</h3>
              <p class="ratio"><b>{zone.readyNodes}</b> of {zone.nodes} nodes ready</p>
              <div class="bar" role="img" aria-label={`${zone.readyNodes} of ${zone.nodes} ready`}><i style={{ width: `${zone.nodes === 0 ? 0 : (100 * zone.readyNodes) / zone.nodes}%` }} /></div>
              <dl>
                <dt>State</dt><dd class={`state ${zone.state === 'Normal' ? '' : 'bad'}`}>{STATE_WORDS[zone.state] ?? zone.state}</dd>
                {isQuiet(zone) && <><dt>Next</dt><dd>nothing: no node waits to be tainted, and no brake holds</dd></>}
                {!zone.guessed && !isQuiet(zone) && <><dt>Rate</dt><dd>{zone.nodesPerSecond <= 0 ? 'stopped' : `one node every ${secondsText(1 / zone.nodesPerSecond)}`}</dd>
                  <dt>Bucket</dt><dd>{token === null ? 'closed' : token < 0.5 ? 'a token is there' : `the next token in ${secondsText(Math.round(token))}`}</dd>
                  <dt>Queue</dt><dd>{zone.waitingNodes === 0 ? 'empty' : `${zone.waitingNodes} waiting`}</dd>
                  <dt>Next</dt><dd>{zone.nextNode === undefined ? 'none' : <><a href={nodeLink(zone.nextNode)}>{zone.nextNode}</a>{next === null ? ', not now' : next < 0.5 ? ' now' : ` in ${secondsText(Math.round(next))}`}</>}</dd>
                  <dt>Brake</dt><dd>{zone.brake === undefined ? 'none' : sentenceOf(zone.brake)}</dd></>}
              </dl>
              {cluster.door.whatIf && zoneLabel(zone.zone) !== '' && <p><a href={`#/what-if?zone=${encodeURIComponent(zone.zone)}`}>What if {zone.zone} fell silent?</a></p>}
              {canHold && <p class="actions">{held ? <button type="button" onClick={() => ask({ kind: 'resume', zone: zone.zone, why: '' })}>Resume {zone.zone === '' ? 'these nodes' : zone.zone}…</button>
                : <button type="button" onClick={() => ask({ kind: 'hold', zone: zone.zone, why: '' })}>Hold {zone.zone === '' ? 'these nodes' : zone.zone}…</button>}</p>}
            </li>
          );
        })}
      </ul>
      {act !== null && <Confirm act={act} close={(done) => { setAct(null); if (done) { setSaid(`${act.zone === null ? 'Everything' : `Zone ${zoneText(act.zone)}`} is ${act.kind === 'hold' ? 'held' : 'resumed'}.`); void readHolds(); } }} />}
    </Section>
  );
}
