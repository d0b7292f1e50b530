// The page: one cluster, its views, and what stands above them.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Cluster } from './live/cluster.ts';
import type { Collection } from './live/collection.ts';
import type { Subject } from './rules/outlook.ts';
import { ClusterView } from './views/cluster.tsx';
import { DecisionsView } from './views/decisions.tsx';
import { NodeView } from './views/node.tsx';
import { ObjectView } from './views/object.tsx';
import { ObjectsView } from './views/objects.tsx';
import { Note, useCluster, useSeconds } from './views/parts.tsx';
import { WhatIfView } from './views/whatif.tsx';
import { WhyView } from './views/why.tsx';
import { ZonesView } from './views/zones.tsx';
import 'uplot/dist/uPlot.min.css';
import './app.css';

const VIEWS: [string, string][] = [['cluster', 'Cluster'], ['objects', 'Objects'], ['decisions', 'Decisions'], ['zones', 'Zones'], ['why', 'Why'], ['what-if', 'What if']];

/** The address that was opened last. `hash` is its text: a view that writes its filters into the address is not built again. */
interface Place { hash: string; view: string; name: string; subject: Subject; query: URLSearchParams }

function decoded(text: string): string {
  try { return decodeURIComponent(text); } catch { return text; } // shown as it is
}

function parseHash(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view = '', name = '', ns = '', last = ''] = path.split('/').map(decoded);
  return { hash: location.hash, view: view === '' ? 'cluster' : view, name: view === 'object' ? last : name, subject: { kind: name, ns, name: last }, query: new URLSearchParams(query) };
}

function Connection({ cluster }: { cluster: Cluster }) {
  useSeconds();
  const all: Collection<any>[] = [cluster.nodes, cluster.events, cluster.leases, cluster.failed];
  const lost = all.find((each) => each.session.phase === 'disconnected');
  const live = cluster.nodes.session.phase === 'live' && lost === undefined;
  return (
    <>
      <p class={`connection ${live ? 'live' : lost ? 'lost' : ''}`} role="status"><i aria-hidden="true" />{lost ? 'Disconnected' : live ? 'Live' : cluster.nodes.session.phase === 'denied' ? 'Denied' : 'Connecting…'}</p>
      {lost !== undefined && <div class="lost-banner" role="alert"><Note kind="lost"><b>The connection is lost:</b> {lost.session.message}. The page shows the last known state, and tries again. <button type="button" onClick={() => cluster.retry()}>Try now</button></Note></div>}
    </>
  );
}

function Page({ cluster }: { cluster: Cluster }) {
  useCluster(cluster);
  const [place, setPlace] = useState(parseHash());
  useEffect(() => {
    const look = () => { setPlace(parseHash()); window.scrollTo(0, 0); document.getElementById('main')?.focus({ preventScroll: true }); };
    window.addEventListener('hashchange', look);
    return () => window.removeEventListener('hashchange', look);
  }, []);
  useEffect(() => { document.title = `${place.view === 'node' || place.view === 'object' ? place.name : VIEWS.find(([id]) => id === place.view)?.[1] ?? 'Spillway'} · Spillway`; }, [place]);
  const view = place.view === 'node' ? <NodeView key={place.name} cluster={cluster} name={place.name} />
    : place.view === 'object' ? <ObjectView key={place.hash} cluster={cluster} subject={place.subject} />
    : place.view === 'objects' ? <ObjectsView key={place.hash} cluster={cluster} query={place.query} />
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
        <nav aria-label="Views">{VIEWS.map(([id, label]) => <a key={id} href={`#/${id}`} aria-current={place.view === id || (id === 'cluster' && place.view === 'node') || (id === 'objects' && place.view === 'object') ? 'page' : undefined}>{label}</a>)}</nav>
        <p class="server">{cluster.door.server}</p>
        <Connection cluster={cluster} />
      </header>
      <main id="main" tabIndex={-1}>{view}</main>
      <footer>{cluster.door.version === '' ? '' : `Spillway ${cluster.door.version}. `}{cluster.ours === true ? 'Agents of Spillway answer here.' : cluster.ours === false ? 'No agent of Spillway answers here: the page shows what the API of every cluster offers.' : ''}</footer>
    </>
  );
}

const cluster = new Cluster();
const root = document.getElementById('root')!;
root.textContent = '';
render(<Page cluster={cluster} />, root);
cluster.start();
