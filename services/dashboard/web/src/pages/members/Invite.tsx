import { i18n } from '@lingui/core';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import type { Role } from '@/api/session';
import { Button, Dialog, DialogActions, DialogForm, Notice, Secret, SelectField, TextField, useFields } from '@/ui';
import { managed, roleName, roleText } from './roles';

interface Made {
  email: string;
  link: string; // empty: it was sent by email
}

// The link is shown once, and only if no mail server sends it.
export function Invite({ workspace, own, opened, onClose }: { workspace: string; own: Role | undefined; opened: boolean; onClose: () => void }) {
  const [made, setMade] = useState<Made | null>(null);
  const close = () => {
    setMade(null);
    onClose();
  };
  const title = made ? i18n.t({ id: 'members.invited', message: 'Invitation created' }) : i18n.t({ id: 'members.inviteTitle', message: 'Invite member' });
  return (
    <Dialog opened={opened} onClose={close} title={title} locked={made !== null && made.link !== ''}>
      {made ? (
        <>
          {made.link ? (
            <>
              <Notice tone="warn">{i18n.t({ id: 'members.linkOnce', message: 'Send this link to {email}. It works once, expires after seven days, and is not shown again.', values: { email: made.email } })}</Notice>
              <Secret value={made.link} label={i18n.t({ id: 'members.link', message: 'Invitation link' })} />
            </>
          ) : (
            <p>{i18n.t({ id: 'members.mailed', message: 'An email with the link is on its way to {email}. The link works once and expires after seven days.', values: { email: made.email } })}</p>
          )}
          <DialogActions>
            <Button kind="primary" onClick={close}>
              {i18n.t({ id: 'members.done', message: 'Done' })}
            </Button>
          </DialogActions>
        </>
      ) : (
        opened && <InviteForm workspace={workspace} own={own} onClose={close} onMade={setMade} />
      )}
    </Dialog>
  );
}

function InviteForm({ workspace, own, onClose, onMade }: { workspace: string; own: Role | undefined; onClose: () => void; onMade: (made: Made) => void }) {
  const [requestId] = useState(newRequestId);
  const fields = useFields({ email: '', role: 'developer' }, async (values) => {
    const email = values.email.trim();
    const answer = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/invitations', { params: { path: { workspace }, query: { requestId } }, body: { email, role: values.role } }));
    void queryClient.invalidateQueries({ queryKey: ['invitations', workspace] });
    onMade({ email, link: answer.acceptPath ? location.origin + answer.acceptPath : '' });
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'members.invite', message: 'Invite member' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'members.column.email', message: 'Email' })} type="email" autoFocus {...fields.bind('email')} />
      <SelectField label={i18n.t({ id: 'members.column.role', message: 'Role' })} hint={roleText(fields.values.role as Role)} options={managed(own).map((role) => ({ value: role, label: roleName(role) }))} {...fields.bind('role')} />
    </DialogForm>
  );
}
