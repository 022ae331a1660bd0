import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { queryClient } from '@/api/query';
import { postSession, type SignInState } from '@/api/session';
import { SecondStepForm } from '@/app/SignInForm';
import { Button, Form, Notice, Page, PasswordField, TextField, useFields } from '@/ui';
import { useLinkToken } from './token';

// Opening the page uses nothing up: mail scanners open links, too. Only the button does.
export default function InvitationPage() {
  const token = useLinkToken();
  const navigate = useNavigate();
  const [challenge, setChallenge] = useState<string | null>(null);
  const done = () => {
    queryClient.clear();
    void navigate({ to: '/', replace: true });
  };
  const fields = useFields({ display_name: '', password: '' }, async (values) => {
    const answer = await postSession<SignInState>('invitation', { token, ...values });
    if (answer.state === 'SECOND_STEP') setChallenge(answer.challenge);
    else done();
  });
  const title = i18n.t({ id: 'auth.invitation.title', message: 'Accept the invitation' });
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
        <Notice tone="bad">{i18n.t({ id: 'auth.noToken', message: 'The address has no token: open the whole link again.' })}</Notice>
      </Page>
    );
  }
  return (
    <Page title={title}>
      <p>{i18n.t({ id: 'auth.invitation.lead', message: 'Choose a password to make your account. If you have one already, sign in with it and accept the invitation there.' })}</p>
      <Form
        fields={fields}
        actions={
          <Button type="submit" kind="primary" busy={fields.busy} wide>
            {i18n.t({ id: 'auth.invitation.button', message: 'Make the account' })}
          </Button>
        }
      >
        <TextField label={i18n.t({ id: 'auth.display_name', message: 'Your name' })} autoComplete="name" autoFocus {...fields.bind('display_name')} />
        <PasswordField label={i18n.t({ id: 'auth.password', message: 'Password' })} hint={i18n.t({ id: 'auth.passwordHint', message: 'At least 10 characters' })} toggleLabel={i18n.t({ id: 'auth.showPassword', message: 'Show password' })} autoComplete="new-password" {...fields.bind('password')} />
      </Form>
    </Page>
  );
}
