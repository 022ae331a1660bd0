// Names of refusals, for tiles and notices.
import type { Schema } from './types';

// The code that the caller got and the reason, if the code has several: "rate_limited: concurrency".
export function whyRefused({ code, reason }: Schema<'SummaryRefusal'>): string {
  return reason === '' ? code : `${code}: ${reason}`;
}
