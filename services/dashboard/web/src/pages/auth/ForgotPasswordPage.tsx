import { i18n } from '@lingui/core';
import { useState } from 'react';
import { postSession } from '@/api/session';
import { paths } from '@/app/paths';
import { useSite } from '@/app/site';
import { Button, Form, Link, Notice, Page, TextField, useFields } from '@/ui';

export default function ForgotPasswordPage() {
  const site = useSite();
  const [sentTo, setSentTo] = useState('');
  const fields = useFields({ email: '' }, async ({ email }) => {
    await postSession('forgotPassword', { email: email.trim() });
    setSentTo(email.trim());
  });
  const title = i18n.t({ id: 'auth.forgot', message: 'Reset your password' });
  const back = <Link to={paths.signIn}>{i18n.t({ id: 'auth.backToSignIn', message: 'Back to sign-in' })}</Link>;
  if (site && !site.mail) {
    return (
      <Page title={title}>
        <Notice>{i18n.t({ id: 'auth.mailOff', message: 'This installation does not send email. Ask an operator for a sign-in link.' })}</Notice>
        {back}
      </Page>
    );
  }
  if (sentTo) {
    return (
      <Page title={title}>
        <Notice tone="ok">{i18n.t({ id: 'auth.mailSent', message: 'If {email} has an account, an email with a link is on its way. The link works once and expires after one hour.', values: { email: sentTo } })}</Notice>
        {back}
      </Page>
    );
  }
  return (
    <Page title={title}>
      <p>{i18n.t({ id: 'auth.forgotText', message: 'Tollgate emails you a link to set a new password.' })}</p>
      <Form
        fields={fields}
        actions={
          <Button type="submit" kind="primary" busy={fields.busy} wide>
            {i18n.t({ id: 'auth.sendLink', message: 'Send link' })}
          </Button>
        }
      >
        <TextField label={i18n.t({ id: 'auth.email', message: 'Email' })} type="email" autoComplete="username" autoFocus {...fields.bind('email')} />
        {back}
      </Form>
    </Page>
  );
}
