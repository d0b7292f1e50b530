// Pieces that all views share.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Cluster } from '../live/cluster.ts';
import { remarksOf, tablesOf, headline, factsText, type Decision, type Pod, type Table } from '../rules/decisions.ts';
import { pageOf } from '../rules/kinds.ts';
import { othersOf, outlookTables, type Outlook, type State } from '../rules/outlook.ts';
import { isRoutine } from '../rules/rows.ts';
import type { Session } from '../live/watching.ts';
import type { Happening } from '../rules/objects.ts';

/** Signs of states, so that colour is not the only one. */
export const STATE_SIGNS: Record<State, string> = { bad: '!', waits: '…', good: '' };

/** Draws anew whenever the cluster has changed, at most once a frame. */
export function useCluster(cluster: Cluster): number {
  const [version, set] = useState(cluster.version);
  useEffect(() => {
    let frame = 0;
    const stop = cluster.listen(() => { if (frame === 0) frame = requestAnimationFrame(() => { frame = 0; set(cluster.version); }); });
    return () => { stop(); cancelAnimationFrame(frame); };
  }, [cluster]);
  return version;
}

/** The time, every second. */
export function useSeconds(): number {
  const [now, set] = useState(Date.now());
  useEffect(() => { const timer = setInterval(() => set(Date.now()), 1000); return () => clearInterval(timer); }, []);
  return now;
}

/** Room of an element in CSS pixels. */
export function useWidth<T extends HTMLElement>(): [preact.RefObject<T>, number] {
  const ref = useRef<T>(null);
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current!;
    const look = () => set(Math.floor(element.getBoundingClientRect().width));
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref as preact.RefObject<T>, width];
}

export function ago(ms: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 120) return `${seconds}s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}m ago`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)}h ago`;
  return `${Math.round(seconds / 86_400)}d ago`;
}

export function Section({ title, sub, wide, tall, children }: { title: string; sub?: string | undefined; wide?: boolean; tall?: boolean; children: ComponentChildren }) {
  return <section aria-label={title} class={`${wide ? 'wide' : ''} ${tall ? 'tall' : ''}`.trim()}><h2>{title}</h2>{sub && <p class="sub">{sub}</p>}{children}</section>;
}

export function Note({ kind, children }: { kind: 'empty' | 'loading' | 'denied' | 'lost'; children: ComponentChildren }) {
  return <p class={`note ${kind}`} role={kind === 'loading' ? 'status' : undefined}>{children}</p>;
}

/** Why a list cannot be shown; null: it can. */
export function problemOf(session: Session, what: string, empty: boolean): ComponentChildren | null {
  if (session.phase === 'denied') return <Note kind="denied"><b>You may not list {what}.</b> {session.message}. An administrator can give you the verbs list and watch on {what}.</Note>;
  if (!empty) return null;
  if (session.phase === 'loading' || session.phase === 'paused') return <Note kind="loading">Loading {what}…</Note>;
  if (session.phase === 'disconnected') return <Note kind="lost">Nothing is known of {what}: {session.message}. Trying again…</Note>;
  return null;
}

export const nodeLink = (name: string): string => `#/node/${encodeURIComponent(name)}`;
export const whyLink = (text: string): string => `#/why?q=${encodeURIComponent(text)}`;

/** `wraps`: long cells are broken rather than scrolled to. */
export function Grid({ table, label, wraps, link }: { table: Table; label?: string; wraps?: boolean; link?: (name: string) => string }) {
  return (
    <div class={wraps ? 'table wraps' : 'table'} role="region" aria-label={label ?? table.title} tabIndex={0}>
      <table>
        <thead><tr>{table.headings.map((each, i) => (each === '' ? <td key={i} /> : <th scope="col" key={i}>{each}</th>))}</tr></thead>
        <tbody>{table.rows.map((row, place) => <tr key={place} class={place === table.marked ? 'marked' : ''}>{row.map((each, i) => <td key={i}>{i === 0 && link !== undefined && link(each) !== '' ? <a href={link(each)}>{each}</a> : each}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** A decision as `spillway explain` prints it. */
export function Explained({ decision, pod, sentence = true }: { decision: Decision; pod?: Pod | null; sentence?: boolean }) {
  const remarks = remarksOf(decision);
  return (
    <div class="explained">
      {sentence && <p class="answer">{headline(decision, pod ?? null)}</p>}
      {tablesOf(decision, pod ?? null).map((each) => <div key={each.title}><h3>{each.title}</h3>{each.rows.length > 0 && <Grid table={each} />}{each.remark && <p class="quiet">{each.remark}</p>}</div>)}
      {remarks.length > 0 && <><h3>Also</h3><ul>{remarks.map((each, i) => <li key={i}>{each}</li>)}</ul></>}
      {decision.cost.length > 0 && <><h3>What it cost</h3><p>{factsText(decision.cost)}</p></>}
      {decision.message !== '' && <><h3>Status</h3><p>{decision.message}</p></>}
    </div>
  );
}

/** The name of an object, as a link to its page if its kind has one. */
export function Named({ kind, ns, name }: { kind: string; ns: string; name: string }) {
  const place = kind === 'Node' ? '' : ns;
  const text = place === '' ? name : `${place}/${name}`;
  const page = pageOf({ kind, ns: place, name });
  return page === '' ? <span>{kind} {text}</span> : <a href={page}>{text}</a>;
}

/** An outlook below its sentence, as `spillway explain` prints it. Cells that name a pod of its namespace lead to it. `without`: tables that
 *  stand elsewhere on the page. */
export function OutlookText({ outlook, without = [] }: { outlook: Outlook; without?: string[] }) {
  const others = othersOf(outlook);
  const link = (title: string, name: string) => (title === 'Pods' ? pageOf({ kind: 'Pod', ns: outlook.subject.ns, name }) : '');
  return (
    <div class="explained">
      {others.length > 0 && <ul>{others.map((each, i) => <li key={i}>{each}</li>)}</ul>}
      {outlookTables(outlook).filter((each) => !without.includes(each.title)).map((each) => <div key={each.title}><h3>{each.title}</h3><Grid wraps table={each} link={(name) => link(each.title, name)} />{each.remark && <p class="quiet">{each.remark}</p>}</div>)}
    </div>
  );
}

/** Events with those of the usual course folded. */
export function Folded({ list, now }: { list: Happening[]; now: number }) {
  const [all, setAll] = useState(false);
  const usual = list.filter(isRoutine).length;
  return (
    <>
      <Happenings list={all ? list : list.filter((each) => !isRoutine(each))} now={now} />
      {usual > 0 && <p class="actions"><button type="button" aria-pressed={all} onClick={() => setAll(!all)}>{all ? 'Hide' : 'Show'} {usual} usual {usual === 1 ? 'event' : 'events'}</button></p>}
    </>
  );
}

export function Happenings({ list, now }: { list: Happening[]; now: number }) {
  return (
    <ol class="happenings">
      {list.map((each) => (
        <li key={each.key} class={each.warning ? 'warning' : ''}>
          <time dateTime={each.at} title={each.at}>{ago(each.atMs, now)}</time>
          <span class="message">
            <b>{each.reason}{each.count > 1 ? ` ×${each.count}` : ''}</b>{' '}
            <Named kind={each.kind} ns={each.ns} name={each.name} />
            {' '}{each.message}
          </span>
        </li>
      ))}
    </ol>
  );
}
