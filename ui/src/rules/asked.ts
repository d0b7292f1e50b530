// The object that a user means by a name in the search box. Pure.
export interface Asked { kind: 'pod' | 'node' | 'either'; ns: string; name: string }

/** "pod/shop/cart", "po/cart", "shop/cart", "node/n1", "cart"; null: it names nothing. */
export function parseAsked(text: string): Asked | null {
  const parts = text.trim().toLowerCase().split(/[/\s]+/).filter((each) => each !== '');
  const kinds: Record<string, 'pod' | 'node'> = { pod: 'pod', pods: 'pod', po: 'pod', node: 'node', nodes: 'node', no: 'node' };
  const kind = parts.length > 1 ? kinds[parts[0]!] : undefined;
  const rest = kind === undefined ? parts : parts.slice(1);
  if (rest.length === 0 || rest.length > 2 || rest.some((each) => !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(each))) return null;
  if (kind === 'node') return rest.length === 1 ? { kind, ns: '', name: rest[0]! } : null;
  return rest.length === 2 ? { kind: 'pod', ns: rest[0]!, name: rest[1]! } : { kind: kind ?? 'either', ns: '', name: rest[0]! };
}
