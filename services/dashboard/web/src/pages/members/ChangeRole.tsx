import { i18n } from '@lingui/core';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import type { Role } from '@/api/session';
import { idOf, type Schema } from '@/api/types';
import { DialogForm, SelectField, toast, useFields } from '@/ui';
import { roleName, ROLES, roleText } from './roles';

export function ChangeRole({ workspace, member, onClose }: { workspace: string; member: Schema<'Member'>; onClose: () => void }) {
  const name = member.displayName || member.email;
  const fields = useFields({ role: member.role }, async ({ role }) => {
    await unwrap(api.PATCH('/admin/v1/workspaces/{workspace}/members/{member}', { params: { path: { workspace, member: idOf(member.name) }, query: { updateMask: 'role' } }, body: { role } }));
    await queryClient.invalidateQueries({ queryKey: ['members', workspace] });
    toast(i18n.t({ id: 'members.roleChanged', message: '{name} now has the role {role}', values: { name, role: roleName(role) } }));
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'members.changeRole', message: 'Change role' })} onCancel={onClose} disabledReason={fields.values.role === member.role ? i18n.t({ id: 'members.sameRole', message: 'Select a different role' }) : undefined}>
      <p>{i18n.t({ id: 'members.changeText', message: 'The new role applies immediately. All sessions of {name} end.', values: { name } })}</p>
      <SelectField label={i18n.t({ id: 'members.column.role', message: 'Role' })} hint={roleText(fields.values.role as Role)} options={ROLES.map((role) => ({ value: role, label: roleName(role) }))} autoFocus {...fields.bind('role')} />
    </DialogForm>
  );
}
