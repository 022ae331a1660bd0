// Exact token costs: a price per million tokens with six decimals is a whole number of pico-dollars per token.
const RATE = /^(0|[1-9][0-9]*)(?:\.([0-9]{1,6})0*)?$/;

function pico(usdPerMillion: string): bigint | null {
  const match = RATE.exec(usdPerMillion);
  return match ? BigInt(match[1]!) * 1_000_000n + BigInt((match[2] ?? '').padEnd(6, '0')) : null;
}

function fromPico(value: bigint): string {
  const digits = value.toString().padStart(13, '0');
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/0{1,10}$/, '');
}

export interface Priced {
  tokens: bigint;
  usdPerMillion: string;
}

// The cost in USD, exact to the pico-dollar: tokens times prices, summed, times the number of requests. Null: a price is
// invalid.
export function costOf(parts: readonly Priced[], times = 1n): string | null {
  let sum = 0n;
  for (const part of parts) {
    const rate = pico(part.usdPerMillion);
    if (rate === null) return null;
    sum += part.tokens * rate;
  }
  return fromPico(sum * times);
}

// The difference of two amounts of the API: "0.0002352" minus "0.000235" is "0.0000002". Null: one is not an amount.
export function difference(larger: string, smaller: string): string | null {
  const [a, b] = [picoOf(larger), picoOf(smaller)];
  return a === null || b === null || a < b ? null : fromPico(a - b);
}

const AMOUNT = /^(0|[1-9][0-9]*)(?:\.([0-9]{1,12}))?$/;

function picoOf(usd: string): bigint | null {
  const match = AMOUNT.exec(usd);
  return match ? BigInt(match[1]!) * 1_000_000_000_000n + BigInt((match[2] ?? '').padEnd(12, '0')) : null;
}

// Parses a typed count, with or without thousands separators. Null: not a count.
export function typedCount(text: string): bigint | null {
  const typed = text.trim();
  if (!/^(\d{1,15}|\d{1,3}([.,_'’ \u00a0\u202f]\d{3}){1,4})$/.test(typed)) return null;
  return BigInt(typed.replace(/\D/g, ''));
}
