// The language of the pages: chosen, else the browser's.
export const LOCALES = ['en', 'de'] as const;
export type Locale = (typeof LOCALES)[number];

const KEY = 'tollgate-language';
let current: Locale = 'en';

export function locale(): Locale {
  return current;
}

// Numbers and times in English are written as in the United States.
export function formatLocale(): string {
  return current === 'de' ? 'de-DE' : 'en-US';
}

export function setLocale(next: Locale): void {
  current = next;
}

export function preferredLocale(): Locale {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    // Storage is off: the browser's language counts.
  }
  const wanted = [kept, ...navigator.languages].map((name) => name?.slice(0, 2));
  return LOCALES.find((name) => name === wanted.find((one) => LOCALES.some((known) => known === one))) ?? 'en';
}

export function keepLocale(next: Locale): void {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Kept for this page only.
  }
}
