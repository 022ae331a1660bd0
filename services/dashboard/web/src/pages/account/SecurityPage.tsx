import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { queryClient } from '@/api/query';
import { loadSession, postSession } from '@/api/session';
import { meQuery } from '@/api/workspace';
import { Button, Card, ErrorState, Form, Notice, PasswordField, RowSkeletons, toast, useFields } from '@/ui';
import css from './account.module.css';
import { AccountFrame } from './AccountFrame';
import { TotpCard } from './Totp';

export default function SecurityPage() {
  const query = useQuery(meQuery());
  const me = query.data;
  return (
    <AccountFrame title={i18n.t({ id: 'account.security.title', message: 'Security' })}>
      <div className={css.narrow}>
        {me === undefined ? (
          query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'account.profile.what', message: 'the profile' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={5} />
        ) : (
          <>
            <Card title={i18n.t({ id: 'account.password', message: 'Password' })}>
              <div className={css.stack}>
                {!me.hasPassword && <Notice>{i18n.t({ id: 'account.noPassword', message: 'This account has no password. You sign in with SSO or with a sign-in link.' })}</Notice>}
                <PasswordForm hasPassword={me.hasPassword} />
              </div>
            </Card>
            <TotpCard enabled={me.totpEnabled} />
          </>
        )}
      </div>
    </AccountFrame>
  );
}

function PasswordForm({ hasPassword }: { hasPassword: boolean }) {
  const fields = useFields({ current_password: '', new_password: '', again: '' }, async (values) => {
    if (values.new_password !== values.again) return { again: i18n.t({ id: 'account.notSame', message: 'The passwords do not match.' }) };
    await postSession('password', { current_password: values.current_password, new_password: values.new_password });
    await loadSession();
    fields.reset();
    void queryClient.invalidateQueries({ queryKey: meQuery().queryKey });
    toast(i18n.t({ id: 'account.passwordChanged', message: 'Password changed. Your other sessions have ended.' }));
    return undefined;
  });
  const show = i18n.t({ id: 'account.showPassword', message: 'Show password' });
  return (
    <Form
      fields={fields}
      actions={
        <Button type="submit" kind="primary" busy={fields.busy}>
          {i18n.t({ id: 'account.changePassword', message: 'Change password' })}
        </Button>
      }
    >
      {hasPassword && <PasswordField label={i18n.t({ id: 'account.current', message: 'Current password' })} toggleLabel={show} autoComplete="current-password" {...fields.bind('current_password')} />}
      <PasswordField label={i18n.t({ id: 'account.new', message: 'New password' })} hint={i18n.t({ id: 'account.newHint', message: 'Use a long password, for example several words.' })} toggleLabel={show} autoComplete="new-password" {...fields.bind('new_password')} />
      <PasswordField label={i18n.t({ id: 'account.again', message: 'Confirm new password' })} toggleLabel={show} autoComplete="new-password" {...fields.bind('again')} />
    </Form>
  );
}
