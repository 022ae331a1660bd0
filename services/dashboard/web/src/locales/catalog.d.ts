declare module '@/locales/de.gen.mjs' {
  import type { Messages } from '@lingui/core';
  export const messages: Messages;
}
