import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { idOf } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { IconPlus } from '@/icons';
import { Button, DataTable, EmptyState, Filters, Money, Page, polling, SelectField, TextField, Time, type Column } from '@/ui';
import { KeyActions } from './KeyActions';
import { KeyEnd, KeyState } from './parts';
import { keyName, keysQuery, VIEWS, type Key, type KeyFilter, type View } from './queries';

// The dialog is larger than the list, so it is loaded when opened.
const CreateKeyDialog = lazy(() => import('./CreateKeyDialog'));

function viewName(view: View): string {
  switch (view) {
    case 'all':
      return i18n.t({ id: 'keys.viewAll', message: 'All, newest first' });
    case 'active':
      return i18n.t({ id: 'keys.viewActive', message: 'Active' });
    case 'disabled':
      return i18n.t({ id: 'keys.viewDisabled', message: 'Disabled' });
    case 'revoked':
      return i18n.t({ id: 'keys.viewRevoked', message: 'Revoked' });
    case 'top':
      return i18n.t({ id: 'keys.viewTop', message: 'Highest spend this month' });
  }
}

function parse(search: Record<string, unknown>): KeyFilter & { create?: boolean } {
  const view = VIEWS.find((one) => one === search.view) ?? 'all';
  const query = typeof search.query === 'string' || typeof search.query === 'number' ? String(search.query) : '';
  return { view, query: view === 'top' ? '' : query, create: search.create === true };
}

// Typed text is sent to the server after a pause.
function useTyped(value: string, onRest: (value: string) => void): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const rest = useRef(onRest);
  rest.current = onRest;
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => rest.current(typed), 250);
    return () => clearTimeout(timer);
  }, [typed, value]);
  return [typed, setTyped];
}

export default function KeysPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const [search, setSearch] = useSearchState(parse);
  const [typed, setTyped] = useTyped(search.query, (query) => setSearch({ query: query.trim(), ...(search.view === 'top' ? { view: 'all' } : {}) }, { replace: true }));
  const [newKey, setNewKey] = useState<string | null>(null);
  const filter = { view: search.view, query: search.query };
  const keys = useInfiniteQuery({ ...keysQuery(workspace, filter), ...polling(POLL), placeholderData: keepPreviousData });
  const rows = keys.data?.pages.flatMap((page) => page.keys);
  const filtered = search.query !== '' || search.view !== 'all';
  const create = may('KeyService/CreateKey') && (
    <Button kind="primary" icon={IconPlus} onClick={() => setSearch({ create: true })}>
      {i18n.t({ id: 'keys.create', message: 'Create API key' })}
    </Button>
  );
  return (
    <Page
      title={i18n.t({ id: 'keys.title', message: 'API keys' })}
      subtitle={i18n.t({ id: 'keys.subtitle', message: 'Applications use API keys to call models. Usage is charged to this workspace’s credit. Amounts in USD.' })}
      actions={create}
    >
      <Filters>
        <TextField label={i18n.t({ id: 'keys.search', message: 'Search' })} type="search" placeholder={i18n.t({ id: 'keys.searchHint', message: 'Name, key ID, or last four' })} value={typed} onChange={setTyped} />
        <SelectField label={i18n.t({ id: 'keys.show', message: 'Show' })} value={search.view} options={VIEWS.map((view) => ({ value: view, label: viewName(view) }))} onChange={(view) => setSearch({ view: view as View, ...(view === 'top' ? { query: '' } : {}) })} />
      </Filters>
      <DataTable<Key>
        label={i18n.t({ id: 'keys.title', message: 'API keys' })}
        what={i18n.t({ id: 'keys.what', message: 'the API keys' })}
        columns={columns(workspace)}
        rows={rows}
        rowKey={(key) => key.name}
        rowLink={(key) => paths.key(workspace, idOf(key.name))}
        newKey={newKey}
        error={keys.error}
        retry={() => void keys.refetch()}
        busy={keys.isPlaceholderData}
        hasMore={keys.hasNextPage}
        loadingMore={keys.isFetchingNextPage}
        onMore={() => void keys.fetchNextPage()}
        empty={
          filtered ? (
            <EmptyState
              title={search.query ? i18n.t({ id: 'keys.noMatch', message: 'No API keys match “{query}”', values: { query: search.query } }) : i18n.t({ id: 'keys.noneOfView', message: 'No API keys in this view' })}
              action={<Button onClick={() => setSearch({ query: '', view: undefined })}>{i18n.t({ id: 'keys.clear', message: 'Clear search' })}</Button>}
            >
              {i18n.t({ id: 'keys.searched', message: 'The search covers all API keys of this workspace. It matches the start of the name, the key ID, and the last four characters.' })}
            </EmptyState>
          ) : (
            <EmptyState title={i18n.t({ id: 'keys.none', message: 'No API keys yet' })} action={create}>
              {i18n.t({ id: 'keys.noneText', message: 'Applications use API keys to call models. Usage is charged to this workspace’s credit.' })}
            </EmptyState>
          )
        }
      />
      <Suspense fallback={null}>
        <CreateKeyDialog
          workspace={workspace}
          opened={search.create === true && may('KeyService/CreateKey')}
          onClose={(made) => {
            setSearch({ create: undefined }, { replace: true });
            if (made) setNewKey(made.name);
          }}
        />
      </Suspense>
    </Page>
  );
}

function columns(workspace: string): Column<Key>[] {
  return [
    { id: 'name', header: i18n.t({ id: 'keys.name', message: 'Name' }), weight: 2, cell: keyName },
    { id: 'end', header: i18n.t({ id: 'keys.key', message: 'API key' }), weight: 1.1, wide: true, cell: (key) => <KeyEnd lastFour={key.lastFour} /> },
    { id: 'state', header: i18n.t({ id: 'keys.state', message: 'Status' }), weight: 1.2, cell: (key) => <KeyState state={key.state} /> },
    { id: 'spent', header: i18n.t({ id: 'keys.spent', message: 'Spent this month' }), weight: 1.2, align: 'end', cell: (key) => <Money usd={key.monthSpentUsd} /> },
    {
      id: 'quota',
      header: i18n.t({ id: 'keys.quota', message: 'Monthly quota' }),
      weight: 1.1,
      align: 'end',
      wide: true,
      cell: (key) => (key.monthlyQuotaUsd ? <Money usd={key.monthlyQuotaUsd} /> : <span className="quiet">{i18n.t({ id: 'keys.noQuota', message: 'No quota' })}</span>),
    },
    { id: 'used', header: i18n.t({ id: 'keys.lastUsed', message: 'Last used' }), weight: 1.2, wide: true, cell: (key) => <Time at={key.lastUsedTime} none={i18n.t({ id: 'keys.neverUsed', message: 'Never' })} /> },
    { id: 'actions', header: i18n.t({ id: 'keys.actions', message: 'Actions' }), headerHidden: true, weight: 0.5, align: 'end', wide: true, cell: (key) => <KeyActions workspace={workspace} item={key} /> },
  ];
}
