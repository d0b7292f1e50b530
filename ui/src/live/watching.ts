// Decides the next step for a list that is kept up to date by a watch. Pure: the caller waits and sends requests.

export type Phase = 'loading' | 'live' | 'denied' | 'disconnected' | 'paused';
export interface Session { phase: Phase; version: string; failures: number; message: string }
export type End =
  | { kind: 'ended' }                                    // the server closed the watch, as it does now and then
  | { kind: 'expired' }                                  // 410: what was seen last is too old
  | { kind: 'failed'; status: number; message: string }; // 0: there was no answer
export interface Next { session: Session; relist: boolean; waitMs: number }

const FIRST_WAIT_MS = 500;
const WAIT_MAX_MS = 8000;
const DENIED_WAIT_MS = 15_000; // rights may be given meanwhile

export const fresh = (): Session => ({ phase: 'loading', version: '', failures: 0, message: '' });

export function onListed(session: Session, version: string): Session {
  return { ...session, phase: 'live', version, failures: 0, message: '' };
}

export function onVersion(session: Session, version: string): Session {
  return { ...session, phase: 'live', version: version === '' ? session.version : version, failures: 0, message: '' };
}

/** `random`: from 0 to 1, so that many pages do not come back at once. */
export function onEnd(session: Session, end: End, random: number): Next {
  if (end.kind === 'ended') return { session: { ...session, failures: 0 }, relist: session.version === '', waitMs: 100 + 400 * random };
  if (end.kind === 'expired') return { session: { ...session, version: '', failures: 0 }, relist: true, waitMs: 100 * random };
  const failures = session.failures + 1;
  const denied = end.status === 401 || end.status === 403;
  // Any other refusal is of this server's state: begin anew once it is back, whatever it knows by then.
  const wait = denied ? DENIED_WAIT_MS : Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 10));
  const version = end.status === 0 || end.status === 429 || end.status === 503 ? session.version : '';
  return {
    session: { phase: denied ? 'denied' : 'disconnected', version, failures, message: end.message },
    relist: version === '', waitMs: wait * (0.5 + random / 2),
  };
}

/** Complete lines of a stream that comes in pieces. */
export class Lines {
  private rest = '';
  take(piece: string): string[] {
    const lines = (this.rest + piece).split('\n');
    this.rest = lines.pop() ?? '';
    return lines.filter((each) => each !== '');
  }
}
