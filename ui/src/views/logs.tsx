// The end of a container's output, read again and again while it is open.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, text } from '../live/api.ts';
import { Note } from './parts.tsx';

const EVERY_MS = 2000;
const LINES = 200;
const BYTES = 65_536;  // the server passes on no log without a bound

const END_PX = 24;  // this near to the end the text keeps to it when lines are added

function pathOf(pod: any, container: string, previous: boolean): string {
  const bounds = `tailLines=${LINES}&limitBytes=${BYTES}${previous ? '&previous=true' : ''}`;
  return `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}/log?container=${encodeURIComponent(container)}&${bounds}`;
}

function Output({ pod, container, previous }: { pod: any; container: string; previous: boolean }) {
  const [seen, setSeen] = useState<{ text: string; problem: ApiError | null } | null>(null);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  const path = pathOf(pod, container, previous);
  useEffect(() => {
    const end = new AbortController();
    setSeen(null);
    void (async () => {
      while (!end.signal.aborted) {
        if (document.visibilityState !== 'hidden') {
          try {
            const printed = await text(path, end.signal);
            setSeen({ text: printed, problem: null });
          } catch (error) {
            if (end.signal.aborted) return;
            if (!(error instanceof ApiError)) throw error;
            setSeen((before) => ({ text: before?.text ?? '', problem: error }));
            if (error.denied) return;
          }
        }
        await new Promise((done) => setTimeout(done, EVERY_MS));
      }
    })();
    return () => end.abort();
  }, [path]);
  useEffect(() => { if (box.current !== null && atEnd.current) box.current.scrollTop = box.current.scrollHeight; }, [seen?.text]);
  if (seen === null) return <Note kind="loading">Reading the output of {container}…</Note>;
  const { problem } = seen;
  return (
    <>
      {problem !== null && <Note kind={problem.denied ? 'denied' : 'lost'}>{problem.denied ? <b>You may not read logs of pods.</b> : 'Not read:'} {problem.message}</Note>}
      {seen.text === '' ? problem === null && <Note kind="empty">It has printed nothing.</Note>
        : <pre class="log" ref={box} tabIndex={0} aria-label={`Output of ${container}`}
          onScroll={({ currentTarget: it }) => { atEnd.current = it.scrollHeight - it.scrollTop - it.clientHeight < END_PX; }}>{seen.text}</pre>}
    </>
  );
}

/** Folded: nothing is read before it is opened. `restarted`: names of containers that ran before. */
export function Logs({ pod, containers, restarted }: { pod: any; containers: string[]; restarted: Set<string> }) {
  const [isOpen, setOpen] = useState(false);
  const [chosen, choose] = useState(containers[0] ?? '');
  const [previous, setPrevious] = useState(false);
  const container = containers.includes(chosen) ? chosen : containers[0] ?? '';
  const before = previous && restarted.has(container);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Output</summary>
      {isOpen && (
        <>
          <div class="tools">
            {containers.length > 1 && <label>Container <select value={container} onChange={(event) => choose(event.currentTarget.value)}>{containers.map((each) => <option key={each} value={each}>{each}</option>)}</select></label>}
            {restarted.has(container) && <label><input type="checkbox" checked={previous} onChange={(event) => setPrevious(event.currentTarget.checked)} /> of its run before</label>}
          </div>
          <Output pod={pod} container={container} previous={before} />
          <p class="quiet">The last {LINES} lines, read every {EVERY_MS / 1000} s. All of it: <code>kubectl logs {pod.metadata.name} -n {pod.metadata.namespace} -c {container}{before ? ' --previous' : ''}</code></p>
        </>
      )}
    </details>
  );
}
