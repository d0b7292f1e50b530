// Sentences for what is true of an object, by the code of each fact: the words of src/cli/text/outlook_sentence.cc, held together by
// tests/cli/outlooks.jsonl. Pure.
import { bytesText, secondsText } from './decisions.ts';

export type Facts = Record<string, string | number>;
export interface Remark { code: string; facts: Facts }

const SENTENCES: Record<string, string> = {
  'being-deleted': 'it is being deleted',
  'not-read': 'its {what} could not be read, so this answer is incomplete',
  'pod-no-image': 'container {container} waits for its image {image} ({reason})[: {message}]',
  'pod-no-start': 'container {container} cannot be started ({reason})[: {message}]',
  'pod-out-of-memory': 'the kernel killed container {container}: out of memory[, its limit is {limit_bytes}][; last at {ended_at}][, {restarts:restart|restarts} so far]',
  'pod-crashes': 'container {container} crashes repeatedly: exit code {exit_code}[ ({reason})][: {message}][, last at {ended_at}][, {restarts:restart|restarts} so far]; it restarts after a growing back-off',
  'pod-container-failed': 'container {container} ended with exit code {exit_code}[ ({reason})][: {message}][, at {ended_at}]',
  'pod-port-taken': 'port {port} of node {node} belongs to pod {pod}: use another port, or give pods addresses of their own (see spillway doctor)',
  'pod-evicted': 'node {node} evicted it[: {message}]',
  'pod-failed': 'it failed: {why}',
  'pod-unschedulable': 'no node takes it[: {message}]',
  'pod-claim': 'it waits for its claim {claim}',
  'pod-unready': 'it is not ready: {why}',
  'job-complete': 'it is complete: {succeeded:pod has|pods have} succeeded[, {took_seconds} after its start]',
  'job-failed': 'it has failed ({reason})[: {message}]',
  'job-managed-elsewhere': '{manager} manages it (spec.managedBy), not the job controller',
  'job-suspended': 'it is suspended (spec.suspend): it has no pods until it is resumed',
  'job-pods-pending': 'none of its pods runs, {pods:waits|wait}; {pod}: {why}',
  'job-runs': '{running:pod runs|pods run}',
  'job-rests': 'it has no pod that runs, and none is due',
  'job-progress': '{succeeded}[ of {completions}] succeeded[, {running} running][, {pending} pending], {failed} failed[ (backoffLimit {backoff_limit})]',
  'job-pods-refused': 'its pods are refused[, last at {last_at}]: {message}',
  'workload-ready': '{wanted:pod is|pods are} wanted and ready',
  'workload-zero': 'it has 0 replicas: no pod is made until it is scaled up',
  'workload-no-node': 'no node fits its node selector and tolerations: it has no pod',
  'workload-wants': '{wanted:pod is|pods are} wanted',
  'workload-waits': '{ready} of {wanted:pod is|pods are} ready[; {pod} waits for its claim {claim}][; {pod}: {why}][; {missing:pod|pods} not made yet]',
  'workload-one-by-one': 'the next pod is made when {pod} is ready (podManagementPolicy OrderedReady)',
  'rolled-out': 'all {pods_wanted} pods are of its template and available',
  'rollout-paused': 'it is paused (spec.paused); kubectl rollout resume lets it go on',
  'rollout-unobserved': 'the deployment controller has not seen its latest version; does it run?',
  'rollout-moves': '{pods_updated} of {pods_wanted} pods are of its template, {pods_available} available in all[; kubectl rollout undo leads back to revision {undo_revision}]',
  'surge-reached': 'there may be {pods_max} pods at a time ({pods_wanted} wanted, {surge_max} more by maxSurge), and {pods} are asked for: no new one before an old one goes',
  'unavailable-reached': '{available_min} pods must be available ({pods_wanted} wanted, {unavailable_max} fewer by maxUnavailable), {pods_available} are: no old one goes before a new one is available',
  'old-pods-leave': 'its strategy is Recreate, and {pods} pods of earlier templates have not ended',
  'deadline-exceeded': 'nothing has moved for longer than progressDeadlineSeconds, {deadline_seconds}',
  'pods-refused': 'pods of {replica_set} are refused: {message}',
  'claim-bound': 'it is bound to volume {volume}',
  'claim-binding': '[claim {claim}: ]it names volume {volume}, and the volume is not bound to it yet',
  'claim-lost': 'its volume {volume} does not exist any more, and its data is lost',
  'claim-waits': '[claim {claim}: ]no volume of StorageClass {class} is bound to it yet',
  'claim-first-consumer': '[claim {claim}: ]it waits for a pod with a node (StorageClass {class} has volumeBindingMode WaitForFirstConsumer)',
  'claim-no-class': '[claim {claim}: ]no volume fits, and no StorageClass can make one: it names none, and no class is the default (docs/volumes.md)',
  'claim-class-unknown': '[claim {claim}: ]its StorageClass {class} does not exist, and no volume of that class fits',
  'claim-no-provisioner': '[claim {claim}: ]no volume of StorageClass {class} fits, and that class makes none: create a PersistentVolume',
  'claim-provisioning': '[claim {claim}: ]{provisioner} has to make its volume[ on node {node}] (StorageClass {class}); does it run?',
  'claim-warning': 'the last warning about it: {message}',
  'claim-size': 'it requests {wanted_bytes}[ and has {capacity_bytes}]',
  'claim-unused': 'no pod uses it',
  'service-external-name': 'it is another name for {external_name}, served by DNS: it has no pods and no address',
  'service-no-selector': 'it has no selector: its endpoints are written by hand or by another controller[, {endpoints} now]',
  'service-no-match': 'no pod answers: no pod of its namespace has the labels {selector}',
  'service-none-ready': 'no pod answers: none of its pods ({pods}) is ready[; {pod}: {why}]',
  'service-draining': '{pods:pod answers|pods answer}, all of them being deleted: no other pod is ready',
  'service-ready': 'connections go to {ready} of its {pods:pod|pods}',
  'service-not-carried': '{ready} of its {pods:pod answers|pods answer}, but no Service proxy of Spillway leads {address} to them ({why}): use kubectl port-forward svc/{name} 8080:{port}',
  'service-headless': 'it is headless: DNS gives the addresses of the pods themselves',
  'service-not-ready-published': 'pods that are not ready count as if they were (publishNotReadyAddresses)',
  'service-left-out': '{pods:pod differs|pods differ} in the label {key} alone; it wants {wanted}',
  'service-port-missing': 'no pod answers at port {port} on {pods} of {ready:ready pod|ready pods}: they have no port named {target}',
  'service-behind': 'its endpoint slices are not up to date ({writes:write|writes} due); does their controller run?',
  'service-slices': '{slices:endpoint slice|endpoint slices}, {endpoints:endpoint|endpoints}, {ready} ready',
  'service-no-ports': 'it has no ports: it is for DNS alone',
  'node-no-status': 'it has never reported a status: does its agent run?',
  'node-silent': 'its agent does not report[: {message}]',
  'node-not-ready': 'it is not ready[: {message}]',
  'node-under-pressure': 'it reports {conditions}[ ({signal} {available_bytes} < {threshold_bytes})][ ({signal} {available_inodes} < {threshold_inodes})][ ({signal} {available_pids} < {threshold_pids})]: it may evict pods, and takes no new ones without a toleration',
  'node-near': '{signal} will reach its threshold in {due_seconds}[; {pod} would be evicted first]',
  'cluster-held': 'the node lifecycle controllers are held[: {why}]; `spillway resume` ends it',
};

function valueOf(name: string, value: string | number): string {
  if (typeof value === 'string') return value.replace(/\n/g, ' ');
  return name.endsWith('_bytes') ? bytesText(value) : name.endsWith('_seconds') ? secondsText(value) : String(value);
}

/** null: a fact is not there. */
function filled(text: string, facts: Facts): string | null {
  let isWhole = true;
  const out = text.replace(/\{([a-z_]+)(?::([^|}]*)\|([^}]*))?\}/g, (_, name: string, one?: string, many?: string) => {
    const value = facts[name];
    if (value === undefined) { isWhole = false; return ''; }
    const said = valueOf(name, value);
    return one === undefined ? said : `${said} ${said === '1' ? one : many}`;
  });
  return isWhole ? out : null;
}

/** The sentence of a code; parts in [] whose facts are not there are left out. */
export function sentenceFor(code: string, facts: Facts): string {
  const text = (SENTENCES[code] ?? code).split(/(\[[^\]]*\])/).map((part) => (part.startsWith('[') ? filled(part.slice(1, -1), facts) ?? '' : filled(part, facts) ?? ''));
  return text.join('');
}
