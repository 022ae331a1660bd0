import { nanos } from '@/format/money';

// Nano-USD of the month that count against the cap: what was spent, and what requests in progress hold.
export function usedOfCap(month: { monthSpentUsd?: string | null; monthHeldUsd?: string | null }): bigint {
  return (nanos(month.monthSpentUsd) ?? 0n) + (nanos(month.monthHeldUsd) ?? 0n);
}
