import { createContext, useContext, useSyncExternalStore, type ReactNode } from 'react';
import { absolute, asDate, relative, UTC } from '@/format/time';

// The time zone of a page: for ranges, axes, tables and tooltips.
const Zone = createContext<string>(UTC);

export function ZoneProvider({ zone, children }: { zone: string; children: ReactNode }) {
  return <Zone.Provider value={zone}>{children}</Zone.Provider>;
}

export function useZone(): string {
  return useContext(Zone);
}

// One clock for all relative times; it stops while the page is hidden.
const TICK = 30_000;
let now = new Date();
let timer: ReturnType<typeof setInterval> | null = null;
const listeners = new Set<() => void>();

function tick(): void {
  if (document.hidden) return;
  now = new Date();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    now = new Date();
    timer = setInterval(tick, TICK);
    document.addEventListener('visibilitychange', tick);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    document.removeEventListener('visibilitychange', tick);
  };
}

export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}

// In lists: relative within a day, exact on hover and focus. exact: always absolute, for billing, audit and receipts.
export function Time({ at, exact, none = '—' }: { at: string | null | undefined; exact?: boolean; none?: ReactNode }) {
  const zone = useZone();
  const current = useNow();
  const date = asDate(at);
  if (!date) return <>{none}</>;
  const full = absolute(date, zone, 'second', current);
  const short = exact ? null : relative(date, current);
  return (
    <time dateTime={date.toISOString()} title={full} className="num">
      {short ?? (exact ? full : absolute(date, zone, 'minute', current))}
    </time>
  );
}
