import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { usePerson } from '@/api/session';
import { idOf } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { IconPlus } from '@/icons';
import { Button, CheckboxField, Confirm, DataTable, Dialog, DialogActions, DialogForm, EmptyState, Facts, Link, Page, Secret, SidePanel, StateChip, TextField, Time, useFields, type Column } from '@/ui';
import { paths } from '@/app/paths';
import css from './operator.module.css';
import { useChanged } from './parts';
import { createSignInLink, createUser, resetTotp, updateUser, usersQuery, type User } from './queries';

const absolute = (path: string) => new URL(path, location.origin).href;

export default function PeoplePage() {
  const may = usePermissions(null);
  const [search, setSearch] = useSearchState((raw) => ({ open: typeof raw.open === 'string' ? raw.open : '' }));
  const [adding, setAdding] = useState(false);
  const query = useInfiniteQuery(usersQuery());
  const rows = query.data?.pages.flatMap((page) => page.users);
  const open = rows?.find((user) => idOf(user.name) === search.open);
  return (
    <Page
      title={i18n.t({ id: 'operator.people.title', message: 'Users' })}
      subtitle={i18n.t({ id: 'operator.peopleText', message: 'Everyone who can sign in to this installation.' })}
      actions={may('UserService/CreateUser') && <Button kind="primary" icon={IconPlus} onClick={() => setAdding(true)}>{i18n.t({ id: 'operator.addPerson', message: 'Add user' })}</Button>}
    >
      <DataTable<User>
        label={i18n.t({ id: 'operator.people.title', message: 'Users' })}
        what={i18n.t({ id: 'operator.peopleWhat', message: 'the users' })}
        columns={columns()}
        rows={rows}
        rowKey={(user) => user.name}
        onOpen={(user) => setSearch({ open: idOf(user.name) })}
        openKey={open?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noPeople', message: 'No users yet' })} />}
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={open ? open.displayName || open.email : ''}>
        {open && <PersonPanel user={open} />}
      </SidePanel>
      <AddDialog opened={adding} onClose={() => setAdding(false)} />
    </Page>
  );
}

function UserState({ user }: { user: User }) {
  return user.state === 'USER_STATE_DISABLED' ? <StateChip tone="quiet">{i18n.t({ id: 'operator.userDisabled', message: 'Disabled' })}</StateChip> : <StateChip tone="ok">{i18n.t({ id: 'operator.userActive', message: 'Active' })}</StateChip>;
}

const yesNo = (yes: boolean) => (yes ? i18n.t({ id: 'operator.yes', message: 'Yes' }) : i18n.t({ id: 'operator.no', message: 'No' }));

function columns(): Column<User>[] {
  return [
    { id: 'name', header: i18n.t({ id: 'operator.name', message: 'Name' }), weight: 1.5, cell: (user) => user.displayName || user.email },
    { id: 'email', header: i18n.t({ id: 'operator.email', message: 'Email' }), weight: 1.8, wide: true, cell: (user) => user.email },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1, cell: (user) => <UserState user={user} /> },
    { id: 'operator', header: i18n.t({ id: 'operator.operator', message: 'Operator' }), weight: 0.8, cell: (user) => yesNo(user.platformOperator) },
    { id: 'totp', header: i18n.t({ id: 'operator.secondStep', message: '2FA' }), weight: 0.9, wide: true, cell: (user) => yesNo(user.totpEnabled) },
    { id: 'memberships', header: i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' }), weight: 1.5, wide: true, cell: (user) => user.memberships.map((one) => idOf(one.workspace)).join(', ') || '—' },
    { id: 'created', header: i18n.t({ id: 'operator.created', message: 'Created' }), weight: 1, wide: true, cell: (user) => <Time at={user.createTime} /> },
  ];
}

type Act = 'link' | 'totp' | 'disable' | 'enable' | 'promote' | 'demote';

function PersonPanel({ user }: { user: User }) {
  const may = usePermissions(null);
  const person = usePerson();
  const changed = useChanged();
  const [act, setAct] = useState<Act | null>(null);
  const [link, setLink] = useState('');
  const self = person.name === user.name ? i18n.t({ id: 'operator.notSelf', message: 'You cannot do this for your own account. Ask another operator.' }) : undefined;
  const name = user.displayName || user.email;
  const disabled = user.state === 'USER_STATE_DISABLED';
  const acts = actsOf(user, name, setLink);
  const shown = act ? acts[act] : null;
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.email', message: 'Email' }), value: user.email },
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <UserState user={user} /> },
          { label: i18n.t({ id: 'operator.operator', message: 'Operator' }), value: yesNo(user.platformOperator) },
          { label: i18n.t({ id: 'operator.secondStep', message: '2FA' }), value: yesNo(user.totpEnabled) },
          { label: i18n.t({ id: 'operator.password', message: 'Password' }), value: yesNo(user.hasPassword) },
          { label: i18n.t({ id: 'operator.created', message: 'Created' }), value: <Time at={user.createTime} exact /> },
          {
            label: i18n.t({ id: 'operator.workspaces.title', message: 'Workspaces' }),
            value: user.memberships.length === 0 ? '—' : user.memberships.map((one) => (
              <div key={one.workspace}>
                <Link to={paths.operatorWorkspace(idOf(one.workspace))}>{idOf(one.workspace)}</Link> · {one.role}
              </div>
            )),
          },
        ]}
      />
      <div className={css.row}>
        {may('UserService/CreateSignInLink') && <Button onClick={() => setAct('link')} disabledReason={disabled ? i18n.t({ id: 'operator.cannotSignIn', message: 'Disabled users cannot sign in' }) : undefined}>{i18n.t({ id: 'operator.signInLink', message: 'Create sign-in link' })}</Button>}
        {may('UserService/ResetTotp') && user.totpEnabled && <Button disabledReason={self} onClick={() => setAct('totp')}>{i18n.t({ id: 'operator.resetTotp', message: 'Reset 2FA' })}</Button>}
        {may('UserService/CreateUser') && <Button disabledReason={self} onClick={() => setAct(user.platformOperator ? 'demote' : 'promote')}>{user.platformOperator ? i18n.t({ id: 'operator.demote', message: 'Remove operator role' }) : i18n.t({ id: 'operator.promote', message: 'Make operator' })}</Button>}
        {may('UserService/CreateUser') && <Button disabledReason={self} onClick={() => setAct(disabled ? 'enable' : 'disable')}>{disabled ? i18n.t({ id: 'operator.enable', message: 'Enable' }) : i18n.t({ id: 'operator.disable', message: 'Disable' })}</Button>}
      </div>
      <Confirm
        opened={shown !== null}
        onClose={() => setAct(null)}
        title={shown?.title ?? ''}
        verb={shown?.verb ?? ''}
        danger={shown?.danger}
        act={async () => {
          await shown?.act();
          await changed();
        }}
      >
        <p>{shown?.text}</p>
      </Confirm>
      <LinkDialog link={link} onClose={() => setLink('')} />
    </>
  );
}

