import { formatter } from '@lingui/format-po';
import type { LinguiConfig } from '@lingui/conf';

// Texts are next to the pages that show them, to avoid merge conflicts. The build merges the German ones into one file;
// English comes from the source.
const config: LinguiConfig = {
  sourceLocale: 'en',
  locales: ['en', 'de'],
  format: formatter({ origins: false, explicitIdAsDefault: true }),
  orderBy: 'messageId',
  catalogs: [
    { path: '<rootDir>/src/locales/{locale}', include: ['<rootDir>/src/app', '<rootDir>/src/ui', '<rootDir>/src/api', '<rootDir>/src/format', '<rootDir>/src/main.tsx'] },
    { path: '<rootDir>/src/pages/{name}/locales/{locale}', include: ['<rootDir>/src/pages/{name}'] },
  ],
  catalogsMergePath: '<rootDir>/src/locales/{locale}.gen',
  compileNamespace: 'es',
};
export default config;
