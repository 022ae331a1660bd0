import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { tableProps } from '@/api/paging';
import { queryClient } from '@/api/query';
import { loadSession, usePerson } from '@/api/session';
import { idOf, type Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { IconPlus } from '@/icons';
import { ActionMenu, Button, Confirm, DataTable, Dialog, EmptyState, Filters, Page, StateChip, TextField, Time, type Column, type MenuAction } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import { ChangeRole } from './ChangeRole';
import { Invitations } from './Invitations';
import { Invite } from './Invite';
import { memberListQuery } from './queries';
import { managed, roleName } from './roles';

type Member = Schema<'Member'>;

export default function MembersPage() {
  const workspace = useWorkspace();
  const person = usePerson();
  const may = usePermissions(workspace);
  const navigate = useNavigate();
  const [state, set] = useSearchState((search) => ({ query: typeof search.query === 'string' ? search.query : '' }));
  const [inviting, setInviting] = useState(false);
  const [changing, setChanging] = useState<Member | null>(null);
  const [removing, setRemoving] = useState<Member | null>(null);
  const table = useInfiniteQuery({ ...memberListQuery(workspace, state.query), placeholderData: keepPreviousData });
  const own = person.memberships.find((one) => idOf(one.workspace) === workspace)?.role;
  const isSelf = (one: Member) => idOf(one.name) === idOf(person.name);
  const actions = (one: Member): MenuAction[] => {
    const list: MenuAction[] = [];
    if (own === 'owner') list.push({ label: i18n.t({ id: 'members.changeRole', message: 'Change role' }), onClick: () => setChanging(one) });
    if (isSelf(one)) list.push({ label: i18n.t({ id: 'members.leave', message: 'Leave workspace' }), danger: true, onClick: () => setRemoving(one) });
    else if (managed(own).some((role) => role === one.role)) list.push({ label: i18n.t({ id: 'members.remove', message: 'Remove member' }), danger: true, onClick: () => setRemoving(one) });
    return list;
  };
  const columns: Column<Member>[] = [
    {
      id: 'name',
      header: i18n.t({ id: 'members.column.name', message: 'Name' }),
      weight: 2,
      cell: (one) => (
        <>
          {one.displayName || one.email} {isSelf(one) && <span className="quiet">{i18n.t({ id: 'members.you', message: '(you)' })}</span>}
        </>
      ),
    },
    { id: 'email', header: i18n.t({ id: 'members.column.email', message: 'Email' }), weight: 2.2, wide: true, cell: (one) => one.email },
    { id: 'role', header: i18n.t({ id: 'members.column.role', message: 'Role' }), weight: 1.2, cell: (one) => roleName(one.role) },
    {
      id: 'totp',
      header: i18n.t({ id: 'members.column.totp', message: '2FA' }),
      weight: 1.2,
      wide: true,
      cell: (one) => (one.totpEnabled ? <StateChip tone="ok">{i18n.t({ id: 'members.totpOn', message: 'On' })}</StateChip> : <StateChip tone="quiet">{i18n.t({ id: 'members.totpOff', message: 'Off' })}</StateChip>),
    },
    { id: 'since', header: i18n.t({ id: 'members.column.since', message: 'Member since' }), weight: 1.4, wide: true, cell: (one) => <Time at={one.createTime} /> },
    {
      id: 'actions',
      header: i18n.t({ id: 'members.column.actions', message: 'Actions' }),
      headerHidden: true,
      weight: 0.5,
      align: 'end',
      cell: (one) => {
        const list = actions(one);
        return list.length > 0 ? <ActionMenu label={i18n.t({ id: 'members.actionsOf', message: 'Actions for {name}', values: { name: one.displayName || one.email } })} actions={list} /> : null;
      },
    },
  ];
  const self = removing !== null && isSelf(removing);
  const name = removing?.displayName || removing?.email || '';
  return (
    <Page
      title={i18n.t({ id: 'members.title', message: 'Members' })}
      subtitle={i18n.t({ id: 'members.subtitle', message: 'Members of this workspace and their roles' })}
      actions={
        may('InvitationService/CreateInvitation') && (
          <Button kind="primary" icon={IconPlus} onClick={() => setInviting(true)}>
            {i18n.t({ id: 'members.invite', message: 'Invite member' })}
          </Button>
        )
      }
    >
      <Filters>
        <TextField label={i18n.t({ id: 'members.search', message: 'Search' })} type="search" placeholder={i18n.t({ id: 'members.searchHint', message: 'Name or email' })} value={state.query} onChange={(query) => set({ query }, { replace: true })} />
      </Filters>
      <DataTable
        label={i18n.t({ id: 'members.title', message: 'Members' })}
        what={i18n.t({ id: 'members.what', message: 'the members' })}
        columns={columns}
        rowKey={(one) => one.name}
        empty={
          <EmptyState
            title={i18n.t({ id: 'members.noMatch', message: 'No members match “{query}”', values: { query: state.query } })}
            action={<Button onClick={() => set({ query: '' })}>{i18n.t({ id: 'members.clear', message: 'Clear search' })}</Button>}
          >
            {i18n.t({ id: 'members.noMatchText', message: 'The search matches the start of names and email addresses.' })}
          </EmptyState>
        }
        {...tableProps(table, (page) => page.members)}
      />
      {own !== 'owner' && <WhoCan workspace={workspace} roles={own === 'admin' ? ['owner'] : ['owner', 'admin']} />}
      {may('InvitationService/ListInvitations') && <Invitations workspace={workspace} mayDelete={may('InvitationService/DeleteInvitation')} />}
      <Invite workspace={workspace} own={person.platform_operator ? 'owner' : own} opened={inviting} onClose={() => setInviting(false)} />
      <Dialog opened={changing !== null} onClose={() => setChanging(null)} title={i18n.t({ id: 'members.changeRole', message: 'Change role' })}>
        {changing && <ChangeRole workspace={workspace} member={changing} onClose={() => setChanging(null)} />}
      </Dialog>
      <Confirm
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title={self ? i18n.t({ id: 'members.leave', message: 'Leave workspace' }) : i18n.t({ id: 'members.remove', message: 'Remove member' })}
        verb={self ? i18n.t({ id: 'members.leave', message: 'Leave workspace' }) : i18n.t({ id: 'members.remove', message: 'Remove member' })}
        danger
        typed={self ? workspace : name}
        act={async () => {
          if (!removing) return;
          await unwrap(api.DELETE('/admin/v1/workspaces/{workspace}/members/{member}', { params: { path: { workspace, member: idOf(removing.name) } } }));
          if (self) {
            await loadSession();
            void navigate({ to: paths.profile });
          } else await queryClient.invalidateQueries({ queryKey: ['members', workspace] });
        }}
      >
        {self
          ? i18n.t({ id: 'members.leaveText', message: 'You lose all access to this workspace and your sessions end. API keys that you created keep working. To return, you need a new invitation.' })
          : i18n.t({ id: 'members.removeText', message: '{name} loses all access to this workspace immediately, and all their sessions end. API keys that they created keep working. Revoke the keys that are no longer needed.', values: { name } })}
      </Confirm>
    </Page>
  );
}
