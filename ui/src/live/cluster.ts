// The cluster as the page sees it: nodes, heartbeats, what happens, evicted pods, what Spillway's own parts say.
import { leanEvent, leanNode, leanPod, type Happening, type NodeInfo, type PodInfo } from '../rules/objects.ts';
import { isTainted, pressures, readyStatus, stateOf, type State } from '../rules/health.ts';
import { type Decision, readDecision } from '../rules/decisions.ts';
import { ApiError, type Door, get, find } from './api.ts';
import { Collection } from './collection.ts';
import { KINDS, listPath } from '../rules/kinds.ts';
import { listObjects, type Listed } from '../rules/listed.ts';
import { overviewOf, type Overview } from '../rules/overview.ts';

const EVENTS_KEPT = 2000;
const CHANGES_KEPT = 200;
const BEATS_KEPT = 120;
const PROBED = 3;          // nodes that are asked whether they speak our language, before none else is
const ASKED_MAX = 40;      // nodes whose decisions are fetched for the list of all
const ZONES_EVERY_MS = 2000;
const ZONES_SELDOM_MS = 30_000; // interval where no controller has such a page
const DECISIONS_EVERY_MS = 3000;
const OVERVIEW_EVERY_MS = 5000;
const PAGE = 500;          // pods of one list request
const REFUSED_MS = 60_000; // a list that was refused is not requested again before
const PODS_MAX = 5000;     // pods that the overview reads; of a larger cluster the first by name

const MAKERS = [['ReplicaSet', '/apis/apps/v1/replicasets'], ['StatefulSet', '/apis/apps/v1/statefulsets'], ['DaemonSet', '/apis/apps/v1/daemonsets'], ['Job', '/apis/batch/v1/jobs']] as const;

/** When this page saw the lease change, in ms of its own monotonic clock. */
export interface Beat { renewed: string; seenMs: number; gapsMs: { at: number; gap: number }[] }

export interface ZoneRow {
  zone: string; state: string; nodes: number; readyNodes: number; nodesPerSecond: number; nextTokenInSeconds?: number; waitingNodes: number;
  nextNode?: string; nextActInSeconds?: number; brake?: { code: string; facts: any[] };
}
export interface ZonesPage { at: string; masterDisruption: boolean; newNodes: number; brake?: { code: string; facts: any[] }; items: ZoneRow[]; readMs: number }

export class Cluster {
  readonly beats = new Map<string, Beat>();
  readonly states = new Map<string, State>();
  readonly changes: Happening[] = [];
  readonly decisions = new Map<string, Decision[]>(); // by node
  readonly standing = new Map<string, Decision>();    // by node
  zones: ZonesPage | null = null;
  zonesProblem: ApiError | null = null;
  zonesAsked = false; // a controller has answered by now, or none does
  ours: boolean | null = null; // agents of Spillway answer; null: not known yet
  overview: Overview | null = null;        // null: not read yet
  overviewProblem: ApiError | null = null; // why it could not be read the last time
  objects: Listed[] = [];                  // every object that has a page, as far as it was read
  objectsRead = false;                     // `objects` are known
  objectsWanted = 0;                       // views that show them: workloads are read for these alone
  unread: string[] = [];                   // titles of kinds that the user may not list
  overviewPods = 0;                        // pods read, if there are more than the overview reads; else 0
  door: Door = { version: '', through: '', server: '' };
  version = 0;
  membership = 0; // grows when a node comes, goes or changes its zone
  private listeners = new Set<() => void>();
  private silentNodes = new Set<string>();
  private refusedUntil = new Map<string, number>(); // by path
  private serial = 0;
  private zonesNext = 0;

