// Decisions of Spillway's agents and controllers, as JSON (src/policy/decision_json.cc), and what a person reads of them:
// the same words as `spillway explain` prints (src/cli/text), held together by tests/vectors/explain. Pure.

export interface Fact { name: string; value: number | string; whole?: boolean }
export interface Reason { code: string; facts: Fact[] }
export interface Subject { kind: string; namespace?: string; name: string; uid?: string }
export interface Candidate { subject: Subject; reason: Reason; decidedBy: string }
export interface Decision {
  at: string; atMicros: number; by: string; area: string; verdict: string; action: string; subject: Subject; message: string;
  reasons: Reason[]; candidates: Candidate[]; candidatesTotal: number; cost: Fact[];
}
export interface Pod { ns: string; name: string }

const fact = (facts: Fact[], name: string): Fact | undefined => facts.find((each) => each.name === name);
export const measured = (facts: Fact[], what: string): Fact | undefined =>
  fact(facts, `${what}_bytes`) ?? fact(facts, `${what}_inodes`) ?? fact(facts, `${what}_processes`);

/** As printf's %.1f: the exact binary value, a tie to even. */
function oneDecimal(number: number): string {
  const size = Math.abs(number);
  const below = Math.floor(size * 10);
  const isTie = Number.isInteger(size * 4) && !Number.isInteger(size * 2); // …,25 and …,75, which toFixed rounds up
  const short = (number < 0 ? '-' : '') + (isTie ? ((below % 2 === 0 ? below : below + 1) / 10).toFixed(1) : size.toFixed(1));
  return short.endsWith('.0') ? short.slice(0, -2) : short;
}

/** As printf's %.0f. */
function noDecimal(number: number): string {
  const floor = Math.floor(number);
  const up = number - floor > 0.5 || (number - floor === 0.5 && floor % 2 !== 0);
  return String(up ? floor + 1 : floor);
}

export function bytesText(bytes: number): string {
  const suffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
  let power = 0;
  while (Math.abs(bytes) >= 1024 && power + 1 < suffixes.length) { bytes /= 1024; power += 1; }
  return oneDecimal(bytes) + suffixes[power];
}

export function secondsText(seconds: number): string {
  if (seconds === 0) return '0s';
  if (Math.abs(seconds) < 0.9995) return `${noDecimal(seconds * 1000)}ms`;
  if (Math.abs(seconds) < 120) return `${oneDecimal(seconds)}s`;
  if (Math.abs(seconds) < 7200) return `${noDecimal(seconds / 60)}m`;
  return `${noDecimal(seconds / 3600)}h`;
}

export function valueText({ name, value }: Fact): string {
  if (typeof value === 'string') return value;
  if (name.endsWith('_bytes')) return bytesText(value);
  if (name.endsWith('_seconds')) return secondsText(value);
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) < 10 ? String(Number(value.toPrecision(3))) : oneDecimal(value);
}

export const headingOf = (name: string): string => name.replace(/_(bytes|seconds|inodes|processes)$/, '').replace(/_/g, ' ').toUpperCase();
export const wordsOf = (code: string): string => code.replace(/-/g, ' ');
export const factsText = (facts: Fact[]): string => facts.map((each) => `${headingOf(each.name).toLowerCase()} ${valueText(each)}`).join(', ');

type Facts = (name: string) => string;
type Sentence = (facts: Facts, reason: Reason) => string;

const signals: Record<'available' | 'threshold', (reason: Reason) => string> = {
  available: (reason) => { const found = measured(reason.facts, 'available'); return found ? valueText(found) : ''; },
  threshold: (reason) => { const found = measured(reason.facts, 'threshold'); return found ? valueText(found) : ''; },
};

function estimate(of: Facts, reason: Reason): string {
  const difference = Number(fact(reason.facts, 'difference_bytes')?.value ?? 0);
  const compared = difference === 0 ? 'as much as' : `${bytesText(Math.abs(difference))} ${difference < 0 ? 'less' : 'more'} than`;
  return `by "${of('estimator')}" ${of('estimate_bytes')} are left, ${compared} by "${of('chosen')}", and there is ${of('pressure') === 'yes' ? '' : 'no '}pressure`;
}

const silence = (of: Facts, against: string): string =>
  of('from') === '' ? '' : `its last sign of life (${of('from')}) is ${of('silence_seconds')} old, ${against} its grace of ${of('grace_seconds')}`;

