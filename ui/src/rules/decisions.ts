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

/** The unit in which a number of bytes is shown, and its size. */
function unitOf(bytes: number): [string, number] {
  const suffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
  let size = 1;
  let power = 0;
  while (Math.abs(bytes) / size >= 1024 && power + 1 < suffixes.length) { size *= 1024; power += 1; }
  return [suffixes[power]!, size];
}

/** valueText() with enough decimals to distinguish the value from `other`: "24.96Mi" beside 25Mi. A smaller value is rounded down, a larger one up. */
export function valueTextApart(one: Fact, other: Fact): string {
  const usual = valueText(one);
  if (typeof one.value === 'string' || typeof other.value === 'string') return usual;
  const isBytes = one.name.endsWith('_bytes');
  if (usual !== valueText(other) || one.value === other.value || (!isBytes && !one.name.endsWith('_seconds'))) return usual;
  const [unit, size] = isBytes ? unitOf(one.value) : ['s', 1] as [string, number];
  let parts = 10;
  for (let decimals = 2; decimals <= 4; decimals += 1) {
    parts *= 10;
    const scaled = one.value / size * parts;
    const cut = (one.value < other.value ? Math.floor(scaled) : Math.ceil(scaled)) / parts;
    if (cut !== other.value / size) return cut.toFixed(decimals) + unit;
  }
  return isBytes ? one.value.toFixed(0) : `${one.value.toFixed(6)}s`;
}

