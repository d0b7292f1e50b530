// A list of the API kept up to date by a watch, as lean values by "namespace/name". While the page is not visible, it
// sends no request.
import { ApiError, get, open } from './api.ts';
import { type End, fresh, Lines, onEnd, onListed, onVersion, type Session } from './watching.ts';

const PAGE = 500;

export class Collection<T> {
  readonly items = new Map<string, T>();
  session: Session = fresh();
  version = 0; // grows with every change
  private listeners = new Set<() => void>();
  private scheduled = false;
  private cancel: AbortController | null = null;
  private awake: (() => void) | null = null;

  constructor(
    private readonly path: string,
    private readonly query: string, // "fieldSelector=…"; may be empty
    private readonly lean: (object: any) => T,
    private readonly onChange: (key: string, now: T | null, before: T | null, listed: boolean) => void = () => {},
    private readonly keep = Infinity, // items; the first that came go first
  ) {}

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start(): void {
    if (this.cancel !== null) return;
    const cancel = new AbortController();
    this.cancel = cancel;
    void this.run(cancel.signal);
  }

  stop(): void {
    this.cancel?.abort();
    this.cancel = null;
  }

  /** Tries at once instead of after its wait. */
  retry(): void { this.awake?.(); }

  private changed(): void {
    this.version += 1;
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      for (const each of this.listeners) each();
    });
  }

  private set(session: Session): void {
    this.session = session;
    this.changed();
  }

  private async run(signal: AbortSignal): Promise<void> {
    let relist = this.session.version === '';
    while (!signal.aborted) {
      let end: End;
      try {
        if (relist) await this.list(signal);
        end = await this.watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        const status = error instanceof ApiError ? error.status : 0;
        end = status === 410 ? { kind: 'expired' } : { kind: 'failed', status, message: error instanceof Error ? error.message : String(error) };
      }
      if (signal.aborted) return;
      const next = onEnd(this.session, end, Math.random());
      relist = next.relist;
      this.set(next.session);
      await this.pause(next.waitMs, signal);
    }
  }

  private pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
      const finish = () => { clearTimeout(timer); this.awake = null; signal.removeEventListener('abort', finish); done(); };
      const timer = setTimeout(finish, ms);
      this.awake = finish;
      signal.addEventListener('abort', finish);
    });
  }

  private static key(object: any): string {
    const { namespace, name } = object.metadata ?? {};
    return namespace ? `${namespace}/${name}` : String(name);
  }

  private async list(signal: AbortSignal): Promise<void> {
    const seen = new Map<string, T>();
    let next = '';
    let version = '';
    do {
      const parameters = [this.query, `limit=${PAGE}`, next === '' ? '' : `continue=${encodeURIComponent(next)}`].filter(Boolean).join('&');
      const page = await get(`${this.path}?${parameters}`, signal);
      for (const object of page.items ?? []) seen.set(Collection.key(object), this.lean(object));
      next = String(page.metadata?.continue ?? '');
      version = String(page.metadata?.resourceVersion ?? '');
    } while (next !== '');
    for (const key of [...this.items.keys()]) if (!seen.has(key)) this.put(key, null, true);
    for (const [key, value] of seen) this.put(key, value, true);
    this.set(onListed(this.session, version));
  }

  private put(key: string, value: T | null, listed: boolean): void {
    const before = this.items.get(key) ?? null;
    if (value === null) this.items.delete(key);
    else this.items.set(key, value);
    while (this.items.size > this.keep) this.items.delete(this.items.keys().next().value!);
    this.onChange(key, value, before, listed);
  }

  private async watch(signal: AbortSignal): Promise<End> {
    const parameters = [this.query, 'watch=1', 'allowWatchBookmarks=true', 'timeoutSeconds=290', `resourceVersion=${encodeURIComponent(this.session.version)}`];
    const answer = await open(`${this.path}?${parameters.filter(Boolean).join('&')}`, { signal });
    this.set(onVersion(this.session, ''));
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    const lines = new Lines();
    for (;;) {
      let piece: ReadableStreamReadResult<Uint8Array>;
      try {
        piece = await reader.read();
      } catch (error) {
        if (signal.aborted) throw error;
        throw new ApiError(0, 'Disconnected', 'the connection broke off');
      }
      if (piece.done) return { kind: 'ended' };
      for (const line of lines.take(decoder.decode(piece.value, { stream: true }))) {
        const event = JSON.parse(line);
        if (event.type === 'ERROR') {
          const status = Number(event.object?.code ?? 500);
          return status === 410 ? { kind: 'expired' } : { kind: 'failed', status, message: String(event.object?.message ?? 'the watch failed') };
        }
        if (event.type !== 'BOOKMARK') this.put(Collection.key(event.object), event.type === 'DELETED' ? null : this.lean(event.object), false);
        this.session = onVersion(this.session, String(event.object?.metadata?.resourceVersion ?? ''));
      }
      this.changed();
    }
  }
}
