import { expect, it } from 'vitest';
import { bars } from './buckets';
import type { UsageRow } from './queries';

const row = (startTime: string, model: string, costUsd: string, other = false) => ({ startTime, model, costUsd, other, key: '' }) as unknown as UsageRow;
const options = { interval: 'USAGE_INTERVAL_DAY', zone: 'UTC', other: 'Other', until: (time: string) => `until ${time}`, name: ({ model }: UsageRow) => ({ id: model, name: model }) };

it('days without rows are zero, not missing, and the running one says until when', () => {
  const made = bars([row('2026-09-25T00:00:00Z', 'a/b', '1.50'), row('2026-09-25T00:00:00Z', '', '0.25', true), row('2026-09-25T00:00:00Z', 'a/c', '2.00')], {
    ...options, start: new Date('2026-09-24T00:00:00Z'), end: new Date('2026-09-26T14:05:00Z'), now: new Date('2026-09-26T14:05:00Z'),
  });
  expect(made.buckets.map((bucket) => bucket.name)).toEqual(['Sep 24', 'Sep 25', 'Sep 26, until 14:05']);
  expect(made.buckets.map((bucket) => bucket.running)).toEqual([false, false, true]);
  expect(made.buckets[1]!.values).toEqual({ 'a/b': 1_500_000_000n, other: 250_000_000n, 'a/c': 2_000_000_000n });
  expect(made.series.map((one) => one.id)).toEqual(['a/c', 'a/b', 'other']);
});

it('a day of 25 hours is one bar', () => {
  const made = bars([row('2026-10-24T22:00:00Z', 'a/b', '1.00')], {
    ...options, zone: 'Europe/Berlin', start: new Date('2026-10-24T22:00:00Z'), end: new Date('2026-10-26T22:00:00Z'), now: new Date('2026-11-01T00:00:00Z'),
  });
  expect(made.buckets.map((bucket) => bucket.axis)).toEqual(['Oct 25', 'Oct 26']);
  expect(made.buckets[0]!.values).toEqual({ 'a/b': 1_000_000_000n });
});
