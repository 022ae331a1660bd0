// Usage as CSV: exact amounts, times in UTC, and a last line with the ledger's total.
import type { UsageRow } from './queries';

// Spreadsheets run cells that begin with these characters as formulas; an apostrophe makes them text. Our numbers never
// begin with them.
export function csvField(text: string): string {
  const safe = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n;\t]|^\s|\s$/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const USAGE_COLUMNS = [
  'start_time_utc', 'model', 'key', 'key_name', 'requests', 'free_requests', 'prompt_tokens', 'cached_tokens', 'cache_write_tokens',
  'completion_tokens', 'reasoning_tokens', 'cost_usd',
] as const;

function line(row: UsageRow, start: string, model: string, keyName: (key: string) => string): string {
  const { tokens } = row;
  return [
    start, model, row.key, row.key ? keyName(row.key) : '', row.requests, row.freeRequests, tokens?.promptTokens ?? '0', tokens?.cachedTokens ?? '0',
    tokens?.cacheWriteTokens ?? '0', tokens?.completionTokens ?? '0', tokens?.reasoningTokens ?? '0', row.costUsd,
  ].map(csvField).join(',');
}

export function usageCsv(rows: readonly UsageRow[], totals: UsageRow, keyName: (key: string) => string): string {
  const lines = rows.map((row) => line(row, row.startTime ?? '', row.other ? 'OTHER' : row.model, keyName));
  return [USAGE_COLUMNS.join(','), ...lines, line({ ...totals, key: '' }, 'TOTAL', '', keyName), ''].join('\r\n');
}

// "tollgate-usage-acme-2026-09-01-2026-09-30-Europe-Berlin.csv"
export function csvName(workspace: string, from: string, to: string, zone: string): string {
  return `tollgate-usage-${workspace}-${from}-${to}-${zone}.csv`.replace(/[^A-Za-z0-9._-]+/g, '-');
}

export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
