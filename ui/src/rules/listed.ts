// Objects of all kinds as rows of one list, each with its state and one sentence, those that do not work first. Pure.
import { kindOf, KINDS } from './kinds.ts';
import { answerOf, subjectOf, subjectText, type Outlook, type State, type Subject } from './outlook.ts';
import { podRemark, type Scene } from './overview.ts';
import { claimInTheWay, explainClaim, explainJob, explainRollout, explainWorkload, lastRefusals } from './workloads.ts';
import { grouped, namespaceOf, ownerOf } from './pods.ts';
import { sentenceFor } from './remarks.ts';
import { explainService } from './services.ts';

type Any = any; // objects of the API as they come

export interface Listed { subject: Subject; state: State; sentence: string }
export interface Wanted { kind: string; ns: string; text: string; state: string }

const STATE_ORDER: State[] = ['bad', 'waits', 'good'];

function podRow(pod: Any, scene: Scene, nowMs: number): Omit<Listed, 'subject'> {
  const remark = podRemark(pod, scene, nowMs);
  if (remark !== null) return { state: 'bad', sentence: sentenceFor(remark.code, remark.facts) };
  const on = pod.spec?.nodeName ? ` on ${pod.spec.nodeName}` : '';
  if (pod.metadata?.deletionTimestamp) return { state: 'waits', sentence: `it is being ended${on}` };
  if (pod.status?.phase === 'Succeeded') return { state: 'good', sentence: `its work is done${on}` };
  if (pod.status?.phase === 'Running') return { state: 'good', sentence: `it runs${on}` };
  return { state: 'waits', sentence: pod.spec?.nodeName ? `it is starting${on}` : claimInTheWay(pod, scene.claims, scene.classes) ? 'it waits for a claim' : 'it waits for a node' };
}

/** `workloads`: by kind, as far as they were read. */
export function listObjects(scene: Scene, workloads: Map<string, Any[]>, nowMs: number): Listed[] {
  const byOwner = grouped(scene.pods, (pod) => String(ownerOf(pod)?.uid ?? ''));
  const byPlace = grouped(scene.pods, namespaceOf);
  const setsOf = grouped(workloads.get('ReplicaSet') ?? [], namespaceOf);
  const claimsOf = grouped(scene.claims, namespaceOf);
  const near = (object: Any): Any[] => claimsOf.get(namespaceOf(object)) ?? [];
  const refusals = lastRefusals(scene.refusals);
  const nodes = new Set(scene.nodes.map((each) => String(each.metadata?.name)));
  const rows: Listed[] = scene.pods.map((pod) => ({ subject: subjectOf('Pod', pod), ...podRow(pod, { ...scene, claims: near(pod) }, nowMs) }));
  const add = (outlook: Outlook): void => {
    const lead = (outlook.lead ?? '').trim().replace(/^is /, '');
    rows.push({ subject: outlook.subject, state: outlook.state, sentence: `${lead === '' ? '' : `${lead}: `}${answerOf(outlook)}` });
  };
  for (const [kind, objects] of workloads) {
    for (const object of objects) {
      const pods = byOwner.get(String(object.metadata?.uid ?? '-')) ?? [];
      const refusal = refusals.get(String(object.metadata?.uid ?? '-')) ?? null;
      if (kind === 'Deployment') add(explainRollout(object, setsOf.get(object.metadata.namespace) ?? [], byPlace.get(object.metadata.namespace) ?? []));
      else if (kind === 'Job') add(explainJob(object, pods, refusal));
      else add(explainWorkload({ kind, object, pods, claims: near(object), classes: scene.classes, refusal }));
    }
  }
  for (const claim of scene.claims) add(explainClaim(claim, scene.classes, []));
  for (const service of scene.services) add(explainService({ service, pods: byPlace.get(service.metadata?.namespace) ?? [], slices: null, nodes: nodes.size === 0 ? null : nodes }));
  const place = (row: Listed): number => KINDS.findIndex((each) => each.kind === row.subject.kind);
  return rows.sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state) || place(a) - place(b) || (subjectText(a.subject) < subjectText(b.subject) ? -1 : 1));
}

/** Each word of a search has to be in the name or the sentence. */
export function isWanted({ subject, state, sentence }: Listed, wanted: Wanted): boolean {
  if (wanted.kind !== '' && subject.kind !== wanted.kind) return false;
  if (wanted.ns !== '' && subject.ns !== wanted.ns) return false;
  if (wanted.state !== '' && state !== wanted.state) return false;
  const text = `${kindOf(subject.kind)?.names.join(' ') ?? ''} ${subject.ns}/${subject.name} ${sentence}`.toLowerCase();
  return wanted.text.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
