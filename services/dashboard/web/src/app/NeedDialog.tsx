import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import type { Need } from '@/api/gate';
import { postSession } from '@/api/session';
import { meQuery } from '@/api/workspace';
import { HrefButton } from '@/ui/controls';
import { Dialog } from '@/ui/Dialog';
import { PasswordField, TextField, useFields } from '@/ui/fields';
import { DialogForm } from '@/ui/forms';
import { SignInForm } from './SignInForm';
import { useSite } from './site';

export default function NeedDialog({ need, onDone }: { need: Need; onDone: (settled: boolean) => void }) {
  if (need === 'step-up') {
    return (
      <Dialog opened onClose={() => onDone(false)} title={i18n.t({ id: 'stepUp.title', message: 'Confirm your identity' })}>
        <StepUp onDone={onDone} />
      </Dialog>
    );
  }
  return (
    <Dialog opened onClose={() => onDone(false)} title={i18n.t({ id: 'session.endedTitle', message: 'Your session ended' })}>
      <p>{i18n.t({ id: 'session.ended', message: 'Sign in to continue. Your input is kept.' })}</p>
      <SignInForm onDone={() => onDone(true)} />
    </Dialog>
  );
}

function StepUp({ onDone }: { onDone: (settled: boolean) => void }) {
  const site = useSite();
  const { data: me } = useQuery(meQuery());
  const fields = useFields({ password: '', code: '' }, async ({ password, code }) => {
    await postSession('stepUp', { password, ...(code ? { code: code.trim() } : {}) });
    onDone(true);
  });
  if (me && !me.hasPassword && site?.oidc) {
    return (
      <>
        <p>{i18n.t({ id: 'stepUp.oidc', message: 'Your identity provider asks you to sign in again. You then return to this page. Unsaved input is lost.' })}</p>
        <HrefButton kind="primary" href={`/session/v1/oidc/start?step_up=1&return_path=${encodeURIComponent(location.pathname + location.search)}`}>
          {i18n.t({ id: 'stepUp.provider', message: 'Continue to provider' })}
        </HrefButton>
      </>
    );
  }
  return (
    <>
      <p>{i18n.t({ id: 'stepUp.why', message: 'This action requires a sign-in within the last five minutes.' })}</p>
      <DialogForm fields={fields} verb={i18n.t({ id: 'stepUp.confirm', message: 'Confirm' })} onCancel={() => onDone(false)}>
        <PasswordField label={i18n.t({ id: 'signIn.password', message: 'Password' })} toggleLabel={i18n.t({ id: 'signIn.showPassword', message: 'Show password' })} autoComplete="current-password" autoFocus {...fields.bind('password')} />
        {me?.totpEnabled && <TextField label={i18n.t({ id: 'signIn.code', message: 'Authentication code' })} autoComplete="one-time-code" inputMode="numeric" {...fields.bind('code')} />}
      </DialogForm>
    </>
  );
}
