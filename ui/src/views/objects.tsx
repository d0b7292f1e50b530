// Every pod, workload, claim and Service with its state and one sentence, those that do not work first.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { KINDS, kindOf, objectLink } from '../rules/kinds.ts';
import { isWanted, type Wanted } from '../rules/listed.ts';
import { Note, Section, STATE_SIGNS, useCluster } from './parts.tsx';

const SHOWN = 200;
const STATES: [string, string][] = [['bad', 'does not work'], ['waits', 'waits'], ['good', 'works']];

export function ObjectsView({ cluster, query }: { cluster: Cluster; query: URLSearchParams }) {
  const version = useCluster(cluster);
  const [wanted, setWanted] = useState<Wanted>({ kind: kindOf(query.get('kind') ?? '')?.kind ?? '', ns: query.get('ns') ?? '', text: query.get('q') ?? '', state: query.get('state') ?? '' });
  useEffect(() => cluster.wantObjects(), [cluster]);
  const spaces = useMemo(() => [...new Set([...cluster.objects.map((each) => each.subject.ns), ...(wanted.ns === '' ? [] : [wanted.ns])])].sort(), [cluster, version, wanted.ns]);
  const found = useMemo(() => cluster.objects.filter((each) => isWanted(each, wanted)), [cluster, version, wanted]);
  const set = (part: Partial<Wanted>) => {
    const next = { ...wanted, ...part };
    setWanted(next);
    const text = new URLSearchParams(Object.entries({ kind: next.kind, ns: next.ns, q: next.text, state: next.state }).filter(([, value]) => value !== '')).toString();
    history.replaceState(null, '', `#/objects${text === '' ? '' : `?${text}`}`);
  };
  const isRead = cluster.objects.length > 0 || (cluster.overview !== null && cluster.objectsRead);
  const bad = found.filter((each) => each.state === 'bad').length;
  return (
    <Section title="Objects" sub="Pods, workloads, claims and Services: those that do not work first">
      <form class="filters" role="search" aria-label="Filter objects" onSubmit={(event) => event.preventDefault()}>
        <label>Search <input type="search" value={wanted.text} placeholder="a name, or words of a sentence" onInput={(event) => set({ text: event.currentTarget.value })} /></label>
        <label>Kind <select value={wanted.kind} onChange={(event) => set({ kind: event.currentTarget.value })}><option value="">all kinds</option>{KINDS.map((each) => <option key={each.kind} value={each.kind}>{each.title}</option>)}</select></label>
        <label>Namespace <select value={wanted.ns} onChange={(event) => set({ ns: event.currentTarget.value })}><option value="">all namespaces</option>{spaces.map((each) => <option key={each} value={each}>{each}</option>)}</select></label>
        <label>State <select value={wanted.state} onChange={(event) => set({ state: event.currentTarget.value })}><option value="">every state</option>{STATES.map(([state, words]) => <option key={state} value={state}>{words}</option>)}</select></label>
      </form>
      {cluster.overviewProblem !== null && <Note kind={cluster.overviewProblem.gone ? 'lost' : 'denied'}>Not read: {cluster.overviewProblem.message}</Note>}
      {!isRead && cluster.overviewProblem === null && <Note kind="loading">Reading the cluster…</Note>}
      {isRead && cluster.unread.length > 0 && <p class="quiet">Not shown, because you may not list them: {cluster.unread.join(', ')}.</p>}
      {isRead && found.length === 0 && <Note kind="empty">{cluster.objects.length === 0 ? 'There is no such object in this cluster yet.' : 'No object fits these filters.'}{cluster.objects.length > 0 && <> <button type="button" onClick={() => set({ kind: '', ns: '', text: '', state: '' })}>Show all {cluster.objects.length}</button></>}</Note>}
      {found.length > 0 && <p class="quiet" role="status">{found.length === 1 ? '1 object' : `${found.length} objects`}, {bad === 0 ? 'all of them work or wait' : bad === 1 ? '1 does not work' : `${bad} do not work`}</p>}
      <ul class="objects">
        {found.slice(0, SHOWN).map((each) => (
          <li key={`${each.subject.kind}/${each.subject.ns}/${each.subject.name}`}>
            <i class={`swatch ${each.state}`} aria-hidden="true">{STATE_SIGNS[each.state]}</i>
            <span class="kind">{each.subject.kind === 'PersistentVolumeClaim' ? 'Claim' : each.subject.kind}</span>
            <a href={objectLink(each.subject)}>{each.subject.ns}/{each.subject.name}</a>
            <span class="sentence">{each.sentence}</span>
          </li>
        ))}
      </ul>
      {found.length > SHOWN && <p class="quiet">and {found.length - SHOWN} more: narrow the filters to see them</p>}
      {cluster.overviewPods > 0 && <p class="quiet">Only the first {cluster.overviewPods} pods were read.</p>}
    </Section>
  );
}
