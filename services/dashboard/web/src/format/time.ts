// The API sends instants as RFC 3339 text in UTC. Every call names its time zone.
import { formatLocale } from './locale';

export const UTC = 'UTC';

export function browserZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || UTC;
}

// The zone's name at that instant: "UTC", "CEST", "GMT+5:30".
export function zoneName(zone: string, at: Date = new Date()): string {
  if (zone === UTC) return 'UTC';
  const parts = new Intl.DateTimeFormat(formatLocale(), { timeZone: zone, timeZoneName: 'short' }).formatToParts(at);
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? zone;
}

type Detail = 'second' | 'minute' | 'date';

// "Sep 27, 14:05:12 UTC", with the year unless it is the current one.
export function absolute(value: string | Date | null | undefined, zone: string, detail: Detail = 'second', now = new Date()): string {
  const at = asDate(value);
  if (!at) return '—';
  const sameYear = partsIn(at, zone).year === partsIn(now, zone).year;
  const text = new Intl.DateTimeFormat(formatLocale(), {
    timeZone: zone,
    month: 'short',
    day: 'numeric',
    ...(sameYear ? {} : { year: 'numeric' }),
    ...(detail === 'date' ? {} : { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
    ...(detail === 'second' ? { second: '2-digit' } : {}),
  } as Intl.DateTimeFormatOptions).format(at);
  return detail === 'date' ? text : `${text} ${zoneName(zone, at)}`;
}

// "14:05:12"
export function clock(value: string | Date, zone: string): string {
  const at = asDate(value);
  if (!at) return '—';
  return new Intl.DateTimeFormat(formatLocale(), {
    timeZone: zone, hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
  }).format(at);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// "2 min ago" within a day of now, in both directions. Null beyond that: show the absolute time.
export function relative(value: string | Date, now: Date): string | null {
  const at = asDate(value);
  if (!at) return null;
  const apart = at.getTime() - now.getTime();
  const size = Math.abs(apart);
  if (size > DAY) return null;
  const format = new Intl.RelativeTimeFormat(formatLocale(), { style: 'short', numeric: 'auto' });
  if (size < 45_000) return format.format(0, 'second');
  if (size < HOUR) return format.format(Math.round(apart / MINUTE), 'minute');
  return format.format(Math.round(apart / HOUR), 'hour');
}

export function asDate(value: string | Date | null | undefined): Date | null {
  if (value == null || value === '') return null;
  const at = value instanceof Date ? value : new Date(value);
  return Number.isNaN(at.getTime()) ? null : at;
}

export interface WallClock {
  year: number;
  month: number; // 1 to 12
  day: number;
  hour: number;
  minute: number;
  second: number;
}

export function partsIn(at: Date, zone: string): WallClock {
  const wall = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
  }).formatToParts(at);
  for (const { type, value } of parts) if (type in wall) wall[type as keyof WallClock] = parseInt(value, 10);
  return wall;
}

// The instant of a wall-clock time in a zone. A time in a gap moves forward by the gap; of a repeated time, the first counts.
export function instantOf(wall: Omit<WallClock, 'second'> & { second?: number }, zone: string): Date {
  const wanted = Date.UTC(wall.year, wall.month - 1, wall.day, wall.hour, wall.minute, wall.second ?? 0);
  const offset = (at: number) => {
    const seen = partsIn(new Date(at), zone);
    return Date.UTC(seen.year, seen.month - 1, seen.day, seen.hour, seen.minute, seen.second) - Math.floor(at / 1000) * 1000;
  };
  const before = wanted - offset(wanted - DAY);
  if (before + offset(before) === wanted) return new Date(before);
  const after = wanted - offset(wanted + DAY);
  if (after + offset(after) === wanted) return new Date(after);
  return new Date(before);
}

// Midnight at the start of the day of `at`, plus `days`.
export function startOfDay(at: Date, zone: string, days = 0): Date {
  const wall = partsIn(at, zone);
  return instantOf({ ...wall, day: wall.day + days, hour: 0, minute: 0, second: 0 }, zone);
}

export function startOfMonth(at: Date, zone: string, months = 0): Date {
  const wall = partsIn(at, zone);
  return instantOf({ year: wall.year, month: wall.month + months, day: 1, hour: 0, minute: 0, second: 0 }, zone);
}

// "September"
export function monthName(at: Date, zone: string): string {
  return new Intl.DateTimeFormat(formatLocale(), { timeZone: zone, month: 'long' }).format(at);
}

// Formats microseconds: "180 ms", "2.4 s".
export function duration(us: string | number | null | undefined): string {
  if (us == null || us === '' || us === '0' || us === 0) return '—';
  const ms = Number(BigInt(us)) / 1000;
  const [value, unit] = ms < 1000 ? [Math.round(ms), 'millisecond'] : [ms / 1000, 'second'];
  return new Intl.NumberFormat(formatLocale(), { style: 'unit', unit: unit as string, maximumSignificantDigits: 3 }).format(value as number);
}

// The day of an instant, for addresses and file names: "2026-09-27".
export function dayText(at: Date, zone: string): string {
  const { year, month, day } = partsIn(at, zone);
  return `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
}
