// The page: one cluster, six views, and what stands above them.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Cluster } from './live/cluster.ts';
import type { Collection } from './live/collection.ts';
import { ClusterView } from './views/cluster.tsx';
import { DecisionsView } from './views/decisions.tsx';
import { NodeView } from './views/node.tsx';
import { Note, useCluster, useSeconds } from './views/parts.tsx';
import { WhatIfView } from './views/whatif.tsx';
import { WhyView } from './views/why.tsx';
import { ZonesView } from './views/zones.tsx';
import 'uplot/dist/uPlot.min.css';
import './app.css';

const VIEWS: [string, string][] = [['cluster', 'Cluster'], ['decisions', 'Decisions'], ['zones', 'Zones'], ['why', 'Why'], ['what-if', 'What if']];

function parseHash(): { view: string; name: string; query: URLSearchParams } {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view = '', name = ''] = path.split('/');
  let decoded = name;
  try { decoded = decodeURIComponent(name); } catch { /* shown as it is */ }
  return { view: view === '' ? 'cluster' : view, name: decoded, query: new URLSearchParams(query) };
}

function Connection({ cluster }: { cluster: Cluster }) {
  useSeconds();
  const all: Collection<any>[] = [cluster.nodes, cluster.events, cluster.leases, cluster.failed];
  const lost = all.find((each) => each.session.phase === 'disconnected');
  const live = cluster.nodes.session.phase === 'live' && lost === undefined;
  return (
    <>
      <p class={`connection ${live ? 'live' : lost ? 'lost' : ''}`} role="status"><i aria-hidden="true" />{lost ? 'Disconnected' : live ? 'Live' : cluster.nodes.session.phase === 'denied' ? 'Denied' : 'Connecting…'}</p>
      {lost !== undefined && <div class="lost-banner" role="alert"><Note kind="lost"><b>The connection is lost:</b> {lost.session.message}. What is shown is what was last known; trying again. <button type="button" onClick={() => cluster.retry()}>Try now</button></Note></div>}
    </>
  );
}

function Page({ cluster }: { cluster: Cluster }) {
  useCluster(cluster);
  const [place, setPlace] = useState(parseHash());
  useEffect(() => {
    const look = () => { setPlace(parseHash()); window.scrollTo(0, 0); document.getElementById('main')?.focus(); };
    window.addEventListener('hashchange', look);
    return () => window.removeEventListener('hashchange', look);
  }, []);
  useEffect(() => { document.title = `${place.view === 'node' ? place.name : VIEWS.find(([id]) => id === place.view)?.[1] ?? 'Spillway'} · Spillway`; }, [place]);
  const view = place.view === 'node' ? <NodeView key={place.name} cluster={cluster} name={place.name} />
    : place.view === 'decisions' ? <DecisionsView key={place.query.get('id') ?? ''} cluster={cluster} query={place.query} />
      : place.view === 'zones' ? <ZonesView cluster={cluster} />
        : place.view === 'what-if' ? <WhatIfView cluster={cluster} query={place.query} />
        : place.view === 'why' ? <WhyView cluster={cluster} query={place.query} />
          : place.view === 'cluster' ? <ClusterView cluster={cluster} /> : <Note kind="empty">There is no such view. <a href="#/cluster">All nodes</a></Note>;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
      <header>
        <h1>Spillway</h1>
        <nav aria-label="Views">{VIEWS.map(([id, label]) => <a key={id} href={`#/${id}`} aria-current={place.view === id || (id === 'cluster' && place.view === 'node') ? 'page' : undefined}>{label}</a>)}</nav>
        <p class="server">{cluster.door.server}</p>
        <Connection cluster={cluster} />
      </header>
      <main id="main" tabIndex={-1}>{view}</main>
      <footer>{cluster.door.version === '' ? '' : `Spillway ${cluster.door.version}. `}{cluster.ours === true ? 'Agents of Spillway answer here.' : cluster.ours === false ? 'No agent of Spillway answers here: what is shown is what any cluster tells.' : ''}</footer>
    </>
  );
}

const cluster = new Cluster();
const root = document.getElementById('root')!;
root.textContent = '';
render(<Page cluster={cluster} />, root);
cluster.start();