/** valueText() of an amount of `resource`: "100Mi" of memory and storage, "500m" or "2" of milli-CPUs. */
export function amountText(resource: string, amount: Fact): string {
  if (typeof amount.value === 'string') return valueText(amount);
  if (resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-')) return bytesText(amount.value);
  if (resource !== 'cpu') return valueText(amount);
  return amount.value % 1000 === 0 ? String(amount.value / 1000) : `${amount.value}m`;
}

export const headingOf = (name: string): string => name.replace(/_(bytes|seconds|inodes|processes)$/, '').replace(/_/g, ' ').toUpperCase();
export const wordsOf = (code: string): string => code.replace(/-/g, ' ');
/** Conditions keep the names that they have in Kubernetes: "MemoryPressure False". */
const nameOf = (fact: Fact): string => (/^[A-Z]/.test(fact.name) ? fact.name : headingOf(fact.name).toLowerCase());
export const factsText = (facts: Fact[]): string => facts.map((each) => `${nameOf(each)} ${valueText(each)}`).join(', ');

type Facts = (name: string) => string;
type Sentence = (facts: Facts, reason: Reason) => string;

const signals: Record<'available' | 'threshold', (reason: Reason) => string> = {
  available: (reason) => apart(measured(reason.facts, 'available'), measured(reason.facts, 'threshold')),
  threshold: (reason) => { const found = measured(reason.facts, 'threshold'); return found ? valueText(found) : ''; },
};

const apart = (one: Fact | undefined, other: Fact | undefined): string => one === undefined ? '' : other === undefined ? valueText(one) : valueTextApart(one, other);

function estimate(of: Facts, reason: Reason): string {
  const difference = Number(fact(reason.facts, 'difference_bytes')?.value ?? 0);
  const compared = difference === 0 ? 'as much as' : `${bytesText(Math.abs(difference))} ${difference < 0 ? 'less' : 'more'} than`;
  return `measured as "${of('estimator')}": ${of('estimate_bytes')} available, ${compared} as "${of('chosen')}", ${of('pressure') === 'yes' ? '' : 'no '}pressure`;
}

const silence = (of: Facts, reason: Reason, against: string): string =>
  of('from') === '' ? '' : `its last sign of life (${of('from')}) is ${apart(fact(reason.facts, 'silence_seconds'), fact(reason.facts, 'grace_seconds'))} old, ${against} its grace of ${of('grace_seconds')}`;

const SENTENCES: Record<string, string | Sentence> = {
  'no-threshold-met': 'no threshold is met',
  'threshold-met': (of, reason) => signals.available(reason) && `${of('signal')} was ${signals.available(reason)}, below its ${of('grace_seconds') === '' ? '' : 'soft '}threshold of ${signals.threshold(reason)}`,
  'grace-not-over': (of, reason) => signals.available(reason) && `${of('signal')} is ${signals.available(reason)}, below its soft threshold of ${signals.threshold(reason)}, but its grace of ${of('grace_seconds')} is not over`,
  'observation-stale': (of, reason) => signals.available(reason) && `${of('signal')} is below its threshold, but was not measured since the last pass`,
  'no-candidate': 'no pod may be evicted',
  'eviction-in-progress': 'an eviction is in progress',
  'local-storage-exceeded': (of, reason) => `it used ${apart(fact(reason.facts, 'used_bytes'), fact(reason.facts, 'limit_bytes'))} of local storage, more than its limit of ${of('limit_bytes')} (${of('limit')})`,
  'reclaim-sufficed': 'the node reclaimed enough by itself',
  'reclaim-superseded': 'memory ran short meanwhile and is handled first',
  emergency: 'memory would have run out during its grace period, so it was killed at once',
  shadow: 'nothing was done: this agent only watches (shadow)',
  held: (of) => `acting is held: ${of('why')}`,
  'kubelet-evicted': (of) => `the kubelet evicted it on its own: ${of('kubelet_message')}`,
  'estimate-agrees': estimate,
  'estimate-disagrees': (of, reason) => `${estimate(of, reason)}: they disagree`,
  'in-blind-zone': (of, reason) => `the kernel's OOM killer may act before ${of('signal')} falls to ${signals.threshold(reason)}: about ${of('blind_zone_bytes')} cannot be used`,
  'heartbeat-fresh': (of, reason) => silence(of, reason, 'within'),
  'heartbeat-stale': (of, reason) => silence(of, reason, 'beyond'),
  'never-posted': (of, reason) => {
    const silent = silence(of, reason, 'beyond');
    if (silent) return `${silent}; it has never posted a status`;
    return `the controllers have not evaluated it yet${of('look_every_seconds') === '' ? '' : `; they do so every ${of('look_every_seconds')}`}`;
  },
  'zone-rate-limited': (of) => of('place') && `it is ${of('place')} of ${of('waiting_nodes')} in the queue of its zone${of('due_seconds') === '' ? ', which does not move now' : `; its turn is in ${of('due_seconds')}`}`,
  'zone-halted': (of) => `its zone evicts nothing while it is ${of('state')}`,
  'master-disruption': 'every zone is fully disrupted: nothing is evicted',
  'manual-hold': (of) => `${of('zone') === '' ? 'everything is' : `zone ${of('zone')} is`} held by hand${of('why') === '' ? '' : `: ${of('why')}`}`,
  'zone-state': (of) => `zone ${of('zone') || '-'} is ${of('state')}: ${of('ready_nodes')} of ${of('nodes')} nodes are ready`,
  'node-selector-mismatch': (of) => of('volumes'), // a refusal by volumes has the words of the scheduler
  'next-deletion': (of) => `${of('pods')} of its pods will be deleted when their tolerations end; the first, ${of('pod')}, in ${of('due_seconds')}`,
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

export const timeText = (at: string): string => `${at.slice(0, 23)}Z`;

export const isAbout = (subject: Subject, pod: Pod): boolean =>
  subject.kind === 'Pod' && (subject.namespace ?? '') === pod.ns && subject.name === pod.name;
export const compares = (decision: Decision, pod: Pod): boolean => decision.candidates.some((each) => isAbout(each.subject, pod));

/** The signal whose threshold will be met first at the present rate, and the time until then; empty: no signal approaches its threshold. */
function approachOf(decision: Decision): string {
  let first: Reason | undefined;
  for (const reason of decision.reasons) {
    const time = forecastOf(reason.facts);
    if (time === undefined || reason.code !== 'threshold-not-met') continue;
    if (first === undefined || numberOf(time) < numberOf(forecastOf(first.facts))) first = reason;
  }
  return first === undefined ? '' : `${cell(fact(first.facts, 'signal'))} meets its threshold in ${cell(forecastOf(first.facts))} at the present rate`;
}

function headlineForOther(decision: Decision, pod: Pod): string {
  const place = decision.candidates.findIndex((each) => isAbout(each.subject, pod));
  const cause = causeOf(decision);
  const total = Math.max(decision.candidatesTotal, decision.candidates.length);
  const isCalm = decision.verdict === 'rests' && decision.action === 'evict' && has(decision, 'no-threshold-met');
  if (isCalm && place >= 0 && decision.candidates[place]!.reason.code !== 'critical-pod-spared') {
    const approach = approachOf(decision);
    const state = approach === '' ? 'in no danger of eviction' : 'not evicted now';
    return `pod ${pod.ns}/${pod.name} is ${state}: no threshold of node ${decision.by} is met${approach === '' ? '' : `, but ${approach}`}; it is ${place + 1} of ${total} in the order`;
  }
  let text = `pod ${pod.ns}/${pod.name} was not ${actionDone(decision.action)}`;
  text += decision.verdict === 'acts' ? ` at ${timeText(decision.at)}: ${subjectText(decision.subject)} went instead` : cause === '' ? '' : `: ${cause}`;
  if (place < 0) return text;
  if (decision.candidates[place]!.reason.code === 'critical-pod-spared') return `${text}; it is critical and is never evicted`;
  return `${text}; it is ${place + 1} of ${total} in the order of eviction`;
}

/** The answer in one sentence. `pod`: the pod in question; null: the subject of the decision. */
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

/** `remark`: a line below the rows; empty: none. */
export interface Table { title: string; headings: string[]; rows: string[][]; marked: number; remark?: string }

const cell = (found: Fact | undefined): string => (found === undefined ? '-' : valueText(found) || '-');

const FORESEEN_SECONDS = 3600; // beyond this time an extrapolation of the last seconds means nothing
const numberOf = (found: Fact | undefined): number => (typeof found?.value === 'number' ? found.value : 0);

/** The time in which the threshold will be met, if that is foreseen. */
function forecastOf(facts: Fact[]): Fact | undefined {
  const found = fact(facts, 'forecast_seconds');
  return found === undefined || numberOf(found) > FORESEEN_SECONDS ? undefined : found;
}

/** A signal that is worth a row: memory always, others if they were not measured or are near their threshold. */
function isTelling({ code, facts }: Reason): boolean {
  if (code !== 'threshold-not-met') return true;
  const available = measured(facts, 'available');
  const threshold = measured(facts, 'threshold');
  return fact(facts, 'signal')?.value === 'memory.available' || forecastOf(facts) !== undefined || available === undefined || threshold === undefined ||
    numberOf(available) < 2 * numberOf(threshold);
}

const STATES: Record<string, string> = { 'threshold-met': 'met', 'threshold-not-met': 'not met', 'observation-missing': 'not measured' };

function thresholds(decision: Decision): Table {
  const all = decision.reasons.filter(({ code, facts }) => fact(facts, 'signal') !== undefined && (measured(facts, 'available') !== undefined || code === 'observation-missing'));
  const shown = all.filter(isTelling);
  const graces = shown.some((each) => fact(each.facts, 'grace_seconds') !== undefined);
  const forecasts = shown.some((each) => forecastOf(each.facts) !== undefined);
  const headings = ['Signal', 'Available', 'Threshold', 'Capacity', ...(graces ? ['Grace'] : []), ...(forecasts ? ['Met in'] : []), 'State'];
  const rows: string[][] = [];
  let marked = -1;
  for (const { code, facts } of shown) {
    if (code !== 'threshold-not-met' && code !== 'observation-missing' && marked < 0) marked = rows.length;
    rows.push([cell(fact(facts, 'signal')), apart(measured(facts, 'available'), measured(facts, 'threshold')) || '-', cell(measured(facts, 'threshold')), cell(measured(facts, 'capacity')),
      ...(graces ? [cell(fact(facts, 'grace_seconds'))] : []), ...(forecasts ? [cell(forecastOf(facts))] : []), STATES[code] ?? wordsOf(code)]);
  }
  const others = all.length - shown.length;
  const remark = others === 0 ? '' : others === 1 ? '1 other signal is far from its threshold' : `${others} other signals are far from their thresholds`;
  return { title: 'What was measured', headings, rows, marked, remark };
}

const AMOUNTS = new Set(['requested', 'used', 'capacity', 'allocatable', 'available', 'free']);

/** Why the first of the ranking is first. */
function rankReason({ reason, decidedBy }: Candidate): string {
  const above = fact(reason.facts, 'above_request_bytes');
  switch (decidedBy) {
    case 'missing-stats': return 'its usage is unknown';
    case 'exceeds-request': return above === undefined ? 'it uses more than it requested, and the next does not' : `it uses ${valueText(above)} more than it requested, and the next does not use more`;
    case 'priority': return 'its priority is the lowest';
    case 'above-request':
      if (above === undefined) return '';
      return numberOf(above) >= 0 ? `it uses ${valueText(above)} more than it requested, the most of its priority`
        : `it uses ${bytesText(-numberOf(above))} less than it requested, the least difference of its priority`;
    case 'processes': return 'it has the most processes of its priority';
    case 'name': return 'it equals the next one, and is first by name';
    default: return '';
  }
}

const factNames = (decision: Decision): string[] => [...new Set(decision.candidates.flatMap((each) => each.reason.facts.map((one) => one.name)))];

function candidates(decision: Decision, pod: Pod | null): Table {
  const names = factNames(decision);
  const sentenceCase = (name: string) => { const text = headingOf(name).toLowerCase(); return text.charAt(0).toUpperCase() + text.slice(1); };
  if (decision.area === 'scheduling') {
    return {
      title: 'Reasons of each node now', headings: ['Node', 'Reason', ...names.map(sentenceCase)], marked: -1,
      rows: decision.candidates.map((each) => {
        const resource = String(fact(each.reason.facts, 'resource')?.value ?? '');
        const textOf = (name: string) => { const found = fact(each.reason.facts, name); return found !== undefined && AMOUNTS.has(name) ? amountText(resource, found) : cell(found); };
        return [each.subject.name, wordsOf(each.reason.code), ...names.map(textOf)];
      }),
      remark: '',
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
      ...names.map((name) => cell(fact(each.reason.facts, name))), note];
  });
  const shown = decision.candidates.length;
  const title = shown < decision.candidatesTotal ? `Pods compared (the first ${shown} of ${decision.candidatesTotal})` : 'Pods compared';
  const first = decision.candidates.find((each) => each.reason.code === 'ranked-first' && rankReason(each) !== '');
  const remark = first === undefined ? '' : `${first.subject.namespace ? `${first.subject.namespace}/` : ''}${first.subject.name} is first: ${rankReason(first)}`;
  return { title, headings: ['#', 'Name', ...names.map(sentenceCase), ''], rows, marked, remark };
}

function reclaimed(decision: Decision): Table {
  const rows = decision.reasons.filter((each) => each.code === 'reclaimed')
    .map(({ facts }) => ['what', 'deleted', 'freed_bytes', 'problem'].map((name) => cell(fact(facts, name))));
  return { title: 'Reclaimed by the node first', headings: ['What', 'Deleted', 'Freed', 'Problem'], rows, marked: -1, remark: '' };
}

/** The tables that `spillway explain` prints, those without rows left out. */
export function tablesOf(decision: Decision, pod: Pod | null = null): Table[] {
  return [thresholds(decision), reclaimed(decision), candidates(decision, pod)].filter((each) => each.rows.length > 0 || Boolean(each.remark));
}

/** Reasons that neither a table nor the headline shows. */
export function remarksOf(decision: Decision): string[] {
  const lead = decision.reasons.find(mayLead);
  return decision.reasons
    .filter((each) => measured(each.facts, 'available') === undefined && !TABLE_ROWS.has(each.code) && each !== lead && each.code !== 'emergency' &&
      !(each.code === 'estimate-agrees' && fact(each.facts, 'difference_bytes')?.value === 0)) // an estimator that agrees to the byte adds nothing
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
