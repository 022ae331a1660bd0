// The language of the pages: the chosen one, else the browser's.
export const LOCALES = ['en', 'de'] as const;
export type Locale = (typeof LOCALES)[number];

const KEY = 'tollgate-language';
let current: Locale = 'en';

export function locale(): Locale {
  return current;
}

// English uses the formats of the United States.
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
    // Without storage, the browser's language is used.
  }
  const wanted = [kept, ...navigator.languages].map((name) => name?.slice(0, 2));
  return LOCALES.find((name) => name === wanted.find((one) => LOCALES.some((known) => known === one))) ?? 'en';
}

export function keepLocale(next: Locale): void {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage, the choice lasts until a reload.
  }
}
