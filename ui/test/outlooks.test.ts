// Goal: the page says of Services, claims, workloads and pods in trouble what `spillway explain` prints, word for word. Method: the rows of
// tests/cli/outlooks.jsonl with one object; the C++ text is held to them as well.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { headlineOf, othersOf, outlookTables, type Outlook } from '../src/rules/outlook.ts';
import { explainContainers } from '../src/rules/pods.ts';
import { explainService } from '../src/rules/services.ts';
import { explainClaim, explainRollout, explainWorkload } from '../src/rules/workloads.ts';

const cells = (text: string): string[][] => text.split('\n').filter((line) => line.trim() !== '').map((line) => line.trim().split(/ {2,}/));

function printed(outlook: Outlook): string[][] {
  const lines = [headlineOf(outlook)];
  const others = othersOf(outlook);
  if (others.length > 0) lines.push('Also', ...others);
  for (const table of outlookTables(outlook)) lines.push(table.title, table.headings.map((each) => each.toUpperCase()).join('   '), ...table.rows.map((row) => row.join('   ')), table.remark ?? '');
  return cells(lines.join('\n'));
}

const own = (row: any): any[] | null => row.pods ?? null;
const MAKERS: Record<string, (row: any) => Outlook | null> = {
  Pod: (row) => explainContainers(row.object, row.pods),
  Service: (row) => explainService({ service: row.object, pods: own(row), slices: row.slices ?? null, nodes: null, notCarried: row.notCarried }),
  PersistentVolumeClaim: (row) => explainClaim(row.object, row.classes ?? null, own(row), row.warning),
  ...Object.fromEntries(['ReplicaSet', 'StatefulSet', 'DaemonSet'].map((kind) => [kind, (row: any) => explainWorkload({ kind, object: row.object, pods: own(row), claims: row.claims ?? [], classes: row.classes ?? null,
    refusal: row.refused === undefined ? null : { message: row.refused.message, lastTimestamp: row.refused.at } })])),
};

test('objects read as `spillway explain` prints them', () => {
  const rows = readFileSync(`${process.env.SPILLWAY_ROOT}/tests/cli/outlooks.jsonl`, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter((row) => MAKERS[row.object?.kind] !== undefined);
  assert.ok(rows.length >= 34);
  for (const row of rows) {
    const outlook = MAKERS[row.object.kind]!(row);
    assert.ok(outlook !== null, row.name);
    assert.deepEqual(printed(outlook), cells(row.text), row.name);
  }
});

test('a Deployment that waits for its pods', () => {
  const meta = (name: string, uid: string, owner?: string) => ({ name, namespace: 'shop', uid, annotations: { 'deployment.kubernetes.io/revision': uid.endsWith('2') || uid === 'd' ? '2' : '1' }, generation: 2,
    ...(owner === undefined ? {} : { ownerReferences: [{ controller: true, uid: owner }] }) });
  const deployment = { metadata: meta('web', 'd'), spec: { replicas: 4, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } } },
    status: { observedGeneration: 2, replicas: 5, updatedReplicas: 2, availableReplicas: 3 } };
  const sets = [{ metadata: meta('web-a', 's1', 'd'), spec: { replicas: 3 }, status: { availableReplicas: 3 } }, { metadata: meta('web-b', 's2', 'd'), spec: { replicas: 2 }, status: {} }];
  const pods = [{ metadata: meta('web-b-x', 'p', 's2'), spec: { nodeName: 'n1' }, status: { phase: 'Pending', containerStatuses: [{ state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } } }] } }];
  assert.deepEqual(printed(explainRollout(deployment, sets, pods)), cells(`deployment shop/web is not rolled out yet: there may be 5 pods at a time (4 wanted, 1 more by maxSurge), and 5 are asked for: no new one before an old one goes
    Also
    3 pods must be available (4 wanted, 1 fewer by maxUnavailable), 3 are: no old one goes before a new one is available
    2 of 4 pods are of its template, 3 available in all; kubectl rollout undo leads back to revision 1
    Pods
    POD   STATE   NODE   WHY
    web-b-x   not ready   n1   ErrImagePull: no such image`));
  const done = { ...deployment, status: { observedGeneration: 2, replicas: 4, updatedReplicas: 4, availableReplicas: 4 } };
  assert.equal(headlineOf(explainRollout(done, sets, pods)), 'deployment shop/web is rolled out: all 4 pods are of its template and available');
});

test('slices that do not fit their Service', () => {
  const pod = (name: string, more = {}) => ({ metadata: { name, namespace: 's', uid: name, labels: { app: 'a' } }, spec: { nodeName: 'n1', containers: [{}] },
    status: { phase: 'Running', podIP: `10.0.0.${name.length}`, conditions: [{ type: 'Ready', status: 'True' }], ...more } });
  const service = { metadata: { name: 'a', namespace: 's', uid: 'u' }, spec: { selector: { app: 'a' }, clusterIP: '10.96.0.1', ports: [{ port: 80 }] } };
  const slice = (pods: any[]) => ({ metadata: { name: 'a-1', labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' }, ownerReferences: [{ controller: true, uid: 'u' }] }, addressType: 'IPv4', ports: [{ port: 80 }],
    endpoints: pods.map((each) => ({ addresses: [each.status.podIP], nodeName: 'n1', conditions: { ready: true, serving: true, terminating: false }, targetRef: { namespace: 's', name: each.metadata.name, uid: each.metadata.uid } })) });
  const behind = (pods: any[], slices: any[], nodes: string[] | null = null) => explainService({ service, pods, slices, nodes: nodes === null ? null : new Set(nodes) }).remarks.find((each) => each.code === 'service-behind')?.facts.writes ?? 0;
  assert.equal(behind([pod('a')], [slice([pod('a')])]), 0);
  assert.equal(behind([pod('a')], [slice([pod('a')])], ['n1']), 0);
  assert.equal(behind([pod('a')], [slice([pod('a')])], ['n2']), 1); // its node is gone: the endpoint has to go
  assert.equal(behind([pod('a'), pod('bb')], [slice([pod('a')])]), 1);
  assert.equal(behind([pod('a', { conditions: [] })], [slice([pod('a')])]), 1);
  assert.equal(behind([pod('a', { podIP: '127.0.0.1' })], [{ ...slice([]), ports: [] }]), 0); // an address that leads nowhere is no endpoint: the placeholder stays
  assert.equal(behind([], [{ ...slice([]), ports: [] }]), 0);
  assert.equal(behind(Array.from({ length: 250 }, (_, i) => ({ ...pod('x'), metadata: { ...pod('x').metadata, name: `x${i}` } })), []), 3);
});

test('objects without a status or a spec break nothing', () => {
  const bare = { metadata: { name: 'x', namespace: 's' } };
  for (const outlook of [explainService({ service: bare, pods: [bare], slices: [], nodes: null }), explainClaim(bare, [], [bare]), explainWorkload({ kind: 'ReplicaSet', object: bare, pods: [bare], claims: [], classes: null, refusal: null }), explainRollout(bare, [bare], [bare])]) {
    assert.ok(headlineOf(outlook).length > 0);
    outlookTables(outlook);
  }
  assert.equal(explainContainers(bare), null);
});
