// Goal: what the page works out by itself is what upstream and the commands say: quantities, requests, ranking, health,
// zones, holds, watches, layout. Method: rows, and the vectors that the C++ rules are held against.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import test from 'node:test';
import { parseAsked } from '../src/rules/asked.ts';
import { fileName, fileOf } from '../src/rules/export.ts';
import { countZones, LATE_SECONDS, sentenceOf, stateOf, zoneState } from '../src/rules/health.ts';
import { holdData, plan, readHold } from '../src/rules/hold.ts';
import { leanEvent, leanNode, leanPod, memoryRequest, parseQuantity, zoneOf } from '../src/rules/objects.ts';
import { rankForMemory } from '../src/rules/ranking.ts';
import { matches, podSentence, rowsOf } from '../src/rules/rows.ts';
import { podUsage, pressureOf, signalsOfSummary, spanOf } from '../src/rules/signals.ts';
import { layOut, tileAt } from '../src/rules/tiles.ts';
import { fresh, Lines, onEnd, onListed, onVersion } from '../src/live/watching.ts';

const root = process.env.SPILLWAY_ROOT!;
const rows = (file: string): any[] => gunzipSync(readFileSync(`${root}/tests/vectors/${file}.jsonl.gz`)).toString().split('\n').filter(Boolean).map((line) => JSON.parse(line));
const stock = JSON.parse(readFileSync(`${root}/tests/e2e/samples/stock.json`, 'utf8'));

test('pods are ranked for memory as the kubelet does', () => {
  let compared = 0;
  for (const row of rows('eviction/rank_memory')) {
    const usage = podUsage({ pods: (row.in.podStats ?? []).map((each: any) => ({ podRef: each.podRef, memory: each.memory, containers: each.containers })) });
    const pods = row.in.pods.map((each: any) => ({ ...leanPod(each), uid: each.metadata.uid }));
    const ranked = rankForMemory(pods.map((each: any) => ({ ...each, usage: usage.get(each.uid) ?? null, request: each.requests ?? 0 })));
    let from = 0;
    for (const tied of row.out.order as string[][]) { // ties of one group may be in any order
      const got = ranked.slice(from, from + tied.length).map((each) => each.uid);
      assert.deepEqual([...got].sort(), [...tied].sort(), row.id);
      from += tied.length;
      compared += 1;
    }
    assert.equal(from, ranked.length, row.id);
  }
  assert.ok(compared > 100);
});

test('a chart of one measurement is a minute wide', () => {
  assert.deepEqual(spanOf([1000]), [940, 1000]);
  assert.deepEqual(spanOf([1000, 1030]), [970, 1030]);
  assert.deepEqual(spanOf([1000, 1200]), [1000, 1200]);
  assert.deepEqual(spanOf([]), [-60, 0]);
});

test('quantities', () => {
  for (const [text, want] of [['1', 1], ['128Mi', 134217728], ['1.5Gi', 1610612736], ['100m', 0.1], ['1e3', 1000], ['2E', 2e18], ['0.5', 0.5], ['-1Ki', -1024]] as const) assert.equal(parseQuantity(text), want, text);
  for (const text of ['', 'x', '1 Mi', '1mi', undefined, null]) assert.equal(parseQuantity(text), null);
});

test('what a pod asks of memory', () => {
  const c = (memory?: string, more = {}) => ({ resources: memory === undefined ? {} : { requests: { memory } }, ...more });
  assert.equal(memoryRequest({ containers: [c()] }), null);
  assert.equal(memoryRequest({ containers: [c('1Mi'), c('2Mi')] }), 3 * 2 ** 20);
  assert.equal(memoryRequest({ initContainers: [c('8Mi')], containers: [c('1Mi')] }), 8 * 2 ** 20);
  assert.equal(memoryRequest({ initContainers: [c('2Mi', { restartPolicy: 'Always' }), c('8Mi')], containers: [c('1Mi')] }), 8 * 2 ** 20); // sidecars are not added
  assert.equal(memoryRequest({ containers: [c('1Mi')], overhead: { memory: '3Mi' } }), 4 * 2 ** 20);
  assert.equal(memoryRequest({ containers: [c()], overhead: { memory: '3Mi' } }), null);
});

