// The measurements of a node against its thresholds, from an agent of ours or from a stock kubelet. Pure.
import type { Decision } from './decisions.ts';
import { measured } from './decisions.ts';
import { parseQuantity } from './objects.ts';

export interface Signal { name: string; unit: 'bytes' | 'inodes' | 'processes'; available: number | null; threshold: number | null; capacity: number | null; forecast: number | null; state: string }

/** Seconds that a chart shows at least. */
const SPAN_MIN_S = 60;

/** First and last second of a chart's time axis, for the times at which something was measured, in order. */
export function spanOf(times: readonly number[]): [number, number] {
  const last = times[times.length - 1] ?? 0;
  return [Math.min(times[0] ?? last, last - SPAN_MIN_S), last];
}

const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** The signals in `now` of an agent's decisions. */
export function signalsOf(standing: Decision | null): Signal[] {
  const found = new Map<string, Signal>();
  for (const { code, facts } of standing?.reasons ?? []) {
    const signal = facts.find((each) => each.name === 'signal')?.value;
    const available = measured(facts, 'available');
    if (typeof signal !== 'string' || (available === undefined && code !== 'observation-missing')) continue;
    const unit = available?.name.replace('available_', '') ?? 'bytes';
    if (found.has(signal) && code === 'threshold-not-met') continue;
    found.set(signal, {
      name: signal, unit: unit as Signal['unit'], available: number(available?.value), threshold: number(measured(facts, 'threshold')?.value),
      capacity: number(measured(facts, 'capacity')?.value), forecast: number(facts.find((each) => each.name === 'forecast_seconds')?.value), state: code,
    });
  }
  return [...found.values()];
}

function threshold(value: unknown, capacity: number | null): number | null {
  if (typeof value !== 'string') return null;
  if (value.endsWith('%')) return capacity === null ? null : (Number(value.slice(0, -1)) / 100) * capacity;
  return parseQuantity(value);
}

/** The signals from a kubelet's /stats/summary and the evictionHard of its /configz. */
export function signalsOfSummary(summary: any, evictionHard: Record<string, string> | null): Signal[] {
  const node = summary?.node ?? {};
  const memory = node.memory ?? {};
  const memoryCapacity = number(memory.availableBytes) !== null && number(memory.workingSetBytes) !== null ? memory.availableBytes + memory.workingSetBytes : null;
  const rows: [string, Signal['unit'], unknown, unknown][] = [
    ['memory.available', 'bytes', memory.availableBytes, memoryCapacity],
    ['nodefs.available', 'bytes', node.fs?.availableBytes, node.fs?.capacityBytes],
    ['nodefs.inodesFree', 'inodes', node.fs?.inodesFree, node.fs?.inodes],
    ['imagefs.available', 'bytes', node.runtime?.imageFs?.availableBytes, node.runtime?.imageFs?.capacityBytes],
    ['pid.available', 'processes', number(node.rlimit?.maxpid) === null ? null : node.rlimit.maxpid - (number(node.rlimit.curproc) ?? 0), node.rlimit?.maxpid],
  ];
  return rows.flatMap(([name, unit, available, capacity]) => {
    if (number(available) === null) return [];
    const limit = threshold(evictionHard?.[name], number(capacity));
    const state = limit === null ? 'no-threshold' : number(available)! < limit ? 'threshold-met' : 'threshold-not-met';
    return [{ name, unit, available: number(available), threshold: limit, capacity: number(capacity), forecast: null, state }];
  });
}

export interface Pressure { memorySome: number | null; memoryFull: number | null; cpuSome: number | null; ioSome: number | null }

/** Shares of the last ten seconds in per cent. null: the node does not say. */
export function pressureOf(summary: any): Pressure | null {
  const node = summary?.node ?? {};
  const share = (of: any, which: string) => number(of?.psi?.[which]?.avg10);
  const pressure = { memorySome: share(node.memory, 'some'), memoryFull: share(node.memory, 'full'), cpuSome: share(node.cpu, 'some'), ioSome: share(node.io, 'some') };
  return Object.values(pressure).every((each) => each === null) ? null : pressure;
}

/** By uid. A pod with statistics that say nothing of memory counts as one that uses none, as with the kubelet. */
export function podUsage(summary: any): Map<string, number> {
  const usage = new Map<string, number>();
  for (const pod of summary?.pods ?? []) {
    let sum: number | null = number(pod.memory?.workingSetBytes);
    if (sum === null) for (const each of pod.containers ?? []) { const used = number(each.memory?.workingSetBytes); if (used !== null) sum = (sum ?? 0) + used; }
    if (typeof pod.podRef?.uid === 'string') usage.set(pod.podRef.uid, sum ?? 0);
  }
  return usage;
}
