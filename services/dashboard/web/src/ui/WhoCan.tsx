// Names who can change settings that the person can only read.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import type { Role } from '@/api/session';
import { membersQuery } from '@/api/workspace';

export function WhoCan({ workspace, roles }: { workspace: string; roles: Role[] }) {
  const { data } = useQuery(membersQuery(workspace));
  const names = (data?.members ?? []).filter((one) => roles.includes(one.role as Role)).map((one) => one.displayName || one.email);
  if (names.length === 0) return null;
  const shown = names.length > 3 ? `${names.slice(0, 3).join(', ')}, …` : names.join(', ');
  return <p className="quiet">{roles.includes('billing') ? i18n.t({ id: 'whoCan.billing', message: 'Only owners and members with the Billing role can change this: {shown}', values: { shown } }) : roles.includes('admin') ? i18n.t({ id: 'whoCan.admin', message: 'Only owners and admins can change this: {shown}', values: { shown } }) : i18n.t({ id: 'whoCan.owner', message: 'Only owners can change this: {shown}', values: { shown } })}</p>;
}
