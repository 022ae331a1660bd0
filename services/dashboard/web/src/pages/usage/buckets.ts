// Rows of usage:query as bars, with a bar for every bucket of the period; buckets without rows are zero.
import { absolute, clock, startOfDay } from '@/format/time';
import { nanos } from '@/format/money';
import type { BarSeries, Bucket } from '@/ui';
import type { UsageRow } from './queries';

export const OTHER = 'other';
const STEPS: Record<string, number> = { USAGE_INTERVAL_QUARTER_HOUR: 900_000, USAGE_INTERVAL_HOUR: 3_600_000 };
const MOST = 400;

export interface Bars {
  series: BarSeries[];
  buckets: Bucket[];
}

export function bars(
  rows: readonly UsageRow[],
  { interval, start, end, zone, now, name, other, until }: {
    interval: string; start: Date; end: Date; zone: string; now: Date;
    name: (row: UsageRow) => { id: string; name: string };
    other: string; // "Other"
    until: (time: string) => string; // "until 14:05"
  },
): Bars {
  const series = new Map<string, BarSeries>();
  const sums = new Map<number, Record<string, bigint>>();
  for (const row of rows) {
    const one = row.other ? { id: OTHER, name: other, other: true } : name(row);
    if (!series.has(one.id)) series.set(one.id, one);
    const at = row.startTime ? Date.parse(row.startTime) : start.getTime();
    const values = sums.get(at) ?? {};
    values[one.id] = nanos(row.costUsd) ?? 0n;
    sums.set(at, values);
  }
  const step = STEPS[interval];
  const buckets: Bucket[] = [];
  let at = step ? Math.floor(start.getTime() / step) * step : startOfDay(start, zone).getTime();
  while (at < end.getTime() && buckets.length < MOST) {
    const next = step ? at + step : startOfDay(new Date(at), zone, 1).getTime();
    const running = at <= now.getTime() && now.getTime() < next;
    const date = new Date(at);
    const day = absolute(date, zone, 'date', now);
    const label = step ? `${day}, ${clock(date, zone).slice(0, 5)}` : day;
    buckets.push({
      id: String(at),
      axis: step && (interval !== 'USAGE_INTERVAL_HOUR' || end.getTime() - start.getTime() <= 90_000_000) ? clock(date, zone).slice(0, 5) : day,
      name: running ? `${label}, ${until(clock(now, zone).slice(0, 5))}` : label,
      // In a bucket that the period cuts, the row starts with the period.
      values: sums.get(at) ?? (at < start.getTime() ? sums.get(start.getTime()) : undefined) ?? {},
      running,
    });
    at = next;
  }
  // The largest series is at the bottom, the rest on top.
  const total = (id: string) => buckets.reduce((sum, bucket) => sum + (bucket.values[id] ?? 0n), 0n);
  const ordered = [...series.values()].sort((a, b) => (a.other ? 1 : b.other ? -1 : total(b.id) > total(a.id) ? 1 : -1));
  return { series: ordered, buckets };
}
