import { i18n } from '@lingui/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { loadSession, postSession, useSession, type SignInState } from '@/api/session';
import { SecondStepForm, SignInForm } from '@/app/SignInForm';
import { Button, Form, Notice, Page, PasswordField, TextField, useFields } from '@/ui';
import { TextButton } from '@/ui/states';
import { useLinkToken } from './token';

// Only the button uses the token: mail scanners open links too.
export default function InvitationPage() {
  const token = useLinkToken();
  const navigate = useNavigate();
  const session = useSession();
  const [challenge, setChallenge] = useState<string | null>(null);
  const [hasAccount, setHasAccount] = useState(false);
  const done = () => {
    queryClient.clear();
    void navigate({ to: '/', replace: true });
  };
  const fields = useFields({ display_name: '', password: '' }, async (values) => {
    const answer = await postSession<SignInState>('invitation', { token, ...values });
    if (answer.state === 'SECOND_STEP') setChallenge(answer.challenge);
    else done();
  });
  const title = i18n.t({ id: 'auth.invitation.title', message: 'Accept invitation' });
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
  if (session) {
    return (
      <Page title={title}>
        <Join token={token} name={session.user.display_name} onDone={done} />
      </Page>
    );
  }
  if (hasAccount) {
    return (
      <Page title={title}>
        <SignInForm onDone={() => void loadSession()} />
      </Page>
    );
  }
  return (
    <Page title={title}>
      <p>{i18n.t({ id: 'auth.invitation.lead', message: 'Choose a password to create your account.' })}</p>
      <Form
        fields={fields}
        actions={
          <Button type="submit" kind="primary" busy={fields.busy} wide>
            {i18n.t({ id: 'auth.invitation.button', message: 'Create account' })}
          </Button>
        }
      >
        <TextField label={i18n.t({ id: 'auth.display_name', message: 'Your name' })} autoComplete="name" autoFocus {...fields.bind('display_name')} />
        <PasswordField label={i18n.t({ id: 'auth.password', message: 'Password' })} hint={i18n.t({ id: 'auth.passwordHint', message: 'At least 10 characters' })} toggleLabel={i18n.t({ id: 'auth.showPassword', message: 'Show password' })} autoComplete="new-password" {...fields.bind('password')} />
      </Form>
      <TextButton onClick={() => setHasAccount(true)}>{i18n.t({ id: 'auth.invitation.hasAccount', message: 'I already have an account' })}</TextButton>
    </Page>
  );
}

// For a signed-in person: only adds the workspace to the account.
function Join({ token, name, onDone }: { token: string; name: string; onDone: () => void }) {
  const fields = useFields({}, async () => {
    await unwrap(api.POST('/admin/v1/invitations:accept', { body: { token } }));
    await loadSession();
    onDone();
  });
  return (
    <Form
      fields={fields}
      actions={
        <Button type="submit" kind="primary" busy={fields.busy} wide>
          {i18n.t({ id: 'auth.invitation.join', message: 'Accept invitation' })}
        </Button>
      }
    >
      <p>{i18n.t({ id: 'auth.invitation.as', message: 'You are signed in as {name}. The workspace is added to this account.', values: { name } })}</p>
    </Form>
  );
}