  readonly nodes = new Collection<NodeInfo>('/api/v1/nodes', '', leanNode, (key, now, before, listed) => this.onNode(key, now, before, listed));
  readonly leases = new Collection<string>('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', '',
    (object) => String(object.spec?.renewTime ?? ''), (key, now) => this.onLease(key.slice(key.indexOf('/') + 1), now));
  readonly events = new Collection<Happening>('/api/v1/events', '', leanEvent, (_key, now, before, listed) => { if (!listed && now !== null && now.count !== before?.count) this.onEvent(now); }, EVENTS_KEPT);
  readonly failed = new Collection<PodInfo>('/api/v1/pods', 'fieldSelector=status.phase%3DFailed', leanPod, () => {}, EVENTS_KEPT);

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    this.version += 1;
    for (const each of [...this.listeners]) each();
  }

  start(): void {
    const all = [this.nodes, this.leases, this.events, this.failed];
    for (const each of all) each.listen(() => this.changed());
    const look = () => {
      if (document.visibilityState === 'hidden') return all.forEach((each) => each.stop());
      all.forEach((each) => each.start());
    };
    document.addEventListener('visibilitychange', look);
    look();
    setInterval(() => this.judge(), 1000); // heartbeats become late by nothing happening
    void get('ui/door.json').then((door: Door) => { this.door = door; this.changed(); }, () => {});
    void this.poll(ZONES_EVERY_MS, () => this.readZones());
    void this.poll(DECISIONS_EVERY_MS, () => this.readDecisions());
    void this.poll(OVERVIEW_EVERY_MS, () => this.readOverview());
  }

  retry(): void { for (const each of [this.nodes, this.leases, this.events, this.failed]) each.retry(); }

  private async poll(everyMs: number, act: () => Promise<void>): Promise<void> {
    for (;;) {
      if (document.visibilityState !== 'hidden') await act();
      await new Promise((done) => setTimeout(done, everyMs));
    }
  }

  silence(name: string): number | null {
    const beat = this.beats.get(name);
    return beat === undefined || this.leases.session.phase !== 'live' ? null : (performance.now() - beat.seenMs) / 1000;
  }

  isHeld(zone: string): boolean {
    if (this.zones === null) return false;
    return this.zones.brake !== undefined || this.zones.items.find((each) => each.zone === zone)?.brake !== undefined;
  }

  private judge(): void {
    let different = this.states.size !== this.nodes.items.size;
    for (const node of this.nodes.items.values()) different = this.judgeOne(node) || different;
    if (different) this.changed();
  }

  private judgeOne(node: NodeInfo): boolean {
    const state = stateOf(node, this.silence(node.name), this.isHeld(node.zone));
    if (this.states.get(node.name) === state) return false;
    this.states.set(node.name, state);
    return true;
  }

  private onNode(key: string, now: NodeInfo | null, before: NodeInfo | null, listed: boolean): void {
    if (now?.zone !== before?.zone) this.membership += 1;
    if (now === null) {
      this.states.delete(key);
      this.beats.delete(key);
      this.decisions.delete(key);
      this.standing.delete(key);
      if (!listed) this.say(key, 'Removed', `node ${key} was removed`, true);
      return;
    }
    this.judgeOne(now);
    if (before === null) {
      if (!listed) this.say(key, 'Joined', `node ${key} joined`, false);
      return;
    }
    const [was, is] = [readyStatus(before), readyStatus(now)];
    if (was !== is) this.say(key, is === 'True' ? 'Ready' : is === 'Unknown' ? 'Unknown' : 'NotReady', `node ${key} is ${is === 'True' ? 'ready' : is === 'Unknown' ? 'silent: its status is Unknown' : 'not ready'}`, is !== 'True');
    const left = pressures(before).filter((each) => !pressures(now).includes(each));
    for (const each of pressures(now)) if (!pressures(before).includes(each)) this.say(key, each, `node ${key} is under ${each}`, true);
    for (const each of left) this.say(key, each, `node ${key} is no longer under ${each}`, false);
    if (isTainted(now) !== isTainted(before)) this.say(key, isTainted(now) ? 'Tainted' : 'Untainted', `node ${key} ${isTainted(now) ? 'was tainted: its pods leave' : 'is no longer tainted'}`, isTainted(now));
    if (now.cordoned !== before.cordoned) this.say(key, now.cordoned ? 'Cordoned' : 'Uncordoned', `node ${key} was ${now.cordoned ? 'cordoned' : 'uncordoned'}`, false);
  }

  private onLease(name: string, renewed: string | null): void {
    if (renewed === null) { this.beats.delete(name); return; }
    const now = performance.now();
    const beat = this.beats.get(name);
    if (beat === undefined) { this.beats.set(name, { renewed, seenMs: now, gapsMs: [] }); return; }
    if (beat.renewed === renewed) return;
    beat.gapsMs.push({ at: now, gap: now - beat.seenMs });
    if (beat.gapsMs.length > BEATS_KEPT) beat.gapsMs.shift();
    beat.renewed = renewed;
    beat.seenMs = now;
  }

  private say(node: string, reason: string, message: string, warning: boolean): void {
    this.serial += 1;
    this.push({ key: `seen/${this.serial}`, at: new Date().toISOString(), atMs: Date.now(), kind: 'Node', ns: '', name: node, reason, message, warning, from: 'this page', node, count: 1 });
  }

  private onEvent(event: Happening): void {
    if (event.kind === 'Node' && ['NodeReady', 'NodeNotReady'].includes(event.reason)) return; // seen on the node itself
    this.push(event);
  }

  private push(happening: Happening): void {
    this.changes.unshift(happening);
    if (this.changes.length > CHANGES_KEPT) this.changes.pop();
  }

  /** Happenings, newest first: those seen while the page is open, then earlier ones from events. */
  happening(limit: number): Happening[] {
    const seen = new Set(this.changes.map((each) => each.key));
    const before = [...this.events.items.values()].filter((each) => !seen.has(each.key));
    return [...this.changes, ...before].sort((a, b) => b.atMs - a.atMs).slice(0, limit);
  }

  private async readZones(): Promise<void> {
    if (this.zonesProblem !== null && !this.zonesProblem.gone && performance.now() < this.zonesNext) return;
    this.zonesNext = performance.now() + ZONES_SELDOM_MS;
    try {
      const page = await get('/debug/spillway/zones');
      this.zones = Array.isArray(page.items) ? { ...page, readMs: performance.now() } : null;
      this.zonesProblem = null;
    } catch (error) {
      this.zonesProblem = error instanceof ApiError ? error : null;
      if (this.zonesProblem !== null && !this.zonesProblem.gone) this.zones = null;
    }
    this.zonesAsked ||= this.zonesProblem === null || !this.zonesProblem.gone;
    this.changed();
  }

  /** The items of a list, PAGE at a time, PODS_MAX at most; null: the user may not read it, or there is no such resource. */
  async listed(path: string): Promise<any[] | null> {
    const items: any[] = [];
    let token = '';
    if (performance.now() < (this.refusedUntil.get(path) ?? 0)) return null;
    do {
      let page: any;
      try {
        page = await get(`${path}${path.includes('?') ? '&' : '?'}limit=${PAGE}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`);
      } catch (error) {
        if (error instanceof ApiError && (error.denied || error.status === 404)) {
          this.refusedUntil.set(path, performance.now() + REFUSED_MS);
          return null;
        }
        throw error;
      }
      items.push(...(page.items ?? []));
      token = String(page.metadata?.continue ?? '');
    } while (token !== '' && items.length < PODS_MAX);
    this.overviewPods = token === '' ? this.overviewPods : items.length;
    return items;
  }

  /** Workloads of the kinds whose pods are refused: they are read where an event names one, and not otherwise. */
  private async makersOf(refusals: any[]): Promise<any[]> {
    const makers: any[] = [];
    for (const [kind, path] of MAKERS) {
      if (!refusals.some((each) => each.involvedObject?.kind === kind)) continue;
      const found = await this.listed(path) ?? [];
      makers.push(...found.map((each) => ({ ...each, kind }))); // items of a list need not say their kind
    }
    return makers;
  }

  /** Counts a view that shows all objects; the result ends that. */
  wantObjects(): () => void {
    this.objectsWanted += 1;
    void this.readOverview();
    return () => { this.objectsWanted -= 1; };
  }

  private async readWorkloads(): Promise<Map<string, any[]>> {
    const read = new Map<string, any[]>();
    if (this.objectsWanted === 0) return read;
    for (const kind of KINDS) {
      if (!kind.path.startsWith('/apis/')) continue;
      const found = await this.listed(listPath(kind));
      if (found !== null) read.set(kind.kind, found);
    }
    return read;
  }

  /** Reads what needs a look, and the state of every object. Of the lists themselves nothing is kept. */
  private async readOverview(): Promise<void> {
    try {
      this.overviewPods = 0;
      const pods = await this.listed('/api/v1/pods');
      const nodes = await this.listed('/api/v1/nodes');
      const claims = await this.listed('/api/v1/persistentvolumeclaims');
      const services = await this.listed('/api/v1/services');
      const classes = await this.listed('/apis/storage.k8s.io/v1/storageclasses');
      const refusals = await this.listed('/api/v1/events?fieldSelector=reason%3DFailedCreate');
      const makers = await this.makersOf(refusals ?? []);
      const byName = (a: any, b: any) => (`${a.metadata?.namespace ?? ''}/${a.metadata?.name}` < `${b.metadata?.namespace ?? ''}/${b.metadata?.name}` ? -1 : 1);
      const sorted = (list: any[] | null) => (list ?? []).sort(byName);
      const brake = this.zones?.brake; // read every two seconds; without controllers of ours there is no hold
      const why = brake?.code === 'manual-hold' ? String(brake.facts.find((each) => each.name === 'why')?.value ?? '') : null;
      const workloads = await this.readWorkloads();
      const scene = { nodes: sorted(nodes), pods: sorted(pods), claims: sorted(claims), services: sorted(services), classes,
        refusals: refusals ?? [], makers, standings: this.standing,
        hold: why === null ? '' : why || 'no reason was given' };
      this.overview = overviewOf(scene, Date.now());
      this.objects = this.objectsWanted === 0 ? [] : listObjects(scene, workloads, Date.now());
      this.objectsRead = this.objectsWanted > 0;
      this.unread = KINDS.filter((kind) => (kind.kind === 'Pod' ? pods === null : kind.kind === 'PersistentVolumeClaim' ? claims === null : kind.kind === 'Service' ? services === null : this.objectsWanted > 0 && !workloads.has(kind.kind))).map((kind) => kind.title);
      this.overviewProblem = pods === null ? new ApiError(403, 'Forbidden', 'you may not list pods') : null;
    } catch (error) {
      this.overviewProblem = error instanceof ApiError ? error : null;
    }
    this.changed();
  }

  /** Reads the decisions of one node, and returns how it stands now; null: no agent of ours answers there. */
  async readNode(name: string): Promise<Decision | null> {
    if (this.silentNodes.has(name)) return null;
    const page = await find(`/api/v1/nodes/${encodeURIComponent(name)}/proxy/debug/spillway/decisions`);
    if (page?.kind !== 'DecisionList') { this.silentNodes.add(name); return null; }
    const list = (page.items ?? []).map(readDecision).filter((each: Decision | null): each is Decision => each !== null);
    this.ours = true;
    this.decisions.set(name, list);
    const now = readDecision(page.now);
    if (now !== null) this.standing.set(name, now);
    return now;
  }

  /** The nodes worth asking: those that something was evicted from first. */
  private candidates(): string[] {
    const names = [...this.failed.items.values()].map((each) => each.node).filter((each) => this.nodes.items.has(each));
    const all = [...new Set([...names, ...this.nodes.items.keys()])].filter((each) => !this.silentNodes.has(each) && readyStatus(this.nodes.items.get(each)!) === 'True');
    return all.slice(0, this.ours === true ? ASKED_MAX : PROBED);
  }

  private async readDecisions(): Promise<void> {
    if (this.nodes.session.phase !== 'live' || this.ours === false) return;
    for (const name of this.candidates()) {
      try {
        await this.readNode(name);
      } catch (error) {
        if (error instanceof ApiError && error.denied) { this.ours = this.ours ?? false; break; }
        if (error instanceof ApiError && error.gone) break;
        this.silentNodes.add(name);
      }
    }
    if (this.ours === null && this.silentNodes.size >= Math.min(PROBED, this.nodes.items.size) && this.nodes.items.size > 0) this.ours = false;
    this.changed();
  }

  async readPods(node: string, signal: AbortSignal): Promise<PodInfo[]> {
    const list = await get(`/api/v1/pods?fieldSelector=spec.nodeName%3D${encodeURIComponent(node)}`, signal);
    return (list.items ?? []).map(leanPod);
  }
}
