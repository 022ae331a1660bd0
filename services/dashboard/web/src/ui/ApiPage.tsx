import { i18n } from '@lingui/core';
import { Page } from './Page';
import { Code } from './Secret';
import { Card } from './states';

// A page whose answer is so far in the admin API only. It says where, and is in no navigation (app/navigation.ts).
export function ApiPage({ title, calls }: { title: string; calls: string[] }) {
  return (
    <Page title={title}>
      <Card>
        <p>{i18n.t({ id: 'apiPage.text', message: 'This is in the admin API, for a person who is signed in or has an access token:' })}</p>
        <Code label={title} text={calls.join('\n')} />
      </Card>
    </Page>
  );
}
