import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { Button, Confirm, DataTable, StateChip, Time, type Column } from '@/ui';
import { AccountFrame } from './AccountFrame';
import { agentText } from './agent';
import { sessionsQuery } from './queries';

type Session = Schema<'Session'>;

export default function SessionsPage() {
  const query = useQuery(sessionsQuery());
  const [ending, setEnding] = useState<Session | 'others' | null>(null);
  const sessions = query.data?.sessions;
  const columns: Column<Session>[] = [
    {
      id: 'agent',
      header: i18n.t({ id: 'account.column.browser', message: 'Browser' }),
      weight: 2.4,
      cell: (one) => (
        <span title={one.userAgent}>
          {agentText(one.userAgent)} {one.current && <StateChip tone="ok">{i18n.t({ id: 'account.current.session', message: 'Current session' })}</StateChip>}
        </span>
      ),
    },
    { id: 'address', header: i18n.t({ id: 'account.column.address', message: 'IP address' }), weight: 1.4, wide: true, cell: (one) => one.address || '—' },
    { id: 'since', header: i18n.t({ id: 'account.column.since', message: 'Signed in' }), weight: 1.3, wide: true, cell: (one) => <Time at={one.createTime} /> },
    { id: 'used', header: i18n.t({ id: 'account.column.used', message: 'Last used' }), weight: 1.3, cell: (one) => <Time at={one.lastUsedTime} /> },
    { id: 'ends', header: i18n.t({ id: 'account.column.ends', message: 'Expires' }), weight: 1.5, wide: true, cell: (one) => <Time at={one.expireTime} /> },
    {
      id: 'actions',
      header: i18n.t({ id: 'account.column.actions', message: 'Actions' }),
      headerHidden: true,
      weight: 1,
      align: 'end',
      cell: (one) =>
        one.current ? null : (
          <Button small kind="plain" onClick={() => setEnding(one)}>
            {i18n.t({ id: 'account.end', message: 'End' })}
          </Button>
        ),
    },
  ];
  return (
    <AccountFrame
      title={i18n.t({ id: 'account.sessions.title', message: 'Sessions' })}
      actions={(sessions?.length ?? 0) > 1 && <Button onClick={() => setEnding('others')}>{i18n.t({ id: 'account.endOthers', message: 'End other sessions' })}</Button>}
    >
      <DataTable label={i18n.t({ id: 'account.sessions.title', message: 'Sessions' })} what={i18n.t({ id: 'account.sessions.what', message: 'the sessions' })} columns={columns} rows={sessions} rowKey={(one) => one.name} error={query.error} retry={() => void query.refetch()} empty={null} />
      <Confirm
        opened={ending !== null}
        onClose={() => setEnding(null)}
        title={ending === 'others' ? i18n.t({ id: 'account.endOthers', message: 'End other sessions' }) : i18n.t({ id: 'account.endTitle', message: 'End session' })}
        verb={ending === 'others' ? i18n.t({ id: 'account.endOthers', message: 'End other sessions' }) : i18n.t({ id: 'account.endTitle', message: 'End session' })}
        danger
        act={async () => {
          if (ending === 'others') await unwrap(api.POST('/admin/v1/users/{user}/sessions:revokeOthers', { params: { path: { user: 'me' } }, body: {} }));
          else if (ending) await unwrap(api.DELETE('/admin/v1/users/{user}/sessions/{session}', { params: { path: { user: 'me', session: idOf(ending.name) } } }));
          await queryClient.invalidateQueries({ queryKey: ['sessions'] });
        }}
      >
        {ending === 'others'
          ? i18n.t({ id: 'account.endOthersText', message: 'All your other sessions are signed out immediately. If you do not recognize one of them, change your password too.' })
          : i18n.t({ id: 'account.endText', message: '{browser} at {address} is signed out immediately.', values: { browser: ending ? agentText(ending.userAgent) : '', address: ending ? ending.address || '—' : '' } })}
      </Confirm>
    </AccountFrame>
  );
}
