import { i18n } from '@lingui/core';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import { keepLocale, preferredLocale, setLocale, type Locale } from '@/format/locale';

// English is in the source. Its ICU messages are compiled on first use.
i18n.setMessagesCompiler(compileMessage);

export async function loadLanguage(next: Locale = preferredLocale()): Promise<void> {
  const messages = next === 'de' ? (await import('@/locales/de.gen.mjs')).messages : {};
  setLocale(next);
  document.documentElement.lang = next;
  i18n.loadAndActivate({ locale: next, messages });
}

export async function switchLanguage(next: Locale): Promise<void> {
  keepLocale(next);
  await loadLanguage(next);
}