test('zones are named as `spillway zones` names them', () => {
  assert.equal(zoneOf(undefined), '');
  assert.equal(zoneOf({ 'topology.kubernetes.io/zone': 'a' }), '::a');
  assert.equal(zoneOf({ 'topology.kubernetes.io/region': 'eu', 'failure-domain.beta.kubernetes.io/zone': 'b' }), 'eu::b');
});

test('the state of a node', () => {
  const states = stock.nodes.map((each: any) => stateOf(leanNode(each), 1, false));
  assert.deepEqual(states, ['ready', 'cordoned', 'pressure', 'notready', 'tainted', 'ready']);
  const [ready, , , notReady] = stock.nodes.map(leanNode);
  assert.equal(stateOf(ready, LATE_SECONDS, false), 'ready');
  assert.equal(stateOf(ready, LATE_SECONDS + 0.1, false), 'late');
  assert.equal(stateOf(ready, null, true), 'ready'); // a brake holds nothing back from a node that is well
  assert.equal(stateOf(notReady, null, true), 'held');
  assert.equal(stateOf({ ...ready, conditions: [] }, null, false), 'unknown');
  for (const each of stock.nodes) assert.match(sentenceOf(leanNode(each), stateOf(leanNode(each), 1, false), 1), /^node worker-\d is /);
});

test('the state of a zone, by the default settings of a controller', () => {
  for (const [nodes, ready, want] of [[3, 3, 'Normal'], [3, 0, 'FullDisruption'], [1, 0, 'FullDisruption'], [5, 3, 'Normal'], [5, 2, 'PartialDisruption'], [20, 9, 'PartialDisruption'], [20, 10, 'Normal'], [0, 0, 'Normal']] as const) assert.equal(zoneState({ nodes, ready }), want, `${ready}/${nodes}`);
  const counted = countZones([{ zone: 'b', state: 'ready', ready: true }, { zone: 'a', state: 'late', ready: true }, { zone: 'a', state: 'unknown', ready: false }]);
  assert.deepEqual(counted.map((each) => [each.zone, each.nodes, each.ready, each.states.late]), [['a', 2, 1, 1], ['b', 1, 1, 0]]);
});

test('holds are written as the controllers read them', () => {
  assert.deepEqual(plan(null, { kind: 'resume', zone: null, why: '' }), null);
  const first = plan(null, { kind: 'hold', zone: 'r::a', why: 'moving racks' })!;
  assert.equal(first.method, 'POST');
  assert.deepEqual(first.body.data, { zones: 'r::a moving racks\n' });
  const found = { ...first.body, metadata: { ...first.body.metadata, uid: 'u', resourceVersion: '7' } };
  const second = plan(found, { kind: 'hold', zone: '', why: '' })!;
  assert.equal(second.method, 'PUT');
  assert.equal(second.body.metadata.resourceVersion, '7'); // so that a change meanwhile is a conflict
  assert.deepEqual(second.body.data, { zones: '- \nr::a moving racks\n' });
  assert.deepEqual([...readHold(second.body).zones], [['', ''], ['r::a', 'moving racks']]);
  const last = plan(found, { kind: 'resume', zone: 'r::a', why: '' })!;
  assert.equal(last.method, 'DELETE');
  assert.deepEqual(last.body.preconditions, { uid: 'u', resourceVersion: '7' });
  assert.equal(readHold({ data: {} }).everything, ''); // a ConfigMap with neither holds everything
  assert.deepEqual(holdData({ everything: 'x', zones: new Map() }), { why: 'x' });
  assert.equal(plan({ ...found, data: { why: 'x', zones: 'r::a y\n' } }, { kind: 'resume', zone: null, why: '' })!.method, 'DELETE');
});