const SENTENCES: Record<string, string | Sentence> = {
  'no-threshold-met': 'no threshold is met',
  'threshold-met': (of, reason) => signals.available(reason) && `${of('signal')} was ${signals.available(reason)}, below its ${of('grace_seconds') === '' ? '' : 'soft '}threshold of ${signals.threshold(reason)}`,
  'grace-not-over': (of, reason) => signals.available(reason) && `${of('signal')} is ${signals.available(reason)}, below its soft threshold of ${signals.threshold(reason)}, but its grace of ${of('grace_seconds')} is not over`,
  'observation-stale': (of, reason) => signals.available(reason) && `${of('signal')} is below its threshold, but was not measured since the last pass`,
  'no-candidate': 'no pod may be evicted',
  'eviction-in-progress': 'an eviction is in progress',
  'local-storage-exceeded': (of) => `it used ${of('used_bytes')} of local storage, more than its limit of ${of('limit_bytes')} (${of('limit')})`,
  'reclaim-sufficed': 'what the node could free by itself was enough',
  'reclaim-superseded': 'memory ran short meanwhile and goes first',
  emergency: 'memory would have run out during its grace period, so it was killed at once',
  shadow: 'nothing was done: this agent only watches (shadow)',
  held: (of) => `acting is held: ${of('why')}`,
  'kubelet-evicted': (of) => `the kubelet evicted it on its own: ${of('kubelet_message')}`,
  'estimate-agrees': estimate,
  'estimate-disagrees': (of, reason) => `${estimate(of, reason)}: they disagree`,
  'in-blind-zone': (of, reason) => `the kernel's OOM killer may come before ${of('signal')} falls to ${signals.threshold(reason)}: about ${of('blind_zone_bytes')} cannot be used`,
  'heartbeat-fresh': (of) => silence(of, 'within'),
  'heartbeat-stale': (of) => silence(of, 'beyond'),
  'never-posted': (of) => {
    const silent = silence(of, 'beyond');
    if (silent) return `${silent}; it has never posted a status`;
    return `the controllers have not looked at it yet${of('look_every_seconds') === '' ? '' : `; they look every ${of('look_every_seconds')}`}`;
  },
  'zone-rate-limited': (of) => of('place') && `it stands ${of('place')} of ${of('waiting_nodes')} in the queue of its zone${of('due_seconds') === '' ? ', which does not move now' : `; its turn comes in ${of('due_seconds')}`}`,
  'zone-halted': (of) => `its zone lets nothing through while it is ${of('state')}`,
  'master-disruption': 'every zone is fully disrupted: nothing is evicted',
  'manual-hold': (of) => `${of('zone') === '' ? 'everything is' : `zone ${of('zone')} is`} held by hand${of('why') === '' ? '' : `: ${of('why')}`}`,
  'zone-state': (of) => `zone ${of('zone') || '-'} is ${of('state')}: ${of('ready_nodes')} of ${of('nodes')} nodes are ready`,
  'next-deletion': (of) => `${of('pods')} of its pods are deleted when their tolerations end; the first, ${of('pod')}, in ${of('due_seconds')}`,
};

const REMARKS = new Set(['threshold-not-met', 'shadow', 'estimate-agrees', 'estimate-disagrees', 'in-blind-zone']);
const TABLE_ROWS = new Set(['observation-missing', 'ranked-first', 'reclaimed']);

export function sentenceOf(reason: Reason): string {
  const known = SENTENCES[reason.code];
  const of: Facts = (name) => { const found = fact(reason.facts, name); return found === undefined ? '' : valueText(found); };
  const sentence = typeof known === 'function' ? known(of, reason) : known;
  if (sentence) return sentence;
  return reason.facts.length === 0 ? wordsOf(reason.code) : `${wordsOf(reason.code)}: ${factsText(reason.facts)}`;
}

const DONE: Record<string, string> = {
  admit: 'admitted', bind: 'bound', delete: 'deleted', evict: 'evicted', preempt: 'preempted', reject: 'rejected',
  taint: 'tainted', reclaim: 'cleaned up', start: 'started',
};
export const actionDone = (action: string): string => DONE[action] ?? `chosen for "${action}"`;

const mayLead = (reason: Reason): boolean => !REMARKS.has(reason.code) && !TABLE_ROWS.has(reason.code);
const has = (decision: Decision, code: string): boolean => decision.reasons.some((each) => each.code === code);
export const isShadow = (decision: Decision): boolean => has(decision, 'shadow');

export function subjectText(subject: Subject): string {
  const name = subject.namespace ? `${subject.namespace}/${subject.name}` : subject.name;
  return `${subject.kind.toLowerCase()} ${name}`;
}

