// Goal: the page says of a decision what `spillway explain` prints, word for word. Method: tests/cli/explained.jsonl, which
// the C++ text is held to as well: every reason with and without facts, every verdict, area and kind of subject.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { factsText, headline, readDecision, remarksOf, tablesOf, type Decision, type Pod } from '../src/rules/decisions.ts';

/** The text of the command as cells: what stands two blanks apart. */
function cells(text: string): string[][] {
  return text.split('\n').filter((line) => line.trim() !== '').map((line) => line.trim().split(/ {2,}/).map((each) => each.replace(/ ?<-$/, '')).filter((each) => each !== ''));
}

function printed(decision: Decision, pod: Pod | null): string[][] {
  const lines: string[] = [headline(decision, pod)];
  for (const table of tablesOf(decision, pod)) {
    lines.push(table.title);
    if (table.rows.length > 0) lines.push(table.headings.map((each) => each.toUpperCase()).join('   '));
    for (const row of table.rows) lines.push(row.map((each) => each || ' ').join('   '));
    if (table.remark) lines.push(table.remark);
  }
  const remarks = remarksOf(decision);
  if (remarks.length > 0) lines.push('Also', ...remarks);
  if (decision.cost.length > 0) lines.push('What it cost', factsText(decision.cost));
  if (decision.message !== '') lines.push('Status', ...decision.message.split('\n'));
  return cells(lines.join('\n'));
}

test('decisions read as `spillway explain` prints them', () => {
  const rows = readFileSync(`${process.env.SPILLWAY_ROOT}/tests/cli/explained.jsonl`, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  assert.ok(rows.length > 300);
  for (const row of rows) {
    const [ns, name] = String(row.pod ?? '').split('/');
    const decision = readDecision(row.decision);
    assert.ok(decision !== null, row.name);
    assert.deepEqual(printed(decision, row.pod === undefined ? null : { ns: ns!, name: name! }), cells(row.text), row.name);
  }
});

test('what is no decision is none', () => {
  for (const document of [null, undefined, 1, 'x', {}, [], { atMicros: 'x' }, { atMicros: 1, verdict: 'acts' }]) assert.equal(readDecision(document), null);
  const odd = readDecision({ atMicros: 1, verdict: 'new', subject: { kind: 'Pod', name: 'x' }, reasons: [null, { code: 'a-new-one' }], candidates: 'x' });
  assert.ok(odd !== null && headline(odd).length > 0); // words of a later version do not break the page
});
