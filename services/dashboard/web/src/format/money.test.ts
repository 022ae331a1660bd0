import { afterEach, describe, expect, it } from 'vitest';
import { setLocale } from './locale';
import { count, fromNanos, money, nanos, percent, share, shortCount, typedAmount } from './money';

afterEach(() => setLocale('en'));

describe('money', () => {
  it('keeps every digit of a long amount', () => {
    expect(money('12345678901234.123456789', 'exact')).toBe('$12,345,678,901,234.123456789');
  });
  it('shows totals with two decimals, half to even', () => {
    expect(money('482.115')).toBe('$482.12');
    expect(money('482.125')).toBe('$482.12');
    expect(money('0.00')).toBe('$0.00');
    expect(money('0.006')).toBe('$0.01');
    expect(money('0.0049')).toBe('<$0.01');
  });
  it('never shows more credit than there is', () => {
    expect(money('482.119999999', 'available')).toBe('$482.11');
    expect(money('-0.001', 'available')).toBe('−$0.01');
  });
  it('shows a request with all its digits, at least two', () => {
    expect(money('0.000123', 'exact')).toBe('$0.000123');
    expect(money('0.50', 'exact')).toBe('$0.50');
    expect(money('0.000000000123', 'exact')).toBe('$0.000000000123');
  });
  it('shows a column with six decimals, and smaller amounts with a less-than sign', () => {
    expect(money('0.000123', 'row')).toBe('$0.000123');
    expect(money('0.0000004', 'row')).toBe('<$0.000001');
    expect(money('0.00', 'row')).toBe('$0.000000');
  });
  it('writes a minus sign before the currency, and a plus for credits', () => {
    expect(money('-3.50')).toBe('−$3.50');
    expect(money('25.00', 'total', true)).toBe('+$25.00');
    expect(money('0.00', 'total', true)).toBe('$0.00');
  });
  it('shows an unknown amount as a dash, never as zero', () => {
    expect(money(undefined)).toBe('—');
    expect(money('')).toBe('—');
    expect(money('1e5')).toBe('—');
  });
  it('shortens an axis from ten dollars up', () => {
    expect(money('25.00', 'axis')).toBe('$25');
    expect(money('2.50', 'axis')).toBe('$2.50');
  });
  it('writes German amounts', () => {
    setLocale('de');
    expect(money('1234.5')).toBe('1.234,50\u00a0$');
    expect(money('-3.50')).toBe('−3,50\u00a0$');
  });
});

describe('nanos', () => {
  it('is exact, and comes back', () => {
    expect(nanos('0.000000001')).toBe(1n);
    expect(nanos('-1.5')).toBe(-1_500_000_000n);
    expect(fromNanos(nanos('12345678901234.123456789')!)).toBe('12345678901234.123456789');
    expect(fromNanos(1_500_000_000n)).toBe('1.50');
    expect(fromNanos(0n)).toBe('0.00');
    expect(fromNanos(-1n)).toBe('-0.000000001');
  });
  it('refuses what the API would not send', () => {
    for (const text of ['', '.5', '01', '1.', '+1', 'NaN', '1,5']) expect(nanos(text)).toBeNull();
  });
});

it('percentages have one decimal, and a small share is not shown as zero', () => {
  expect(percent(22n, 18204n)).toBe('0.1%');
  expect(percent(1n, 100000n)).toBe('<0.1%');
  expect(percent(0n, 100n)).toBe('0.0%');
  expect(percent(1n, 0n)).toBe('—');
  expect(percent(517_890_000_000n, 1_000_000_000_000n)).toBe('51.8%');
});

it('a share is between 0 and 1', () => {
  expect(share(5n, 10n)).toBe(0.5);
  expect(share(20n, 10n)).toBe(1);
  expect(share(1n, 0n)).toBe(0);
});

it('counts have separators, and are short in tiles', () => {
  expect(count('18204')).toBe('18,204');
  expect(count('9007199254740993')).toBe('9,007,199,254,740,993');
  expect(shortCount('41200000')).toBe('41.2\u00a0M');
  expect(shortCount('950')).toBe('950');
});

it('typed amounts are taken as they are or not at all', () => {
  expect(typedAmount('200')).toBe('200');
  expect(typedAmount(' $1,000.50 ')).toBe('1000.50');
  expect(typedAmount('12,5')).toBeNull();
  expect(typedAmount('1e3')).toBeNull();
});