function causeOf(decision: Decision): string {
  const lead = decision.reasons.find(mayLead);
  let cause = lead === undefined ? '' : sentenceOf(lead);
  if (has(decision, 'emergency') && !isShadow(decision) && lead?.code !== 'emergency') cause += `; ${sentenceOf({ code: 'emergency', facts: [] })}`;
  return cause === '' ? decision.message.replace(/[ .\n]+$/, '') : cause;
}

export const timeText = (at: string): string => `${at.slice(0, 10)} ${at.slice(11, 23)}Z`;

export const isAbout = (subject: Subject, pod: Pod): boolean =>
  subject.kind === 'Pod' && (subject.namespace ?? '') === pod.ns && subject.name === pod.name;
export const compares = (decision: Decision, pod: Pod): boolean => decision.candidates.some((each) => isAbout(each.subject, pod));

function headlineForOther(decision: Decision, pod: Pod): string {
  const place = decision.candidates.findIndex((each) => isAbout(each.subject, pod));
  const cause = causeOf(decision);
  let text = `pod ${pod.ns}/${pod.name} was not ${actionDone(decision.action)}`;
  text += decision.verdict === 'acts' ? ` at ${timeText(decision.at)}: ${subjectText(decision.subject)} went instead` : cause === '' ? '' : `: ${cause}`;
  if (place < 0) return text;
  if (decision.candidates[place]!.reason.code === 'critical-pod-spared') return `${text}; it is critical and never is`;
  return `${text}; it is ${place + 1} of ${Math.max(decision.candidatesTotal, decision.candidates.length)} in the order of eviction`;
}

/** The answer in one sentence. `pod`: whom it is asked about; null: whom the decision is about. */
export function headline(decision: Decision, pod: Pod | null = null): string {
  if (pod !== null && !isAbout(decision.subject, pod)) return headlineForOther(decision, pod);
  const cause = causeOf(decision);
  const why = cause === '' ? '' : `: ${cause}`;
  const who = subjectText(decision.subject);
  const by = decision.by === decision.subject.name ? '' : ` by ${decision.by}`;
  const done = actionDone(decision.action);
  const isNode = decision.subject.kind === 'Node';
  if (isShadow(decision) && decision.subject.kind === 'Pod') return `${who} would have been ${done}${by} at ${timeText(decision.at)}${why}`;
  switch (decision.verdict) {
    case 'acts':
      if (decision.area === 'lifecycle' && isNode) return `${who} is ${done}${why}`;
      if (decision.area === 'admission' && decision.action === 'preempt') return `${who} took the place of ${decision.candidatesTotal} other pods on ${decision.by} at ${timeText(decision.at)}${why}`;
      return `${who} was ${done}${by} at ${timeText(decision.at)}${why}`;
    case 'refuses': return `${who} was not ${done}${by} at ${timeText(decision.at)}${why}`;
    case 'waits': return isNode && decision.area !== 'lifecycle' ? `${who}: nothing more is ${done} for now${why}` : `${who} is not ${done} yet${why}`;
    case 'rests': return isNode && decision.area !== 'lifecycle' ? `${who}: nothing is ${done}${why}` : `${who} is not ${done}${why}`;
    default: return who;
  }
}

export interface Table { title: string; headings: string[]; rows: string[][]; marked: number }

const cell = (found: Fact | undefined): string => (found === undefined ? '-' : valueText(found) || '-');

function thresholds(decision: Decision): Table {
  const any = (name: string) => decision.reasons.some((each) => fact(each.facts, name) !== undefined);
  const graces = any('grace_seconds');
  const forecasts = any('forecast_seconds');
  const headings = ['Signal', 'Available', 'Threshold', 'Capacity', ...(graces ? ['Grace'] : []), ...(forecasts ? ['Reached in'] : []), 'State'];
  const rows: string[][] = [];
  let marked = -1;
  for (const { code, facts } of decision.reasons) {
    const signal = fact(facts, 'signal');
    const available = measured(facts, 'available');
    if (signal === undefined || (available === undefined && code !== 'observation-missing')) continue;
    if (code !== 'threshold-not-met' && code !== 'observation-missing' && marked < 0) marked = rows.length;
    rows.push([valueText(signal), cell(available), cell(measured(facts, 'threshold')), cell(measured(facts, 'capacity')),
      ...(graces ? [cell(fact(facts, 'grace_seconds'))] : []), ...(forecasts ? [cell(fact(facts, 'forecast_seconds'))] : []), wordsOf(code)]);
  }
  return { title: 'What was measured', headings, rows, marked };
}

const factNames = (decision: Decision): string[] => [...new Set(decision.candidates.flatMap((each) => each.reason.facts.map((one) => one.name)))];

