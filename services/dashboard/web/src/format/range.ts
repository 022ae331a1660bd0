// Report periods. The address has `range` and, for a custom one, `from` and `to` as days of the zone. Instants would be
// different days in another zone.
import { instantOf, startOfDay, startOfMonth } from './time';

export const RANGES = ['today', '24h', '7d', '30d', 'month', 'last-month', 'custom'] as const;
export type RangeName = (typeof RANGES)[number];

export interface Range {
  range: RangeName;
  from?: string; // YYYY-MM-DD, for custom
  to?: string; // YYYY-MM-DD, inclusive
}

export interface Period {
  start: Date;
  end: Date; // exclusive
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

export function dayStart(date: string | undefined, zone: string, days = 0): Date | null {
  const match = DATE.exec(date ?? '');
  if (!match) return null;
  const [year, month, day] = match.slice(1).map((text) => parseInt(text, 10)) as [number, number, number];
  if (month < 1 || month > 12 || day < 1 || day > 31) return null;
  return instantOf({ year, month, day: day + days, hour: 0, minute: 0 }, zone);
}

export function resolve(range: Range, zone: string, now: Date): Period {
  switch (range.range) {
    case 'today':
      return { start: startOfDay(now, zone), end: now };
    case '24h':
      return { start: new Date(now.getTime() - 86_400_000), end: now };
    case '7d':
      return { start: startOfDay(now, zone, -6), end: now };
    case '30d':
      return { start: startOfDay(now, zone, -29), end: now };
    case 'month':
      return { start: startOfMonth(now, zone), end: now };
    case 'last-month':
      return { start: startOfMonth(now, zone, -1), end: startOfMonth(now, zone) };
    case 'custom': {
      const start = dayStart(range.from, zone);
      const end = dayStart(range.to, zone, 1);
      if (!start || !end || end <= start) return resolve({ range: '7d' }, zone, now);
      return { start, end };
    }
  }
}

// Parses the query string. Invalid values become the default.
export function parseRange(search: Record<string, unknown>, fallback: RangeName = '7d'): Range {
  const range = RANGES.find((name) => name === search.range) ?? fallback;
  if (range !== 'custom') return { range };
  const text = (value: unknown) => (typeof value === 'string' && DATE.test(value) ? value : undefined);
  return { range, from: text(search.from), to: text(search.to) };
}

export function isZone(zone: unknown): zone is string {
  if (typeof zone !== 'string' || zone === '') return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
