import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { queryClient } from '@/api/query';
import { postSession, type SignInState } from '@/api/session';
import { SecondStepForm } from '@/app/SignInForm';
import { Button, Form, Notice, Page, PasswordField, useFields } from '@/ui';
import { useLinkToken } from './token';

// Only the button uses the token: mail scanners open links too.
export default function ResetPasswordPage() {
  const token = useLinkToken();
  const navigate = useNavigate();
  const [challenge, setChallenge] = useState<string | null>(null);
  const done = () => {
    queryClient.clear();
    void navigate({ to: '/', replace: true });
  };
  const fields = useFields({ new_password: '' }, async (values) => {
    const answer = await postSession<SignInState>('resetPassword', { token, ...values });
    if (answer.state === 'SECOND_STEP') setChallenge(answer.challenge);
    else done();
  });
  const title = i18n.t({ id: 'auth.resetPassword.title', message: 'Set a new password' });
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
      <p>{i18n.t({ id: 'auth.resetPassword.lead', message: 'A new password ends all your sessions.' })}</p>
      <Form
        fields={fields}
        actions={
          <Button type="submit" kind="primary" busy={fields.busy} wide>
            {i18n.t({ id: 'auth.resetPassword.button', message: 'Set password' })}
          </Button>
        }
      >
        <PasswordField label={i18n.t({ id: 'auth.new_password', message: 'New password' })} hint={i18n.t({ id: 'auth.passwordHint', message: 'At least 10 characters' })} toggleLabel={i18n.t({ id: 'auth.showPassword', message: 'Show password' })} autoComplete="new-password" {...fields.bind('new_password')} />
      </Form>
    </Page>
  );
}