function candidates(decision: Decision, pod: Pod | null): Table {
  const names = factNames(decision);
  const sentenceCase = (name: string) => { const text = headingOf(name).toLowerCase(); return text.charAt(0).toUpperCase() + text.slice(1); };
  if (decision.area === 'scheduling') {
    return {
      title: 'What each node says now', headings: ['Node', 'Reason', ...names.map(sentenceCase)], marked: -1,
      rows: decision.candidates.map((each) => [each.subject.name, wordsOf(each.reason.code), ...names.map((name) => cell(fact(each.reason.facts, name)))]),
    };
  }
  let marked = -1;
  const rows = decision.candidates.map((each, place) => {
    const same = each.subject.kind === decision.subject.kind && each.subject.name === decision.subject.name && (each.subject.namespace ?? '') === (decision.subject.namespace ?? '');
    const chosen = (decision.verdict === 'acts' || isShadow(decision)) && same;
    const spared = each.reason.code === 'critical-pod-spared';
    if (chosen || (pod !== null && isAbout(each.subject, pod) && marked < 0)) marked = place;
    const note = chosen ? (isShadow(decision) ? `would have been ${actionDone(decision.action)}` : actionDone(decision.action)) : spared ? 'critical: spared' : '';
    return [String(place + 1), each.subject.namespace ? `${each.subject.namespace}/${each.subject.name}` : each.subject.name,
      ...names.map((name) => cell(fact(each.reason.facts, name))), each.decidedBy.replace(/-/g, ' ') || '-', note];
  });
  const shown = decision.candidates.length;
  const title = shown < decision.candidatesTotal ? `Pods compared (the first ${shown} of ${decision.candidatesTotal})` : 'Pods compared';
  return { title, headings: ['#', 'Name', ...names.map(sentenceCase), 'Ranked by', ''], rows, marked };
}

function reclaimed(decision: Decision): Table {
  const rows = decision.reasons.filter((each) => each.code === 'reclaimed')
    .map(({ facts }) => ['what', 'deleted', 'freed_bytes', 'problem'].map((name) => cell(fact(facts, name))));
  return { title: 'What the node freed first', headings: ['What', 'Deleted', 'Freed', 'Problem'], rows, marked: -1 };
}

/** The tables that `spillway explain` prints, those without rows left out. */
export function tablesOf(decision: Decision, pod: Pod | null = null): Table[] {
  return [thresholds(decision), reclaimed(decision), candidates(decision, pod)].filter((each) => each.rows.length > 0);
}

/** Reasons that no table shows and the headline does not tell. */
export function remarksOf(decision: Decision): string[] {
  const lead = decision.reasons.find(mayLead);
  return decision.reasons
    .filter((each) => measured(each.facts, 'available') === undefined && !TABLE_ROWS.has(each.code) && each !== lead && each.code !== 'emergency')
    .map(sentenceOf);
}

/** The decision that answers best about a pod: the last about itself, then how things stand, then the last that compared it. */
export function bestAbout(decisions: Decision[], now: Decision | null, pod: Pod): Decision | null {
  const last = (test: (each: Decision) => boolean) => [...decisions].reverse().find(test) ?? null;
  return last((each) => isAbout(each.subject, pod)) ?? (now !== null && compares(now, pod) ? now : null) ?? last((each) => compares(each, pod));
}

/** null: it is no decision. */
export function readDecision(document: unknown): Decision | null {
  const d = document as Partial<Decision> | null;
  if (typeof d !== 'object' || d === null || typeof d.atMicros !== 'number' || typeof d.verdict !== 'string' || typeof d.subject !== 'object') return null;
  const facts = (list: unknown): Fact[] => (Array.isArray(list) ? list.filter((each) => typeof each?.name === 'string') : []);
  const reason = (each: any): Reason => ({ code: String(each?.code ?? ''), facts: facts(each?.facts) });
  return {
    at: String(d.at ?? ''), atMicros: d.atMicros, by: String(d.by ?? ''), area: String(d.area ?? ''), verdict: d.verdict,
    action: String(d.action ?? ''), subject: d.subject as Subject, message: String(d.message ?? ''),
    reasons: (Array.isArray(d.reasons) ? d.reasons : []).map(reason),
    candidates: (Array.isArray(d.candidates) ? d.candidates : []).map((each: any) => ({ subject: each.subject, reason: reason(each.reason), decidedBy: String(each.decidedBy ?? '') })),
    candidatesTotal: Number(d.candidatesTotal ?? 0), cost: facts(d.cost),
  };
}
