import { i18n } from '@lingui/core';
import { useState } from 'react';
import { postSession, type SignInState } from '@/api/session';
import { Button, HrefButton, Link } from '@/ui/controls';
import { Form, PasswordField, TextField, useFields } from '@/ui/fields';
import { TextButton } from '@/ui/states';
import { paths } from './paths';
import { useSite } from './site';

interface SignInFormProps {
  onDone: () => void;
  returnPath?: string;
}

// Email and password, then the second step if the account has one; or SSO.
export function SignInForm({ onDone, returnPath }: SignInFormProps) {
  const [challenge, setChallenge] = useState<string | null>(null);
  const next = (state: SignInState) => (state.state === 'SECOND_STEP' ? setChallenge(state.challenge) : onDone());
  if (challenge !== null) return <SecondStepForm challenge={challenge} onDone={onDone} onBack={() => setChallenge(null)} />;
  return <PasswordForm next={next} returnPath={returnPath} />;
}

function PasswordForm({ next, returnPath }: { next: (state: SignInState) => void; returnPath?: string }) {
  const site = useSite();
  const fields = useFields({ email: '', password: '' }, async (values) => next(await postSession('signIn', { ...values, email: values.email.trim() })));
  return (
    <Form
      fields={fields}
      actions={
        <Button type="submit" kind="primary" busy={fields.busy} wide>
          {i18n.t({ id: 'signIn.button', message: 'Sign in' })}
        </Button>
      }
    >
      {site?.oidc && <HrefButton href={`/session/v1/oidc/start?return_path=${encodeURIComponent(returnPath ?? location.pathname)}`}>{i18n.t({ id: 'signIn.oidc', message: 'Sign in with SSO' })}</HrefButton>}
      <TextField label={i18n.t({ id: 'signIn.email', message: 'Email' })} type="email" autoComplete="username" autoFocus {...fields.bind('email')} />
      <PasswordField label={i18n.t({ id: 'signIn.password', message: 'Password' })} toggleLabel={i18n.t({ id: 'signIn.showPassword', message: 'Show password' })} autoComplete="current-password" {...fields.bind('password')} />
      <Link to={paths.forgotPassword}>{i18n.t({ id: 'signIn.forgot', message: 'Forgot your password?' })}</Link>
    </Form>
  );
}

export function SecondStepForm({ challenge, onDone, onBack }: { challenge: string; onDone: () => void; onBack?: () => void }) {
  const [recovery, setRecovery] = useState(false);
  const fields = useFields({ code: '', recovery_code: '' }, async ({ code, recovery_code }) => {
    await postSession('secondStep', { challenge, ...(recovery ? { recovery_code: recovery_code.trim() } : { code: code.trim() }) });
    onDone();
  });
  return (
    <Form
      fields={fields}
      actions={
        <>
          {onBack && <Button onClick={onBack}>{i18n.t({ id: 'action.back', message: 'Back' })}</Button>}
          <Button type="submit" kind="primary" busy={fields.busy}>
            {i18n.t({ id: 'signIn.button', message: 'Sign in' })}
          </Button>
        </>
      }
    >
      {recovery ? (
        <TextField key="recovery" label={i18n.t({ id: 'signIn.recovery', message: 'Recovery code' })} autoFocus mono {...fields.bind('recovery_code')} />
      ) : (
        <TextField key="code" label={i18n.t({ id: 'signIn.code', message: 'Authentication code' })} hint={i18n.t({ id: 'signIn.codeHint', message: 'Six digits from your authenticator app' })} autoComplete="one-time-code" inputMode="numeric" autoFocus {...fields.bind('code')} />
      )}
      <div>
        <TextButton onClick={() => setRecovery(!recovery)}>
          {recovery ? i18n.t({ id: 'signIn.useCode', message: 'Use your authenticator app' }) : i18n.t({ id: 'signIn.useRecovery', message: 'Use a recovery code' })}
        </TextButton>
      </div>
    </Form>
  );
}