test('what a watch leads to', () => {
  const live = onListed(fresh(), '5');
  assert.deepEqual([live.phase, onVersion(live, '').version, onVersion(live, '9').version], ['live', '5', '9']);
  assert.equal(onEnd(live, { kind: 'ended' }, 0).relist, false);
  assert.equal(onEnd(live, { kind: 'expired' }, 0).relist, true);
  const gone = onEnd(live, { kind: 'failed', status: 0, message: 'no answer' }, 1);
  assert.deepEqual([gone.session.phase, gone.relist, gone.session.version, gone.waitMs], ['disconnected', false, '5', 500]);
  let next = gone;
  for (let i = 0; i < 30; i += 1) next = onEnd(next.session, { kind: 'failed', status: 0, message: '' }, 1);
  assert.equal(next.waitMs, 8000); // bounded
  const denied = onEnd(live, { kind: 'failed', status: 403, message: 'forbidden' }, 1);
  assert.deepEqual([denied.session.phase, denied.relist], ['denied', true]);
  assert.equal(onEnd(live, { kind: 'failed', status: 500, message: '' }, 1).relist, true);
  const lines = new Lines();
  assert.deepEqual([lines.take('{"a"'), lines.take(':1}\n{"b":2}\n{'), lines.take('}\n')], [[], ['{"a":1}', '{"b":2}'], ['{}']]);
});

test('tiles: each node has its own, inside the room, and is found under the pointer', () => {
  const named = (zone: string, count: number): [string, string[]] => [zone, Array.from({ length: count }, (_, i) => `${zone}-${i}`)];
  for (const groups of [[named('a', 1)], [named('a', 6), named('b', 7)], [named('a', 1700), named('b', 1650), named('c', 1650)], Array.from({ length: 60 }, (_, i) => named(`z${i}`, 3))]) {
    for (const width of [320, 700, 2300]) {
      const layout = layOut(groups, width, 560);
      const seen = new Set<string>();
      for (const zone of layout.zones) {
        assert.ok(zone.x >= 0 && zone.x + zone.width <= width + 0.01);
        for (const tile of zone.tiles) {
          seen.add(`${tile.x}/${tile.y}`);
          assert.ok(tile.x + layout.size <= width + 0.01 && tile.y + layout.size <= layout.height + 0.01);
          assert.equal(tileAt(layout, tile.x + layout.size / 2, tile.y + layout.size / 2), tile.name);
        }
      }
      assert.equal(seen.size, groups.reduce((sum, [, names]) => sum + names.length, 0));
      assert.equal(tileAt(layout, width + 50, 5), null);
    }
  }
  assert.ok(layOut([named('a', 1700), named('b', 1650), named('c', 1650)], 1280, 560).height <= 560);
});

test('what a stock cluster tells of decisions', () => {
  const list = rowsOf([], stock.pods.filter((each: any) => each.status.phase === 'Failed').map(leanPod), stock.events.map(leanEvent));
  assert.deepEqual(list.map((each) => [each.what, each.name]), [['deleted', 'gone-1'], ['evicted', 'hog-77c8-qq2zt'], ['pressure', 'worker-3'], ['refused', 'big-0'], ['not ready', 'worker-5']]);
  const hog = list[1]!;
  assert.match(hog.sentence, /^pod shop\/hog-77c8-qq2zt was evicted by worker-3: The node was low on resource: memory\./);
  const none = { text: '', node: '', owner: '', what: '' };
  assert.deepEqual(list.filter((each) => matches(each, { ...none, owner: 'replicaset/hog' })), [hog]);
  assert.deepEqual(list.filter((each) => matches(each, { ...none, what: 'refused' })).length, 1);
  assert.deepEqual(list.filter((each) => matches(each, { ...none, node: 'worker-3', text: 'HOG' })), [hog]);
  assert.equal(podSentence(leanPod(stock.pods[4])), 'pod shop/big-0 waits for a node: 0/6 nodes are available: 3 Insufficient memory, 1 node(s) were unschedulable');
  assert.equal(podSentence(leanPod(stock.pods[0])), 'pod shop/cart-6f7d-abcde runs on worker-1; nothing has been decided against it');
});

