import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { loadSession } from '@/api/session';
import { idOf, type Schema } from '@/api/types';
import { meQuery, workspacesQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { Card, ErrorState, Facts, Link, RowSkeletons, SettingsForm, TextField, Time, useSettings } from '@/ui';
import css from './account.module.css';
import { AccountFrame } from './AccountFrame';

export default function ProfilePage() {
  const query = useQuery(meQuery());
  const { data: known } = useQuery(workspacesQuery());
  const me = query.data;
  const names = new Map(known?.workspaces.map((one) => [one.name, one.displayName]));
  return (
    <AccountFrame title={i18n.t({ id: 'account.profile.title', message: 'Profile' })}>
      <div className={css.narrow}>
        <Card title={i18n.t({ id: 'account.you', message: 'Personal information' })}>
          {me ? <Profile me={me} /> : query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'account.profile.what', message: 'the profile' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={3} />}
        </Card>
        {me && me.memberships.length > 0 && (
          <Card title={i18n.t({ id: 'account.workspaces', message: 'Workspaces' })}>
            <Facts
              facts={me.memberships.map((one) => ({
                label: <Link to={paths.home(idOf(one.workspace))}>{names.get(one.workspace) || idOf(one.workspace)}</Link>,
                value: (
                  <>
                    {one.role} · <Link to={paths.members(idOf(one.workspace))}>{i18n.t({ id: 'account.leave', message: 'Manage membership' })}</Link>
                  </>
                ),
              }))}
            />
          </Card>
        )}
      </div>
    </AccountFrame>
  );
}

function Profile({ me }: { me: Schema<'User'> }) {
  const stored = { displayName: me.displayName };
  const save = async ({ displayName }: typeof stored) => {
    const saved = await unwrap(api.PATCH('/admin/v1/users/{user}', { params: { path: { user: idOf(me.name) }, query: { updateMask: 'displayName' } }, body: { displayName: displayName.trim() } }));
    queryClient.setQueryData(meQuery().queryKey, saved);
    await loadSession();
  };
  const fields = useSettings(stored, save, i18n.t({ id: 'account.saved', message: 'Profile saved' }));
  return (
    <SettingsForm fields={fields}>
      <TextField label={i18n.t({ id: 'account.name', message: 'Name' })} hint={i18n.t({ id: 'account.nameHint', message: 'Shown to members and in the audit log' })} maxLength={100} autoComplete="name" {...fields.bind('displayName')} />
      <Facts
        facts={[
          { label: i18n.t({ id: 'account.email', message: 'Email' }), value: me.email },
          { label: i18n.t({ id: 'account.made', message: 'Account created' }), value: <Time at={me.createTime} exact /> },
        ]}
      />
    </SettingsForm>
  );
}