interface PersonAct {
  title: string;
  verb: string;
  text: string;
  danger?: boolean;
  act: () => Promise<unknown>;
}

function actsOf(user: User, name: string, onLink: (link: string) => void): Record<Act, PersonAct> {
  return {
    link: {
      title: i18n.t({ id: 'operator.signInLinkTitle', message: 'Create a sign-in link for {name}', values: { name } }),
      verb: i18n.t({ id: 'operator.signInLink', message: 'Create sign-in link' }),
      text: i18n.t({ id: 'operator.signInLinkText', message: 'Anyone who opens the link is signed in as this user. The link works once and expires after one day. Do not give it to anyone else.' }),
      act: async () => onLink(absolute((await createSignInLink(user)).signInPath)),
    },
    totp: {
      title: i18n.t({ id: 'operator.resetTotpTitle', message: 'Reset two-factor authentication for {name}', values: { name } }),
      verb: i18n.t({ id: 'operator.resetTotp', message: 'Reset 2FA' }),
      text: i18n.t({ id: 'operator.resetTotpText', message: 'For a user who has lost the authenticator app and the recovery codes. All their sessions end, and they are notified by email.' }),
      danger: true,
      act: () => resetTotp(user),
    },
    disable: {
      title: i18n.t({ id: 'operator.disableTitle', message: 'Disable {name}', values: { name } }),
      verb: i18n.t({ id: 'operator.disable', message: 'Disable' }),
      text: i18n.t({ id: 'operator.disableText', message: 'The user cannot sign in. Sessions and tokens stop working immediately. You can undo this.' }),
      danger: true,
      act: () => updateUser(user, { state: 'USER_STATE_DISABLED' }, 'state'),
    },
    enable: {
      title: i18n.t({ id: 'operator.enableTitle', message: 'Enable {name}', values: { name } }),
      verb: i18n.t({ id: 'operator.enable', message: 'Enable' }),
      text: i18n.t({ id: 'operator.enableText', message: 'The user can sign in again.' }),
      act: () => updateUser(user, { state: 'USER_STATE_ACTIVE' }, 'state'),
    },
    promote: {
      title: i18n.t({ id: 'operator.promoteTitle', message: 'Make {name} an operator', values: { name } }),
      verb: i18n.t({ id: 'operator.promote', message: 'Make operator' }),
      text: i18n.t({ id: 'operator.promoteText', message: 'Operators can read all data of this installation and manage payments, engines, and users.' }),
      act: () => updateUser(user, { platformOperator: true }, 'platformOperator'),
    },
    demote: {
      title: i18n.t({ id: 'operator.demoteTitle', message: 'Remove the operator role of {name}', values: { name } }),
      verb: i18n.t({ id: 'operator.demote', message: 'Remove operator role' }),
      text: i18n.t({ id: 'operator.demoteText', message: 'Workspace roles do not change.' }),
      danger: true,
      act: () => updateUser(user, { platformOperator: false }, 'platformOperator'),
    },
  };
}

