import { i18n } from '@lingui/core';
import type { ReactNode } from 'react';
import { paths } from '@/app/paths';
import { LinkTabs, Page } from '@/ui';

export function AccountFrame({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Page title={title} actions={actions}>
      <LinkTabs
        label={i18n.t({ id: 'account.tabs', message: 'Account' })}
        tabs={[
          { to: paths.profile, label: i18n.t({ id: 'account.profile.title', message: 'Profile' }) },
          { to: paths.security, label: i18n.t({ id: 'account.security.title', message: 'Security' }) },
          { to: paths.sessions, label: i18n.t({ id: 'account.sessions.title', message: 'Sessions' }) },
          { to: paths.tokens, label: i18n.t({ id: 'account.tokens.title', message: 'Access tokens' }) },
        ]}
      />
      {children}
    </Page>
  );
}
