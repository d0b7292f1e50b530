// The object that a user means by a name in the search box. Pure.
import { kindNamed } from './kinds.ts';

/** `kind`: "Pod", "Service"; empty: a pod or a node. */
export interface Asked { kind: string; ns: string; name: string }

/** "pod/shop/cart", "po/cart", "shop/cart", "node/n1", "svc/shop/web", "cart"; null: it names nothing. */
export function parseAsked(text: string): Asked | null {
  const parts = text.trim().toLowerCase().split(/[/\s]+/).filter((each) => each !== '');
  const first = parts[0] ?? '';
  const kind = parts.length < 2 ? '' : ['node', 'nodes', 'no'].includes(first) ? 'Node' : kindNamed(first)?.kind ?? '';
  const rest = kind === '' ? parts : parts.slice(1);
  if (rest.length === 0 || rest.length > 2 || rest.some((each) => !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(each))) return null;
  if (kind === 'Node') return rest.length === 1 ? { kind, ns: '', name: rest[0]! } : null;
  return rest.length === 2 ? { kind: kind || 'Pod', ns: rest[0]!, name: rest[1]! } : { kind, ns: '', name: rest[0]! };
}
