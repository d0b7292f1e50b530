// Goal: what is asked of a simulation is what was typed, and what comes back is read as `spillway simulate -o json` writes it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { BINS, growthOf, namesIn, outcomeOf, questionOf, verdictOf, zoneLabel } from '../src/rules/whatif.ts';

test('questions', () => {
  assert.deepEqual(questionOf({ kind: 'zone', zone: 'eu::a', minutes: 10 }), { body: { zone: 'a', minutes: 10 } });
  assert.deepEqual(questionOf({ kind: 'nodes', nodes: ['n1'], minutes: 1 }), { body: { nodes: ['n1'], minutes: 1 } });
  assert.deepEqual(questionOf({ kind: 'threshold', pods: 'default/web-*', to: '2Gi', minutes: 5, thresholds: ['100Mi', '5%'] }),
    { body: { pods: 'default/web-*', to: '2Gi', minutes: 5, memoryAvailable: ['100Mi', '5%'] } });
  const grown = { kind: 'threshold', pods: 'default/*', to: '2Gi', minutes: 5, thresholds: ['100Mi', '200Mi'] } as const;
  for (const wrong of [{ kind: 'zone', zone: '', minutes: 10 }, { kind: 'zone', zone: 'a', minutes: 61 }, { kind: 'zone', zone: 'a', minutes: NaN }, { kind: 'nodes', nodes: [], minutes: 5 },
    { ...grown, pods: 'web' }, { ...grown, to: 'lots' }, { ...grown, thresholds: ['100Mi', ''] }] as any[]) assert.ok('problem' in questionOf(wrong), JSON.stringify(wrong));
  assert.deepEqual(namesIn(' n1, n2\nn1 '), ['n1', 'n2']);
  assert.equal(zoneLabel('::a'), 'a');
  assert.deepEqual([512 * 2 ** 20, 3 * 2 ** 30, 16 * 2 ** 30, Infinity, 0].map(growthOf), ['256Mi', '1Gi', '2Gi', '2Gi', '1Mi']);
});

test('two futures', () => {
  const run = (events: any[], more = {}) => ({ counts: { evicted: events.filter((each) => each.what === 'evicted').length, deletions: events.filter((each) => each.what === 'deletions').length }, lastedSeconds: 600, nodes: 3, pods: 5, events, ...more });
  const event = (what: string, atSeconds: number) => ({ what, atSeconds, object: 'default/a', node: 'n1', reason: 'r' });
  const outcome = outcomeOf({ a: run([event('evicted', 0), event('deletions', 599.9), event('taints', 700)], { recoveredAtSeconds: null }), b: run([event('flips', 5)], { recoveredAtSeconds: 90, heldBy: ['stall'] }) })!;
  assert.equal(outcome.a.lost, 2);
  assert.equal(outcome.a.lostPerBin[0], 1);
  assert.equal(outcome.a.lostPerBin[BINS - 1], 1);
  assert.equal(outcome.a.taintedPerBin[BINS - 1], 1);
  assert.equal(verdictOf(outcome, ['off', 'on']), '2 pods are lost off, 0 on; recovery: not by the end off, after 90 s on');
  assert.deepEqual(outcome.figures.filter((each) => each.differs).map((each) => each.what), ['Pods evicted by their node', 'Pods deleted by controllers', 'All well again', 'Brakes that held']);
  const same = outcomeOf({ a: run([event('evicted', 1)], { unrecovered: ['pod x'] }), b: run([event('evicted', 1)]) })!;
  assert.equal(verdictOf(same, ['off', 'on']), '1 pod is lost either way; the cluster does not recover');
  assert.deepEqual(same.notWell, [['pod x'], []]);
  assert.equal(outcomeOf({}), null);
  assert.equal(outcomeOf([]), null);
});
