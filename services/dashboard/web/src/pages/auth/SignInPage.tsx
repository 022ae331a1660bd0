import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useSession } from '@/api/session';
import { queryClient } from '@/api/query';
import { safeReturn } from '@/app/places';
import { useSearchState } from '@/app/search';
import { SignInForm } from '@/app/SignInForm';
import { Notice, Page } from '@/ui';
import { useEffect } from 'react';

// Texts for the failure reasons of a sign-in with a provider.
function problem(reason: string): string {
  if (reason === 'OIDC_NOT_FRESH') return i18n.t({ id: 'auth.notFresh', message: 'Your identity provider did not ask for your password again. Try again, or sign out of the provider first.' });
  if (reason === 'OIDC_OFF') return i18n.t({ id: 'auth.oidcOff', message: 'SSO is turned off.' });
  return i18n.t({ id: 'auth.providerFailed', message: 'Sign-in with SSO failed ({reason}).', values: { reason } });
}

export default function SignInPage() {
  const navigate = useNavigate();
  const session = useSession();
  const [search] = useSearchState((raw) => ({ to: safeReturn(raw.return), failed: typeof raw.failed === 'string' ? raw.failed : '' }));
  const done = () => {
    queryClient.clear();
    void navigate({ href: search.to, replace: true });
  };
  useEffect(() => {
    if (session) done();
  }, []);
  return (
    <Page title={i18n.t({ id: 'auth.signIn', message: 'Sign in' })}>
      {search.failed && (
        <Notice tone="bad" alert>
          {problem(search.failed)}
        </Notice>
      )}
      <SignInForm onDone={done} returnPath={search.to} />
    </Page>
  );
}
