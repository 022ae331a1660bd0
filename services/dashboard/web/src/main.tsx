import { i18n } from '@lingui/core';
import { I18nProvider } from '@lingui/react';
import { createTheme, localStorageColorSchemeManager, MantineProvider, mergeThemeOverrides } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query';
import { loadSession } from './api/session';
import { loadLanguage } from './app/language';
import { router } from './app/router';
import './theme/mantine.css';
import './theme/theme.gen.css';
import './theme/tokens.css';
import './theme/base.css';
import { theme } from './theme/theme';

const schemes = localStorageColorSchemeManager({ key: 'tollgate-scheme' });
// react-remove-scroll would write a style element. base.css locks the page instead.
const quiet = createTheme({
  components: {
    Modal: { defaultProps: { lockScroll: false } },
    Drawer: { defaultProps: { lockScroll: false } },
    Spotlight: { defaultProps: { lockScroll: false } },
  },
});
const merged = mergeThemeOverrides(theme, quiet);

// A new key renders everything again in the other language.
function App() {
  const language = useSyncExternalStore(
    (listener) => i18n.on('change', listener),
    () => i18n.locale,
  );
  return (
    <I18nProvider i18n={i18n}>
      <MantineProvider theme={merged} withCssVariables={false} withGlobalClasses={false} deduplicateInlineStyles colorSchemeManager={schemes} defaultColorScheme="auto">
        <QueryClientProvider client={queryClient}>
          <RouterProvider key={language} router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </I18nProvider>
  );
}

function Unreachable() {
  return (
    <main className="unreachable">
      <h1>{i18n.t({ id: 'app.unreachable', message: 'Tollgate is not responding' })}</h1>
      <p role="status">{i18n.t({ id: 'app.unreachableText', message: 'You are still signed in. This page opens automatically when Tollgate responds again.' })}</p>
    </main>
  );
}

// The server redirects here when the sign-in with a provider failed.
const failed = /^#\/sign-in\/([A-Z_]+)$/.exec(location.hash);
if (failed) history.replaceState(null, '', `/sign-in?failed=${failed[1]}`);

// The session decides the first page. While it cannot be loaded, the page retries and does not redirect to the sign-in.
const page = createRoot(document.getElementById('root')!);
await loadLanguage();
for (let wait = 1_000; !(await loadSession().then(() => true, () => false)); wait = Math.min(2 * wait, 15_000)) {
  page.render(<Unreachable />);
  await new Promise((done) => setTimeout(done, wait));
}
page.render(
  <StrictMode>
    <App />
  </StrictMode>,
);
