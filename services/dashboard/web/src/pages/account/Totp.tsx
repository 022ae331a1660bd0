import { i18n } from '@lingui/core';
import { useState } from 'react';
import { asApiError } from '@/api/errors';
import { settle } from '@/api/gate';
import { queryClient } from '@/api/query';
import { loadSession, postSession } from '@/api/session';
import { meQuery } from '@/api/workspace';
import { Button, Card, Confirm, Copy, Dialog, DialogActions, DialogForm, Failure, Notice, Secret, StateChip, TextField, useFields } from '@/ui';
import css from './account.module.css';
import { Qr } from './Qr';

// Calls of the session API that ask for a fresh sign-in, as calls of the admin API do.
async function fresh<T>(path: string, body: Record<string, string> = {}): Promise<T> {
  try {
    return await postSession<T>(path, body);
  } catch (error) {
    if (asApiError(error).reason !== 'STEP_UP_REQUIRED' || !(await settle('step-up'))) throw error;
    return postSession<T>(path, body);
  }
}

type Step = { secret: string; uri: string } | { codes: string[] };

export function TotpCard({ enabled }: { enabled: boolean }) {
  const [step, setStep] = useState<Step | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [disabling, setDisabling] = useState(false);
  const start = async () => {
    setBusy(true);
    setError(null);
    try {
      setStep(await fresh<{ secret: string; uri: string }>('totp/start'));
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const done = () => {
    setStep(null);
    void queryClient.invalidateQueries({ queryKey: meQuery().queryKey });
    void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  };
  return (
    <Card title={i18n.t({ id: 'account.totp', message: 'Two-factor authentication' })} subtitle={enabled ? <StateChip tone="ok">{i18n.t({ id: 'account.totp.on', message: 'On' })}</StateChip> : <StateChip tone="quiet">{i18n.t({ id: 'account.totp.off', message: 'Off' })}</StateChip>}>
      <div className={css.stack}>
        <p>{enabled ? i18n.t({ id: 'account.totp.onText', message: 'Sign-in requires a code from your authenticator app or one of your recovery codes.' }) : i18n.t({ id: 'account.totp.offText', message: 'Sign-in also requires a code from an authenticator app, so that a stolen password alone is not enough.' })}</p>
        {error != null && <Failure error={error} />}
        <div>
          {enabled ? (
            <Button onClick={() => setDisabling(true)}>{i18n.t({ id: 'account.totp.disable', message: 'Turn off' })}</Button>
          ) : (
            <Button kind="primary" busy={busy} onClick={() => void start()}>
              {i18n.t({ id: 'account.totp.enable', message: 'Turn on' })}
            </Button>
          )}
        </div>
      </div>
      <Dialog
        opened={step !== null}
        onClose={() => setStep(null)}
        locked={step !== null && 'codes' in step}
        title={step && 'codes' in step ? i18n.t({ id: 'account.totp.codes', message: 'Recovery codes' }) : i18n.t({ id: 'account.totp.enableTitle', message: 'Turn on two-factor authentication' })}
      >
        {step && ('codes' in step ? <Codes codes={step.codes} onDone={done} /> : <Scan start={step} onCancel={() => setStep(null)} onCodes={(codes) => setStep({ codes })} />)}
      </Dialog>
      <Confirm
        opened={disabling}
        onClose={() => setDisabling(false)}
        title={i18n.t({ id: 'account.totp.disableTitle', message: 'Turn off two-factor authentication' })}
        verb={i18n.t({ id: 'account.totp.disable', message: 'Turn off' })}
        danger
        act={async () => {
          await fresh('totp/disable');
          await queryClient.invalidateQueries({ queryKey: meQuery().queryKey });
        }}
      >
        {i18n.t({ id: 'account.totp.disableText', message: 'You then sign in with your password alone. Your recovery codes stop working.' })}
      </Confirm>
    </Card>
  );
}

function Scan({ start, onCancel, onCodes }: { start: { secret: string; uri: string }; onCancel: () => void; onCodes: (codes: string[]) => void }) {
  const fields = useFields({ code: '' }, async ({ code }) => {
    const answer = await fresh<{ recovery_codes: string[] }>('totp/confirm', { code: code.trim() });
    await loadSession();
    onCodes(answer.recovery_codes);
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'account.totp.enable', message: 'Turn on' })} onCancel={onCancel}>
      <p>{i18n.t({ id: 'account.totp.scan', message: 'Scan the QR code with your authenticator app, or enter the setup key there. Then enter the code from the app.' })}</p>
      <Qr text={start.uri} />
      <Secret value={start.secret} label={i18n.t({ id: 'account.totp.key', message: 'Setup key' })} />
      <TextField label={i18n.t({ id: 'account.totp.code', message: 'Authentication code' })} hint={i18n.t({ id: 'account.totp.codeHint', message: 'Six digits' })} autoComplete="one-time-code" inputMode="numeric" {...fields.bind('code')} />
    </DialogForm>
  );
}

function Codes({ codes, onDone }: { codes: string[]; onDone: () => void }) {
  return (
    <>
      <Notice tone="warn">{i18n.t({ id: 'account.totp.codesText', message: 'Keep these codes away from your phone. If you lose the app, each code signs you in once. They are not shown again. Your other sessions have ended.' })}</Notice>
      <ol className={css.codes}>
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ol>
      <DialogActions>
        <Copy value={codes.join('\n')} label={i18n.t({ id: 'account.totp.copyCodes', message: 'Copy codes' })} />
        <Button kind="primary" onClick={onDone}>
          {i18n.t({ id: 'account.totp.saved', message: 'I saved the recovery codes' })}
        </Button>
      </DialogActions>
    </>
  );
}
