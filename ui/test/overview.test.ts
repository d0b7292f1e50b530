// Goal: the page says of what needs a look what `spillway explain` prints without arguments. Method: the rows of
// tests/cli/outlooks.jsonl that hold a whole cluster; the C++ text is held to them as well.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { readDecision } from '../src/rules/decisions.ts';
import { overviewOf, type Overview } from '../src/rules/overview.ts';

/** The sentences and commands of the text, without its line breaks. */
const words = (text: string): string => text.split('\n').slice(1).join(' ').replace(/\s+/g, ' ').trim();
const printed = ({ concerns }: Overview): string => concerns.map((each) => `${each.sentence} ${each.command}`).join(' ').replace(/\s+/g, ' ').trim();

test('an overview reads as `spillway explain` prints it', () => {
  const rows = readFileSync(`${process.env.SPILLWAY_ROOT}/tests/cli/outlooks.jsonl`, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter((row) => row.object === undefined);
  assert.ok(rows.length >= 2);
  for (const row of rows) {
    const standings = new Map(Object.entries(row.standings ?? {}).map(([node, decision]) => [node, readDecision(decision)!]));
    const overview = overviewOf({ nodes: row.nodes ?? [], pods: row.pods ?? [], claims: row.claims ?? [], classes: row.classes ?? null, services: row.services ?? [],
      refusals: row.refusals ?? [], makers: [...(row.replicasets ?? []), ...(row.statefulsets ?? []), ...(row.daemonsets ?? []), ...(row.jobs ?? [])], standings, hold: row.hold ?? '' }, Date.parse(row.now));
    assert.equal(printed(overview), words(row.text), row.name);
    assert.equal(overview.total, overview.concerns.length, row.name);
  }
});

test('a Service looks at the pods of its namespace, an unplaced pod at the claims of its own', () => {
  let looks = 0;
  const watched = (metadata: object, more: object): object => ({ get metadata() { looks += 1; return metadata; }, ...more });
  const many = [...Array(300).keys()];
  const pods = many.map((i) => watched({ name: 'p', namespace: `n${i}`, labels: { a: 'b' } }, { spec: { volumes: [{ persistentVolumeClaim: { claimName: 'c' } }] } }));
  const claims = many.map((i) => watched({ name: 'c', namespace: `n${i}` }, { status: { phase: 'Pending' } }));
  const services = many.map((i) => watched({ name: 's', namespace: `n${i}` }, { spec: { selector: { a: 'b' } } }));
  const overview = overviewOf({ nodes: [], pods, claims, services, classes: null, refusals: [], makers: [], standings: new Map(), hold: '' }, 0);
  assert.equal(overview.total, 900);
  assert.ok(looks < 900 * 40, `${looks} looks at 900 objects`);
});

test('objects without a status break nothing', () => {
  const overview = overviewOf({ nodes: [{ metadata: { name: 'n' } }], pods: [{ metadata: { name: 'p', namespace: 'd' } }], claims: [{ metadata: { name: 'c', namespace: 'd' } }],
    services: [{ metadata: { name: 's', namespace: 'd' } }], classes: null, refusals: [{ metadata: {} }], makers: [{ kind: 'ReplicaSet', metadata: { name: 'r' } }], standings: new Map(), hold: '' }, 0);
  assert.equal(overview.concerns.length, 4);
});
