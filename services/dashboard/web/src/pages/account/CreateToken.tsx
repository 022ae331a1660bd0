import { i18n } from '@lingui/core';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { usePerson } from '@/api/session';
import { idOf } from '@/api/types';
import { startOfDay, UTC } from '@/format/time';
import { Button, Dialog, DialogActions, DialogForm, ManyField, Notice, Secret, SelectField, TextField, useFields } from '@/ui';

const DAYS = ['7', '30', '90', '365'];

export function CreateToken({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [secret, setSecret] = useState('');
  const close = () => {
    setSecret('');
    onClose();
  };
  return (
    <Dialog opened={opened} onClose={close} title={secret ? i18n.t({ id: 'account.token.created', message: 'Token created' }) : i18n.t({ id: 'account.token.create', message: 'Create token' })} locked={secret !== ''}>
      {secret ? (
        <>
          <Notice tone="warn">{i18n.t({ id: 'account.token.once', message: 'Copy the token now. Tollgate stores only a hash and cannot show it again.' })}</Notice>
          <Secret value={secret} label={i18n.t({ id: 'account.token.secret', message: 'Access token' })} />
          <DialogActions>
            <Button kind="primary" onClick={close}>
              {i18n.t({ id: 'account.done', message: 'Done' })}
            </Button>
          </DialogActions>
        </>
      ) : (
        opened && <CreateForm onClose={close} onSecret={setSecret} />
      )}
    </Dialog>
  );
}

function CreateForm({ onClose, onSecret }: { onClose: () => void; onSecret: (secret: string) => void }) {
  const person = usePerson();
  const [requestId] = useState(newRequestId);
  const roles = [...new Set(person.memberships.map((one) => one.role as string)), 'admin', 'billing', 'developer', 'viewer', ...(person.platform_operator ? ['operator'] : [])];
  const fields = useFields({ displayName: '', roles: ['viewer'], workspaces: [] as string[], days: '30' }, async (values) => {
    if (values.roles.length === 0) return { roles: i18n.t({ id: 'account.token.noRole', message: 'Select at least one role.' }) };
    // A token lives at most a year from now, so the last day is shorter.
    const expireTime = new Date(startOfDay(new Date(), UTC, parseInt(values.days, 10)).getTime()).toISOString();
    const made = await unwrap(
      api.POST('/admin/v1/users/{user}/tokens', { params: { path: { user: 'me' }, query: { requestId } }, body: { displayName: values.displayName.trim(), scopes: [...values.roles, ...values.workspaces], expireTime } }),
    );
    void queryClient.invalidateQueries({ queryKey: ['tokens'] });
    if (made.secret) onSecret(made.secret);
    else onClose();
    return undefined;
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'account.token.create', message: 'Create token' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'account.token.name', message: 'Name' })} placeholder={i18n.t({ id: 'account.token.nameHint', message: 'For example terraform' })} autoFocus {...fields.bind('displayName')} />
      <ManyField label={i18n.t({ id: 'account.token.roles', message: 'Roles' })} hint={i18n.t({ id: 'account.token.rolesHint', message: 'The token can use only roles that you have yourself.' })} options={[...new Set(roles)].map((role) => ({ value: role, label: role }))} {...fields.bind('roles')} />
      <ManyField label={i18n.t({ id: 'account.token.workspaces', message: 'Workspaces' })} placeholder={i18n.t({ id: 'account.token.allWorkspaces', message: 'All your workspaces' })} options={person.memberships.map((one) => ({ value: one.workspace, label: idOf(one.workspace) }))} {...fields.bind('workspaces')} />
      <SelectField label={i18n.t({ id: 'account.token.expires', message: 'Expires in' })} options={DAYS.map((value) => ({ value, label: i18n.t({ id: 'account.token.days', message: '{count, plural, one {# day} other {# days}}', values: { count: parseInt(value, 10) } }) }))} {...fields.bind('days')} />
    </DialogForm>
  );
}
