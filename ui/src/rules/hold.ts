// The manual hold as a ConfigMap, as src/controllers/nodes/manual_hold.cc reads and writes it. Pure.

export interface Hold { everything: string | null; zones: Map<string, string> } // the reason why; by readable name

export function readHold(configMap: any): Hold {
  const data = configMap?.data ?? {};
  const zones = new Map<string, string>();
  for (const line of String(data.zones ?? '').split('\n')) {
    if (line === '') continue;
    const blank = line.indexOf(' ');
    const name = blank < 0 ? line : line.slice(0, blank);
    zones.set(name === '-' ? '' : name, blank < 0 ? '' : line.slice(blank + 1));
  }
  const everything = typeof data.why === 'string' ? data.why : zones.size === 0 ? '' : null; // empty: everything
  return { everything, zones };
}

export function holdData(hold: Hold): Record<string, string> {
  const data: Record<string, string> = {};
  if (hold.everything !== null) data.why = hold.everything;
  const lines = [...hold.zones].sort(([a], [b]) => (a < b ? -1 : 1)).map(([zone, why]) => `${zone === '' ? '-' : zone} ${why}\n`);
  if (lines.length > 0) data.zones = lines.join('');
  return data;
}

export type Act = { kind: 'hold' | 'resume'; zone: string | null; why: string }; // zone null: everything

export interface Write { method: 'POST' | 'PUT' | 'DELETE'; body: any }

/** The write that carries out `act` where the object is `found` (null: it does not exist); null: no write is needed. */
export function plan(found: any | null, act: Act): Write | null {
  const hold = found === null ? { everything: null, zones: new Map<string, string>() } : readHold(found);
  if (act.kind === 'hold') {
    if (act.zone === null) hold.everything = act.why;
    else hold.zones.set(act.zone, act.why);
  } else {
    if (found === null) return null;
    if (act.zone === null) { hold.everything = null; hold.zones.clear(); } else hold.zones.delete(act.zone);
  }
  if (hold.everything === null && hold.zones.size === 0) {
    return { method: 'DELETE', body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: found.metadata.uid, resourceVersion: found.metadata.resourceVersion } } };
  }
  const map = found === null ? { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'spillway-hold', namespace: 'kube-system' } } : { ...found, apiVersion: 'v1', kind: 'ConfigMap' };
  return { method: found === null ? 'POST' : 'PUT', body: { ...map, data: holdData(hold) } };
}
