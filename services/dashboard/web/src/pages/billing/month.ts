import { monthName, UTC } from '@/format/time';

// Formats a statement's month: "2026-11" is "November 2026".
export function monthText(month: string): string {
  const at = new Date(`${month}-01T00:00:00Z`);
  return Number.isNaN(at.getTime()) ? month : `${monthName(at, UTC)} ${month.slice(0, 4)}`;
}