function LinkDialog({ link, onClose }: { link: string; onClose: () => void }) {
  return (
    <Dialog opened={link !== ''} onClose={onClose} title={i18n.t({ id: 'operator.linkMade', message: 'Sign-in link' })} locked>
      <p>{i18n.t({ id: 'operator.linkText', message: 'The link works once, expires after one day, and is shown only here.' })}</p>
      <Secret value={link} label={i18n.t({ id: 'operator.linkMade', message: 'Sign-in link' })} />
      <DialogActions>
        <Button kind="primary" onClick={onClose}>{i18n.t({ id: 'operator.done', message: 'Done' })}</Button>
      </DialogActions>
    </Dialog>
  );
}

function AddDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [link, setLink] = useState('');
  return (
    <>
      <Dialog opened={opened && link === ''} onClose={onClose} title={i18n.t({ id: 'operator.addPerson', message: 'Add user' })}>
        {opened && link === '' && <AddForm onClose={onClose} onMade={setLink} />}
      </Dialog>
      <LinkDialog
        link={link}
        onClose={() => {
          setLink('');
          onClose();
        }}
      />
    </>
  );
}

function AddForm({ onClose, onMade }: { onClose: () => void; onMade: (link: string) => void }) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const fields = useFields({ email: '', displayName: '', platformOperator: false }, async (values) => {
    const made = await createUser(requestId, { ...values, email: values.email.trim(), displayName: values.displayName.trim() });
    await changed();
    if (made.signInPath) onMade(absolute(made.signInPath));
    else onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.addPerson', message: 'Add user' })} onCancel={onClose}>
      <TextField label={i18n.t({ id: 'operator.email', message: 'Email' })} type="email" autoFocus required {...fields.bind('email')} />
      <TextField label={i18n.t({ id: 'operator.name', message: 'Name' })} {...fields.bind('displayName')} />
      <CheckboxField label={i18n.t({ id: 'operator.asOperator', message: 'Operator of this installation' })} hint={i18n.t({ id: 'operator.promoteText', message: 'Operators can read all data of this installation and manage payments, engines, and users.' })} {...fields.bind('platformOperator')} />
    </DialogForm>
  );
}
