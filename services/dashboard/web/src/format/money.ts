// Amounts stay decimal text from the API to the screen: Intl formats text exactly, floats would lose digits. Comparing
// and drawing use integer nano-dollars.
import { formatLocale } from './locale';

export type MoneyStyle =
  | 'total' // 2 decimals, half-even: balances, sums
  | 'available' // 2 decimals, rounded down: never more than the balance
  | 'exact' // 2 to 9 decimals without trailing zeros: one request
  | 'row' // 6 decimals: a column of requests, averages
  | 'rate' // 2 to 6 decimals: USD per million tokens
  | 'axis'; // no decimals from 10 USD up

const DECIMAL = /^-?(0|[1-9][0-9]*)(\.[0-9]{1,12})?$/;

// Parses an amount of the API. Null: not an amount.
export function nanos(amount: string | null | undefined): bigint | null {
  if (amount == null || !DECIMAL.test(amount)) return null;
  const [whole = '0', part = ''] = amount.replace('-', '').split('.');
  const value = BigInt(whole) * 1_000_000_000n + BigInt(part.padEnd(9, '0').slice(0, 9));
  return amount.startsWith('-') ? -value : value;
}

// A cost that an answer of the API has as a JSON number, to the nano-dollar and without an exponent.
export function fromNumber(usd: number): string {
  return usd.toFixed(9).replace(/\.?0+$/, '');
}

export function fromNanos(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(10, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/0{1,7}$/, '');
}

function digitsOf(style: MoneyStyle, amount: string): Intl.NumberFormatOptions {
  switch (style) {
    case 'total':
      return { minimumFractionDigits: 2, maximumFractionDigits: 2, roundingMode: 'halfEven' } as Intl.NumberFormatOptions;
    case 'available':
      return { minimumFractionDigits: 2, maximumFractionDigits: 2, roundingMode: 'floor' } as Intl.NumberFormatOptions;
    case 'exact':
      return { minimumFractionDigits: 2, maximumFractionDigits: 12 };
    case 'row':
      return { minimumFractionDigits: 6, maximumFractionDigits: 6, roundingMode: 'halfEven' } as Intl.NumberFormatOptions;
    case 'rate':
      return { minimumFractionDigits: 2, maximumFractionDigits: 6 };
    case 'axis': {
      const large = (nanos(amount) ?? 0n) >= 10_000_000_000n;
      return { minimumFractionDigits: large ? 0 : 2, maximumFractionDigits: large ? 0 : 2 };
    }
  }
}

// Formats an amount; "—" without one. plus: shows a credit as "+$25.00".
export function money(amount: string | null | undefined, style: MoneyStyle = 'total', plus = false): string {
  const value = nanos(amount);
  if (amount == null || value === null) return '—';
  // An amount below one cent must not look like zero.
  if (style === 'total' && value > 0n && value <= 5_000_000n) return `<${money('0.01', style, plus)}`;
  // 0.0000005 is the smallest amount that does not round to zero in a row.
  if (style === 'row' && value > 0n && value < 500n) return `<${money('0.000001', 'row')}`;
  const format = new Intl.NumberFormat(formatLocale(), {
    style: 'currency',
    currency: 'USD',
    signDisplay: plus ? 'exceptZero' : 'negative',
    ...digitsOf(style, amount),
  } as Intl.NumberFormatOptions);
  // Intl writes an ASCII hyphen in English.
  return format
    .formatToParts(amount as unknown as number)
    .map((part) => (part.type === 'minusSign' ? '−' : part.value))
    .join('');
}

// part of whole in percent, with one decimal; "—" if the whole is zero.
export function percent(part: bigint, whole: bigint): string {
  if (whole <= 0n) return '—';
  const format = (tenths: bigint) =>
    new Intl.NumberFormat(formatLocale(), { style: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(
      fromNanos((tenths * 1_000_000_000n) / 1000n) as unknown as number,
    );
  const tenths = (part * 2000n + whole) / (whole * 2n);
  if (part > 0n && tenths === 0n) return `<${format(1n)}`;
  return format(tenths);
}

// The share from 0 to 1, for the width of a bar.
export function share(part: bigint, whole: bigint): number {
  if (whole <= 0n) return 0;
  const parts = (part * 10_000n) / whole;
  return Number(parts > 10_000n ? 10_000n : parts < 0n ? 0n : parts) / 10_000;
}

// Formats a count with separators.
export function count(value: string | number | bigint | null | undefined): string {
  if (value == null || value === '') return '—';
  return new Intl.NumberFormat(formatLocale()).format(value as number);
}

// Formats a count for a tile: 41.2 M.
export function shortCount(value: string | number | bigint | null | undefined): string {
  if (value == null || value === '') return '—';
  return new Intl.NumberFormat(formatLocale(), { notation: 'compact', maximumSignificantDigits: 3 })
    .formatToParts(value as number)
    .map((part) => (part.type === 'compact' ? `\u00a0${part.value}` : part.value))
    .join('')
    .replaceAll('\u00a0\u00a0', '\u00a0');
}

// Converts a typed amount to the API's form. Null: not an amount.
export function typedAmount(text: string): string | null {
  const trimmed = text.trim().replace(/^\$/, '').replace(/,(?=\d{3}(\D|$))/g, '');
  return DECIMAL.test(trimmed) ? trimmed : null;
}
