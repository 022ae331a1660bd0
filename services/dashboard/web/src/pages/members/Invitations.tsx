import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { tableProps } from '@/api/paging';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { Button, Confirm, DataTable, Time, type Column } from '@/ui';
import { invitationsQuery } from './queries';
import { roleName } from './roles';

type Invitation = Schema<'Invitation'>;

// The open invitations. Renders nothing without any.
export function Invitations({ workspace, mayDelete }: { workspace: string; mayDelete: boolean }) {
  const query = useInfiniteQuery(invitationsQuery(workspace));
  const [withdrawing, setWithdrawing] = useState<Invitation | null>(null);
  const table = tableProps(query, (page) => page.invitations);
  if (!query.error && (table.rows ?? []).length === 0) return null;
  const columns: Column<Invitation>[] = [
    { id: 'email', header: i18n.t({ id: 'members.column.email', message: 'Email' }), weight: 2.2, cell: (one) => one.email },
    { id: 'role', header: i18n.t({ id: 'members.column.role', message: 'Role' }), weight: 1.2, cell: (one) => roleName(one.role) },
    { id: 'made', header: i18n.t({ id: 'members.column.invited', message: 'Invited' }), weight: 1.4, wide: true, cell: (one) => <Time at={one.createTime} /> },
    { id: 'expires', header: i18n.t({ id: 'members.column.expires', message: 'Expires' }), weight: 1.4, wide: true, cell: (one) => <Time at={one.expireTime} /> },
    {
      id: 'actions',
      header: i18n.t({ id: 'members.column.actions', message: 'Actions' }),
      headerHidden: true,
      weight: 1.2,
      align: 'end',
      cell: (one) =>
        mayDelete ? (
          <Button small kind="plain" onClick={() => setWithdrawing(one)}>
            {i18n.t({ id: 'members.withdraw', message: 'Withdraw' })}
          </Button>
        ) : null,
    },
  ];
  return (
    <>
      <h2>{i18n.t({ id: 'members.invitations', message: 'Open invitations' })}</h2>
      <DataTable label={i18n.t({ id: 'members.invitations', message: 'Open invitations' })} what={i18n.t({ id: 'members.invitations.what', message: 'the invitations' })} columns={columns} rowKey={(one) => one.name} empty={null} {...table} />
      <Confirm
        opened={withdrawing !== null}
        onClose={() => setWithdrawing(null)}
        title={i18n.t({ id: 'members.withdrawTitle', message: 'Withdraw invitation' })}
        verb={i18n.t({ id: 'members.withdraw', message: 'Withdraw' })}
        danger
        act={async () => {
          if (withdrawing) await unwrap(api.DELETE('/admin/v1/workspaces/{workspace}/invitations/{invitation}', { params: { path: { workspace, invitation: idOf(withdrawing.name) } } }));
          await queryClient.invalidateQueries({ queryKey: ['invitations', workspace] });
        }}
      >
        {i18n.t({ id: 'members.withdrawText', message: 'The link that {email} received stops working.', values: { email: withdrawing?.email ?? '' } })}
      </Confirm>
    </>
  );
}
