import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { IconPlus } from '@/icons';
import { Button, Confirm, DataTable, EmptyState, Time, type Column } from '@/ui';
import { AccountFrame } from './AccountFrame';
import { CreateToken } from './CreateToken';
import { tokensQuery } from './queries';

type Token = Schema<'AccessToken'>;

export default function TokensPage() {
  const query = useQuery(tokensQuery());
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<Token | null>(null);
  const create = (
    <Button kind="primary" icon={IconPlus} onClick={() => setCreating(true)}>
      {i18n.t({ id: 'account.token.create', message: 'Create token' })}
    </Button>
  );
  const columns: Column<Token>[] = [
    { id: 'name', header: i18n.t({ id: 'account.column.token', message: 'Token' }), weight: 1.8, cell: (one) => <>{one.displayName} <code>tgp_…{one.lastFour}</code></> },
    { id: 'scopes', header: i18n.t({ id: 'account.column.scopes', message: 'Scopes' }), weight: 1.8, wide: true, cell: (one) => one.scopes.join(', ') },
    { id: 'used', header: i18n.t({ id: 'account.column.used', message: 'Last used' }), weight: 1.2, wide: true, cell: (one) => <Time at={one.lastUsedTime} none={i18n.t({ id: 'account.never', message: 'Never' })} /> },
    { id: 'ends', header: i18n.t({ id: 'account.column.expires', message: 'Expires' }), weight: 1.3, cell: (one) => <Time at={one.expireTime} /> },
    {
      id: 'actions',
      header: i18n.t({ id: 'account.column.actions', message: 'Actions' }),
      headerHidden: true,
      weight: 0.9,
      align: 'end',
      cell: (one) => (
        <Button small kind="plain" onClick={() => setDeleting(one)}>
          {i18n.t({ id: 'account.token.deleteShort', message: 'Delete' })}
        </Button>
      ),
    },
  ];
  return (
    <AccountFrame title={i18n.t({ id: 'account.tokens.title', message: 'Access tokens' })} actions={create}>
      <p className="quiet">{i18n.t({ id: 'account.tokens.text', message: 'Your programs use access tokens to call the admin API, with at most your own permissions. To call models, create an API key instead.' })}</p>
      <DataTable
        label={i18n.t({ id: 'account.tokens.title', message: 'Access tokens' })}
        what={i18n.t({ id: 'account.tokens.what', message: 'the tokens' })}
        columns={columns}
        rows={query.data?.tokens}
        rowKey={(one) => one.name}
        error={query.error}
        retry={() => void query.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'account.tokens.none', message: 'No tokens yet' })}>{i18n.t({ id: 'account.tokens.noneText', message: 'Scripts and Terraform sign in with an access token.' })}</EmptyState>}
      />
      <CreateToken opened={creating} onClose={() => setCreating(false)} />
      <Confirm
        opened={deleting !== null}
        onClose={() => setDeleting(null)}
        title={i18n.t({ id: 'account.token.delete', message: 'Delete token' })}
        verb={i18n.t({ id: 'account.token.delete', message: 'Delete token' })}
        danger
        typed={deleting?.displayName}
        act={async () => {
          if (deleting) await unwrap(api.DELETE('/admin/v1/users/{user}/tokens/{token}', { params: { path: { user: 'me', token: idOf(deleting.name) } } }));
          await queryClient.invalidateQueries({ queryKey: ['tokens'] });
        }}
      >
        {i18n.t({ id: 'account.token.deleteText', message: 'Requests with {name} fail with 401 immediately. Last used:', values: { name: deleting?.displayName ?? '' } })} <Time at={deleting?.lastUsedTime} none={i18n.t({ id: 'account.never', message: 'Never' })} />
      </Confirm>
    </AccountFrame>
  );
}
