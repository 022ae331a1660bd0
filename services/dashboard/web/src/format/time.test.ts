import { describe, expect, it } from 'vitest';
import { parseRange, resolve } from './range';
import { absolute, duration, instantOf, relative, startOfDay, startOfMonth } from './time';

const iso = (date: Date) => date.toISOString();

describe('days', () => {
  it('begin at midnight of the zone, also where it is 30 or 45 minutes off', () => {
    const at = new Date('2026-09-27T20:00:00Z');
    expect(iso(startOfDay(at, 'UTC'))).toBe('2026-09-27T00:00:00.000Z');
    expect(iso(startOfDay(at, 'Asia/Kolkata'))).toBe('2026-09-27T18:30:00.000Z');
    expect(iso(startOfDay(at, 'America/Los_Angeles'))).toBe('2026-09-27T07:00:00.000Z');
    expect(iso(startOfDay(at, 'Asia/Kathmandu'))).toBe('2026-09-27T18:15:00.000Z');
  });
  it('have 23 and 25 hours when the clocks change', () => {
    const hours = (day: string) => {
      const at = new Date(day);
      return (startOfDay(at, 'Europe/Berlin', 1).getTime() - startOfDay(at, 'Europe/Berlin').getTime()) / 3_600_000;
    };
    expect(hours('2026-03-29T12:00:00Z')).toBe(23);
    expect(hours('2026-10-25T12:00:00Z')).toBe(25);
  });
  it('without a midnight begin with the first instant that exists', () => {
    // Cairo goes from 00:00 to 01:00.
    expect(iso(startOfDay(new Date('2026-04-24T12:00:00Z'), 'Africa/Cairo'))).toBe('2026-04-23T22:00:00.000Z');
  });
  it('a time that exists twice is the first one', () => {
    expect(iso(instantOf({ year: 2026, month: 10, day: 25, hour: 2, minute: 30 }, 'Europe/Berlin'))).toBe('2026-10-25T00:30:00.000Z');
  });
});

it('months go over the end of a year', () => {
  expect(iso(startOfMonth(new Date('2026-12-31T23:30:00Z'), 'Europe/Berlin', 1))).toBe('2027-01-31T23:00:00.000Z');
  expect(iso(startOfMonth(new Date('2026-01-15T00:00:00Z'), 'UTC', -1))).toBe('2025-12-01T00:00:00.000Z');
});

describe('ranges', () => {
  const now = new Date('2026-09-28T03:00:00Z');
  it('today is that of the zone: west of UTC the evening is not empty', () => {
    expect(iso(resolve({ range: 'today' }, 'America/Los_Angeles', now).start)).toBe('2026-09-27T07:00:00.000Z');
  });
  it('a custom range ends after its last day', () => {
    const period = resolve({ range: 'custom', from: '2026-09-01', to: '2026-09-03' }, 'Europe/Berlin', now);
    expect([iso(period.start), iso(period.end)]).toEqual(['2026-08-31T22:00:00.000Z', '2026-09-03T22:00:00.000Z']);
  });
  it('invalid values in the address become the default', () => {
    expect(parseRange({ range: 'nope' })).toEqual({ range: '7d' });
    expect(parseRange({ range: 'custom', from: '../', to: 4 })).toEqual({ range: 'custom', from: undefined, to: undefined });
    expect(iso(resolve({ range: 'custom' }, 'UTC', now).start)).toBe('2026-09-22T00:00:00.000Z');
  });
});

describe('texts', () => {
  const now = new Date('2026-09-27T14:05:12Z');
  it('absolute times name month, second and zone, and the year when it is another', () => {
    expect(absolute('2026-09-27T14:05:12Z', 'UTC', 'second', now)).toBe('Sep 27, 14:05:12 UTC');
    expect(absolute('2025-09-27T00:00:00Z', 'UTC', 'minute', now)).toBe('Sep 27, 2025, 00:00 UTC');
    expect(absolute(null, 'UTC')).toBe('—');
  });
  it('relative times cover one day', () => {
    expect(relative('2026-09-27T14:03:12Z', now)).toBe('2 min. ago');
    expect(relative('2026-09-27T14:05:00Z', now)).toBe('now');
    expect(relative('2026-09-25T14:05:00Z', now)).toBeNull();
  });
  it('durations have three digits', () => {
    expect(duration('180400')).toBe('180 ms');
    expect(duration('2412000')).toBe('2.41 sec');
    expect(duration('0')).toBe('—');
  });
});
