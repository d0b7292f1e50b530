// The way to the API server: below the folder this page lies in, by whatever door it was opened.

/** status 0: there was no answer. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly reason: string, message: string) { super(message); }
  get denied(): boolean { return this.status === 403 || this.status === 401; }
  get gone(): boolean { return this.status === 0; }
}

export interface Door { version: string; through: string; server: string; whatIf?: boolean }

export const base = (): URL => new URL('../', document.baseURI);
const url = (path: string): string => new URL(path.replace(/^\//, ''), base()).href;

async function refusal(answer: Response): Promise<ApiError> {
  let reason = '';
  let message = `${answer.status} ${answer.statusText}`;
  try {
    const status = await answer.json();
    reason = String(status.reason ?? '');
    message = String(status.message ?? message);
  } catch { /* not a Status: the code says it */ }
  return new ApiError(answer.status, reason, message);
}

export async function open(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url(path), { cache: 'no-store', redirect: 'error', ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, 'Disconnected', 'no answer');
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export async function get(path: string, signal?: AbortSignal): Promise<any> {
  const answer = await open(path, { signal: signal ?? null });
  try {
    return await answer.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'Disconnected', 'the answer broke off');
  }
}

export async function text(path: string, signal: AbortSignal): Promise<string> {
  const answer = await open(path, { signal });
  try {
    return await answer.text();
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, 'Disconnected', 'the answer broke off');
  }
}

/** null: there is none. */
export async function find(path: string, signal?: AbortSignal): Promise<any | null> {
  try {
    return await get(path, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

export async function send(method: string, path: string, body: unknown): Promise<any> {
  return (await open(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();
}

/** True if the user may; false as well where no server can say. */
export const may = (verb: string, resource: string, namespace: string, name: string): Promise<boolean> =>
  review({ resourceAttributes: { verb, resource, namespace, name } });

export const mayAt = (verb: string, path: string): Promise<boolean> => review({ nonResourceAttributes: { verb, path } });

async function review(spec: unknown): Promise<boolean> {
  try {
    const answer = await send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec,
    });
    return answer.status?.allowed === true;
  } catch {
    return false;
  }
}
