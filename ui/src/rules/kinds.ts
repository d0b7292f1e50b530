// The kinds of objects that have a page, their paths, and the names that a user may type for them. Pure.
import type { Subject } from './outlook.ts';

export interface Kind { kind: string; path: string; plural: string; title: string; names: string[] }

export const KINDS: Kind[] = [
  { kind: 'Pod', path: '/api/v1', plural: 'pods', title: 'Pods', names: ['pod', 'po'] },
  { kind: 'Deployment', path: '/apis/apps/v1', plural: 'deployments', title: 'Deployments', names: ['deployment', 'deploy'] },
  { kind: 'ReplicaSet', path: '/apis/apps/v1', plural: 'replicasets', title: 'ReplicaSets', names: ['replicaset', 'rs'] },
  { kind: 'StatefulSet', path: '/apis/apps/v1', plural: 'statefulsets', title: 'StatefulSets', names: ['statefulset', 'sts'] },
  { kind: 'DaemonSet', path: '/apis/apps/v1', plural: 'daemonsets', title: 'DaemonSets', names: ['daemonset', 'ds'] },
  { kind: 'Job', path: '/apis/batch/v1', plural: 'jobs', title: 'Jobs', names: ['job'] },
  { kind: 'PersistentVolumeClaim', path: '/api/v1', plural: 'persistentvolumeclaims', title: 'Claims', names: ['persistentvolumeclaim', 'pvc', 'claim'] },
  { kind: 'Service', path: '/api/v1', plural: 'services', title: 'Services', names: ['service', 'svc'] },
];

export const kindOf = (kind: string): Kind | undefined => KINDS.find((each) => each.kind === kind);
/** By the name of the kind in any spelling: "svc", "services", "Service". */
export const kindNamed = (word: string): Kind | undefined => KINDS.find((each) => each.plural === word.toLowerCase() || each.names.includes(word.toLowerCase()));

/**
 * The kind of an owner or object reference: "ReplicaSet", and "ReplicaSet.example.com" for a kind of another group than
 * Kubernetes' own. Custom kinds may have the name of any other kind.
 */
export function kindText(reference: { apiVersion?: unknown; kind?: unknown }): string {
  const kind = typeof reference.kind === 'string' ? reference.kind : '';
  const version = String(reference.apiVersion ?? '');
  const group = version.includes('/') ? version.slice(0, version.indexOf('/')) : '';
  return !group.includes('.') || group.endsWith('.k8s.io') ? kind : `${kind}.${group}`;
}

export const listPath = ({ path, plural }: Kind): string => `${path}/${plural}`;
/** A list of one: a user who may list a kind need not have the right to get one object of it. */
export const namedPath = (kind: Kind, ns: string, name: string): string =>
  `${listPath(kind)}?fieldSelector=${encodeURIComponent(`metadata.name=${name},metadata.namespace=${ns}`)}`;

export const objectLink = ({ kind, ns, name }: Subject): string => `#/object/${kind}/${encodeURIComponent(ns)}/${encodeURIComponent(name)}`;
/** The page that is about an object; empty: there is none. */
export function pageOf(subject: Subject): string {
  if (subject.kind === 'Cluster') return '#/zones';
  if (subject.kind === 'Node') return `#/node/${encodeURIComponent(subject.name)}`;
  return kindOf(subject.kind) === undefined ? '' : objectLink(subject);
}

/** As src/cli/text/overview_text.cc prints it. `usual`: the namespace that needs no flag. */
export function commandFor({ kind, ns, name }: Subject, usual = 'default'): string {
  if (kind === 'Cluster') return '';
  return `spillway explain ${kind === 'PersistentVolumeClaim' ? 'pvc' : kind.toLowerCase()}/${name}${ns === '' || ns === usual ? '' : ` -n ${ns}`}`;
}
