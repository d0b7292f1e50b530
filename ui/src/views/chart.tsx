// A line over time with its threshold, by uPlot; beside it the last value in words.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { spanOf } from '../rules/signals.ts';
import { useWidth } from './parts.tsx';

export interface Series { label: string; colour: string; values: (number | null)[]; dashed?: boolean }

const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i); // steps of an axis of bytes

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ label, times, series, format, height = 150, range, binary = false, titled = false }: {
  label: string; times: number[]; series: Series[]; format: (value: number) => string; height?: number; range?: [number, number] | null; binary?: boolean;
  titled?: boolean; // its name stands above it
}) {
  const [room, width] = useWidth<HTMLDivElement>();
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ format, range, times });
  latest.current = { format, range, times };
  // With a single point uPlot makes an axis of a thousand days.
  const alone = times.length === 1;
  const data: uPlot.AlignedData = [alone ? spanOf(times) : times, ...series.map((each) => (alone ? [null, ...each.values] : each.values))] as uPlot.AlignedData;
  const shape = series.map((each) => each.label).join();
  const shown = width > 0;
  useEffect(() => {
    if (!shown) return undefined;
    const axis = { stroke: () => colour('--quiet'), grid: { stroke: () => colour('--grid'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    plot.current = new uPlot({
      width, height, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: true, range: () => spanOf(latest.current.times) }, y: { range: (_u, low, high) => latest.current.range ?? [Math.min(0, low ?? 0), (high ?? 1) * 1.08 || 1] } },
      axes: [{ ...axis, space: 80, size: 26, values: (_u, splits) => splits.map((each) => new Date(each * 1000).toTimeString().slice(0, 8)) },
        { ...axis, size: 62, space: 26, ...(binary ? { incrs: POWERS } : {}), values: (_u, splits) => splits.map((each) => latest.current.format(each)) }],
      series: [{}, ...series.map((each) => ({
        label: each.label, stroke: () => colour(each.colour), width: each.dashed ? 1.5 : 2, ...(each.dashed ? { dash: [5, 4] } : {}), points: { show: () => latest.current.times.length === 1, size: 5 }, spanGaps: false,
      }))],
    }, data, room.current!.querySelector<HTMLElement>('.plot')!);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const look = () => plot.current?.redraw();
    scheme.addEventListener('change', look);
    return () => { scheme.removeEventListener('change', look); plot.current?.destroy(); plot.current = null; };
  }, [shown, height, shape]);
  useEffect(() => { if (width > 0) plot.current?.setSize({ width, height }); }, [width, height]);
  useEffect(() => { plot.current?.setData(data); });
  const words = series.map((each) => { const last = [...each.values].reverse().find((value) => value !== null); return `${each.label} ${last === undefined || last === null ? 'not measured' : format(last)}`; }).join(', ');
  return (
    <figure class="chart">
      <figcaption>{titled ? words : `${label}: ${words}`}</figcaption>
      <div ref={room} role="img" aria-label={`${label} over time: ${words}`}><div class="plot" /></div>
    </figure>
  );
}