test('events that are no decision against a pod', () => {
  const event = (reason: string, kind: string, message: string) => leanEvent({ metadata: { name: reason, namespace: 'shop' }, involvedObject: { kind, namespace: 'shop', name: 'x' }, reason, message, lastTimestamp: '2026-11-21T00:02:10Z' });
  assert.deepEqual(rowsOf([], [], [event('NodeNotReady', 'Pod', 'Node is not ready')]), []);
  assert.equal(rowsOf([], [], [event('TaintManagerEviction', 'Pod', 'Cancelling deletion of Pod shop/x')])[0]!.what, 'spared');
  assert.deepEqual(rowsOf([], [], [event('Scheduled', 'Pod', 'Successfully assigned')]), []);
});

test('a custom kind is not the kind of that name', () => {
  const about = { apiVersion: 'example.com/v1', kind: 'Pod', namespace: 'shop', name: 'x' };
  const event = leanEvent({ metadata: { name: 'e', namespace: 'shop' }, involvedObject: about, reason: 'Evicted', message: '', lastTimestamp: '2026-11-21T00:02:10Z' });
  assert.equal(event.kind, 'Pod.example.com');
  assert.equal(leanEvent({ involvedObject: { apiVersion: 'example.com/v1', kind: 'Node', name: 'n1' } }).node, '');
  assert.equal(leanEvent({ involvedObject: { kind: 'Node', name: 'n1' } }).node, 'n1');
  assert.equal(leanEvent({ involvedObject: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'i' } }).kind, 'Ingress');
  const owner = { apiVersion: 'example.com/v1', kind: 'ReplicaSet', name: 'web', controller: true };
  assert.equal(leanPod({ metadata: { ownerReferences: [owner] } }).owner, 'ReplicaSet.example.com/web');
});

test('signals of a stock kubelet', () => {
  const summary = stock.pages['/api/v1/nodes/worker-1/proxy/stats/summary'];
  const found = signalsOfSummary(summary, { 'memory.available': '100Mi', 'nodefs.available': '90%' });
  assert.deepEqual(found.map((each) => [each.name, each.threshold === null ? null : Math.round(each.threshold), each.state]), [
    ['memory.available', 104857600, 'threshold-not-met'], ['nodefs.available', Math.round(0.9 * 270553174016), 'threshold-met'], ['nodefs.inodesFree', null, 'no-threshold'],
    ['imagefs.available', null, 'no-threshold'], ['pid.available', null, 'no-threshold']]);
  assert.deepEqual(signalsOfSummary({}, null), []);
  assert.equal(pressureOf(summary), null); // absent is not zero
  assert.equal(pressureOf({ node: { memory: { psi: { some: { avg10: 1.5 } } } } })!.memorySome, 1.5);
});

test('names that are asked about', () => {
  assert.deepEqual(parseAsked(' pod/shop/cart-7 '), { kind: 'Pod', ns: 'shop', name: 'cart-7' });
  assert.deepEqual(parseAsked('shop/cart-7'), { kind: 'Pod', ns: 'shop', name: 'cart-7' });
  assert.deepEqual(parseAsked('node/n1'), { kind: 'Node', ns: '', name: 'n1' });
  assert.deepEqual(parseAsked('n1.example'), { kind: '', ns: '', name: 'n1.example' });
  assert.deepEqual(parseAsked('svc/shop/web'), { kind: 'Service', ns: 'shop', name: 'web' });
  assert.deepEqual(parseAsked('pvc data'), { kind: 'PersistentVolumeClaim', ns: '', name: 'data' });
  for (const text of ['', '/', 'a/b/c/d', '<img>', 'node/a/b', '..']) assert.equal(parseAsked(text), null, text);
});

test('an exported file is text and nothing else', () => {
  const [row] = rowsOf([], [leanPod({ ...stock.pods[3], metadata: { ...stock.pods[3].metadata, name: 'x' }, status: { ...stock.pods[3].status, message: '<script>alert(1)</script>"&\'' } })], []);
  const text = fileOf(row!, 'from <here>');
  assert.ok(!/<script|<img| on\w+=/i.test(text));
  assert.ok(text.includes('&#60;script&#62;') && text.includes("default-src 'none'"));
  assert.match(fileName({ ...row!, name: '../../etc' }), /^[A-Za-z0-9_-]+\.html$/);
});
