// Decisions with their authors and reasons; one opens to the table that `spillway explain` prints.
import { useMemo, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { fileName, fileOf } from '../rules/export.ts';
import { matches, rowsOf, WHATS, type Filter, type Row } from '../rules/rows.ts';
import { ago, Explained, nodeLink, Note, problemOf, Section, useCluster, useSeconds } from './parts.tsx';

const SHOWN = 200;

export function allRows(cluster: Cluster): Row[] {
  return rowsOf(cluster.decisions.values(), cluster.failed.items.values(), cluster.events.items.values());
}

function save(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/html' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The details below the sentence of a row. */
export function Opened({ row, cluster }: { row: Row; cluster: Cluster }) {
  const [copied, setCopied] = useState('');
  const link = `${location.href.split('#')[0]}#/decisions?id=${encodeURIComponent(row.id)}`;
  return (
    <div class="opened">
      {row.decision === null ? <p class="quiet">{cluster.ours ? 'No agent keeps the reasons of this one.' : 'This is all a stock cluster tells. Where an agent of Spillway looks after the node, the numbers that were compared stand here.'}</p>
        : <Explained decision={row.decision} sentence={false} />}
      <p class="actions">
        <button type="button" onClick={() => { navigator.clipboard?.writeText(link).then(() => setCopied('The link is on the clipboard.'), () => setCopied(link)) ?? setCopied(link); }}>Copy a link to this</button>
        <button type="button" onClick={() => save(fileName(row), fileOf(row, `Exported from the Spillway dashboard${cluster.door.server === '' ? '' : ` of ${cluster.door.server}`}`))}>Save as one HTML file</button>
        <span role="status">{copied}</span>
      </p>
      {cluster.door.through === 'dashboard' && <p class="quiet">The link works while this <code>spillway dashboard</code> runs, and holds its secret: for others save the file.</p>}
    </div>
  );
}

export function DecisionsView({ cluster, query }: { cluster: Cluster; query: URLSearchParams }) {
  const version = useCluster(cluster);
  const now = useSeconds();
  const [filter, setFilter] = useState<Filter>({ text: query.get('text') ?? '', node: query.get('node') ?? '', owner: query.get('owner') ?? '', what: query.get('what') ?? '' });
  const [open, setOpen] = useState<string | null>(query.get('id'));
  const rows = useMemo(() => allRows(cluster), [cluster, version]);
  const asked = query.get('id');
  const found = rows.filter((each) => matches(each, filter));
  const shown = found.slice(0, SHOWN);
  const linked = asked === null ? undefined : rows.find((each) => each.id === asked);
  if (linked !== undefined && !shown.includes(linked)) shown.unshift(linked);
  const set = (part: Partial<Filter>) => {
    const next = { ...filter, ...part };
    setFilter(next);
    const text = new URLSearchParams(Object.entries(next).filter(([, value]) => value !== '')).toString();
    history.replaceState(null, '', `#/decisions${text === '' ? '' : `?${text}`}`);
  };
  const problem = problemOf(cluster.failed.session, 'pods', rows.length === 0) ?? problemOf(cluster.events.session, 'events', rows.length === 0);
  return (
    <Section title="Decisions" sub={cluster.ours ? 'Evictions, refusals, taints, deletions and holds, by agents of Spillway and from the cluster\'s own records' : 'From the cluster\'s own records: pods that were turned away or evicted, and events'}>
      <form class="filters" role="search" aria-label="Filter decisions" onSubmit={(event) => event.preventDefault()}>
        <label>Pod or reason <input type="search" value={filter.text} onInput={(event) => set({ text: event.currentTarget.value })} /></label>
        <label>Node <input type="search" value={filter.node} onInput={(event) => set({ node: event.currentTarget.value })} /></label>
        <label>Owner <input type="search" value={filter.owner} placeholder="ReplicaSet/web" onInput={(event) => set({ owner: event.currentTarget.value })} /></label>
        <label>What <select value={filter.what} onChange={(event) => set({ what: event.currentTarget.value })}><option value="">everything</option>{WHATS.map((each) => <option key={each}>{each}</option>)}</select></label>
      </form>
      {problem}
      {asked !== null && linked === undefined && rows.length > 0 && <Note kind="empty">The decision of that link is not known here any more.</Note>}
      {problem === null && rows.length === 0 && <Note kind="empty">Nothing has been decided against any pod or node that is still on record.</Note>}
      {rows.length > 0 && found.length === 0 && <Note kind="empty">No decision fits these filters. <button type="button" onClick={() => set({ text: '', node: '', owner: '', what: '' })}>Show all {rows.length}</button></Note>}
      <ul class="decisions">
        {shown.map((row) => (
          <li key={row.id}>
            <button type="button" class="line" aria-expanded={open === row.id} onClick={() => setOpen(open === row.id ? null : row.id)}>
              <span class={`what ${row.what}`}>{row.what}</span><span class="sentence">{row.sentence}</span><time dateTime={row.at} title={row.at}>{row.atMs === 0 ? '' : ago(row.atMs, now)}</time>
            </button>
            {open === row.id && <Opened row={row} cluster={cluster} />}
            {open === row.id && row.node !== '' && <p><a href={nodeLink(row.node)}>Node {row.node}</a></p>}
          </li>
        ))}
      </ul>
      {found.length > SHOWN && <p class="quiet">and {found.length - SHOWN} older ones: narrow the filters to see them</p>}
    </Section>
  );
}
