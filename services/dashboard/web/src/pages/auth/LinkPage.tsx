import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { queryClient } from '@/api/query';
import { postSession, type SignInState } from '@/api/session';
import { SecondStepForm } from '@/app/SignInForm';
import { Button, Form, Notice, Page, useFields } from '@/ui';
import { useLinkToken } from './token';

// Only the button uses the token: mail scanners open links too.
export default function LinkPage() {
  const token = useLinkToken();
  const navigate = useNavigate();
  const [challenge, setChallenge] = useState<string | null>(null);
  const done = () => {
    queryClient.clear();
    void navigate({ to: '/', replace: true });
  };
  const fields = useFields({}, async (values) => {
    const answer = await postSession<SignInState>('link', { token, ...values });
    if (answer.state === 'SECOND_STEP') setChallenge(answer.challenge);
    else done();
  });
  const title = i18n.t({ id: 'auth.link.title', message: 'Sign in' });
  if (challenge !== null) {
    return (
      <Page title={title}>
        <SecondStepForm challenge={challenge} onDone={done} />
      </Page>
    );
  }
  if (!token) {
    return (
      <Page title={title}>
        <Notice tone="bad">{i18n.t({ id: 'auth.noToken', message: 'This link is incomplete. Open the full link again.' })}</Notice>
      </Page>
    );
  }
  return (
    <Page title={title}>
      <p>{i18n.t({ id: 'auth.link.lead', message: 'This link signs you in once.' })}</p>
      <Form
        fields={fields}
        actions={
          <Button type="submit" kind="primary" busy={fields.busy} wide>
            {i18n.t({ id: 'auth.link.button', message: 'Sign in' })}
          </Button>
        }
      >
        {null}
      </Form>
    </Page>
  );
}
