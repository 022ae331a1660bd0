// Single requests, newest first, with the receipt in a panel next to the list. Paging and search run on the server. New
// requests are announced above the list and loaded on click.
import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { asApiError } from '@/api/errors';
import { useKeyNames } from '@/api/names';
import { POLL } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { count } from '@/format/money';
import { resolve } from '@/format/range';
import { duration } from '@/format/time';
import { Button, Copy, DataTable, EmptyState, ErrorState, Filters, LinkButton, Money, Page, polling, RowSkeletons, SelectField, SidePanel, StateChip, TextField, Time, useZone, ZoneProvider, type Column } from '@/ui';
import { ReceiptView } from './ReceiptView';
import { OUTCOMES, receiptId, requestQuery, requestsQuery, type Receipt, type RequestFilter } from './requests';
import { Chips, KeySelect, ModelSelect, parseAsked, PeriodPicker, UsageTabs, type Asked } from './UsageFilters';
import css from './usage.module.css';
import { outcomeName, outcomeTone } from './words';

interface State extends Asked {
  outcome?: string;
  id?: string; // searched
  open?: string; // the row shown in the panel
}

function parse(search: Record<string, unknown>): State {
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined);
  return { ...parseAsked(search, '7d'), outcome: OUTCOMES.find((one) => one === search.outcome), id: text(search.id), open: text(search.open) };
}

export default function RequestsPage() {
  const shown = useZone();
  const [state] = useSearchState(parse);
  return (
    <ZoneProvider zone={state.zone ?? shown}>
      <Requests />
    </ZoneProvider>
  );
}

// The requests with this id, over all time: several if the client reused an x-request-id.
function useFound(workspace: string, id: string | undefined) {
  const one = useQuery({ ...requestQuery(workspace, id ?? ''), retry: false });
  const several = one.data !== undefined && one.data.matches !== '1' && one.data.clientRequestId !== '';
  const all = useInfiniteQuery({ ...requestsQuery(workspace, { clientRequestId: id }, () => ({ clientRequestId: one.data?.clientRequestId })), enabled: several });
  const missing = one.error !== null && asApiError(one.error).status === 404;
  const rows = missing ? [] : several ? all.data?.pages.flatMap((page) => page.receipts) : one.data && [one.data];
  return { rows, error: missing ? null : (one.error ?? all.error), retry: () => void one.refetch(), more: several ? all : null };
}

function Requests() {
  const workspace = useWorkspace();
  const zone = useZone();
  const [state, set] = useSearchState(parse);
  const { range, from, to, key, model, outcome } = state;
  const what = (): RequestFilter => {
    const { start, end } = resolve(state, zone, new Date());
    // An open period has no end.
    return { key, model, outcome, start, ...(range === 'custom' || range === 'last-month' ? { end } : {}) };
  };
  const id = { range, from, to, zone, key, model, outcome };
  const searching = state.id !== undefined;
  const list = useInfiniteQuery({ ...requestsQuery(workspace, id, what), placeholderData: keepPreviousData, enabled: !searching, refetchOnWindowFocus: false, staleTime: 60_000 });
  const found = useFound(workspace, state.id);
  const rows = searching ? found.rows : list.data?.pages.flatMap((page) => page.receipts);
  const waiting = useNews(workspace, id, what, searching ? undefined : rows);
  const { nameOf } = useKeyNames(workspace);
  const filtered = key !== undefined || model !== undefined || outcome !== undefined;
  const clear = () => set({ key: undefined, model: undefined, outcome: undefined });
  const more = searching ? found.more : list;
  return (
    <Page title={i18n.t({ id: 'usage.requests.title', message: 'Requests' })} subtitle={i18n.t({ id: 'usage.requestsAbout', message: 'Finished requests, newest first. Amounts in USD.' })}>
      <UsageTabs workspace={workspace} />
      <Filters>
        <SearchField id={state.id} onSearch={(next) => set({ id: next, open: undefined })} />
        <PeriodPicker workspace={workspace} asked={state} set={(change) => set({ ...change, id: undefined })} />
        <ModelSelect value={model} onChange={(next) => set({ model: next, id: undefined })} />
        <KeySelect workspace={workspace} value={key} onChange={(next) => set({ key: next, id: undefined })} />
        <div className={css.pick}>
          <SelectField
          label={i18n.t({ id: 'usage.filter.outcome', message: 'Outcome' })}
          value={outcome ?? ''}
          options={[{ value: '', label: i18n.t({ id: 'usage.filter.allOutcomes', message: 'All outcomes' }) }, ...OUTCOMES.map((one) => ({ value: one, label: outcomeName(one) }))]}
          onChange={(next) => set({ outcome: next || undefined, id: undefined })}
          />
        </div>
      </Filters>
      {searching ? (
        <Chips chips={[{ label: i18n.t({ id: 'usage.searched', message: 'ID (all time)' }), value: state.id ?? '', onRemove: () => set({ id: undefined }) }]} onClear={() => set({ id: undefined })} />
      ) : (
        <Chips
          chips={[
            ...(model ? [{ label: i18n.t({ id: 'usage.filter.model', message: 'Model' }), value: model, onRemove: () => set({ model: undefined }) }] : []),
            ...(key ? [{ label: i18n.t({ id: 'usage.filter.key', message: 'API key' }), value: nameOf(key), onRemove: () => set({ key: undefined }) }] : []),
            ...(outcome ? [{ label: i18n.t({ id: 'usage.filter.outcome', message: 'Outcome' }), value: outcomeName(outcome), onRemove: () => set({ outcome: undefined }) }] : []),
          ]}
          onClear={clear}
        />
      )}
      {waiting > 0 && (
        <div className={css.news}>
          <Button small onClick={() => void list.refetch()} busy={list.isRefetching}>
            {waiting > NEWS ? i18n.t({ id: 'usage.manyNew', message: 'More than {count} new requests', values: { count: NEWS } }) : i18n.t({ id: 'usage.new', message: '{count, plural, one {# new request} other {# new requests}}', values: { count: waiting } })}
          </Button>
        </div>
      )}
      <DataTable
        label={i18n.t({ id: 'usage.requests.title', message: 'Requests' })}
        columns={columns(nameOf)}
        rows={rows}
        rowKey={receiptId}
        onOpen={(row) => set({ open: receiptId(row) })}
        openKey={state.open ?? null}
        error={searching ? found.error : list.error}
        retry={() => (searching ? found.retry() : void list.refetch())}
        busy={!searching && list.isPlaceholderData}
        hasMore={more?.hasNextPage}
        loadingMore={more?.isFetchingNextPage}
        onMore={() => void more?.fetchNextPage()}
        what={i18n.t({ id: 'usage.whatRequests', message: 'the requests' })}
        empty={
          searching ? (
            <EmptyState title={i18n.t({ id: 'usage.noRequest', message: 'No request with this ID' })} action={<Button onClick={() => set({ id: undefined })}>{i18n.t({ id: 'usage.clearSearch', message: 'Clear search' })}</Button>}>
              {i18n.t({ id: 'usage.noRequestText', message: 'This workspace has no request with this ID. Refused requests have no receipt. A running request gets its receipt when it ends.' })}
            </EmptyState>
          ) : (
            <EmptyState
              title={i18n.t({ id: 'usage.none', message: 'No requests in this period' })}
              action={filtered ? <Button onClick={clear}>{i18n.t({ id: 'usage.clearFilters', message: 'Clear filters' })}</Button> : <LinkButton to={paths.quickstart(workspace)}>{i18n.t({ id: 'usage.firstCall', message: 'Open quickstart' })}</LinkButton>}
            >
              {filtered ? i18n.t({ id: 'usage.noneFiltered', message: 'No requests match these filters.' }) : i18n.t({ id: 'usage.noneText', message: 'Requests appear here after they end.' })}
            </EmptyState>
          )
        }
      />
      <Panel workspace={workspace} rows={rows ?? []} open={state.open} onOpen={(open, replace) => set({ open }, { replace })} />
    </Page>
  );
}

const NEWS = 20;

// The number of requests that ended since the list was loaded; NEWS + 1 means more.
function useNews(workspace: string, id: unknown, what: () => RequestFilter, rows: Receipt[] | undefined): number {
  const newest = useInfiniteQuery({ ...requestsQuery(workspace, ['newest', id], what, NEWS), ...polling(POLL), enabled: rows !== undefined, staleTime: POLL });
  const seen = new Set(rows?.slice(0, 200).map(receiptId));
  const fresh = newest.data?.pages[0]?.receipts.map(receiptId).findIndex((one) => seen.has(one));
  if (rows === undefined || fresh === undefined) return 0;
  return fresh >= 0 ? fresh : (newest.data?.pages[0]?.receipts.length ?? 0) >= NEWS ? NEWS + 1 : (newest.data?.pages[0]?.receipts.length ?? 0);
}

function SearchField({ id, onSearch }: { id: string | undefined; onSearch: (id: string | undefined) => void }) {
  const [typed, setTyped] = useState(id ?? '');
  useEffect(() => setTyped(id ?? ''), [id]);
  return (
    <form
      className={css.search}
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onSearch(typed.trim() || undefined);
      }}
    >
      <TextField label={i18n.t({ id: 'usage.search', message: 'Request ID' })} placeholder={i18n.t({ id: 'usage.searchHint', message: 'x-request-id, chatcmpl-…, then Enter' })} type="search" mono value={typed} onChange={setTyped} />
    </form>
  );
}

function columns(nameOf: (key: string) => string): Column<Receipt>[] {
  return [
    { id: 'time', header: i18n.t({ id: 'usage.col.time', message: 'Time' }), weight: 1.2, cell: (row) => <Time at={row.createTime} /> },
    { id: 'model', header: i18n.t({ id: 'usage.filter.model', message: 'Model' }), weight: 1.8, cell: (row) => <span title={row.model}>{row.model}</span> },
    { id: 'key', header: i18n.t({ id: 'usage.filter.key', message: 'API key' }), weight: 1.4, wide: true, cell: (row) => <span title={row.key}>{nameOf(row.key)}</span> },
    { id: 'outcome', header: i18n.t({ id: 'usage.filter.outcome', message: 'Outcome' }), weight: 1.4, wide: true, cell: (row) => <StateChip tone={outcomeTone(row.outcome)}>{outcomeName(row.outcome)}</StateChip> },
    { id: 'in', header: i18n.t({ id: 'usage.col.in', message: 'Input' }), weight: 0.8, align: 'end', wide: true, cell: (row) => count(row.tokens?.promptTokens ?? '0') },
    { id: 'out', header: i18n.t({ id: 'usage.col.out', message: 'Output' }), weight: 0.8, align: 'end', wide: true, cell: (row) => count(row.tokens?.completionTokens ?? '0') },
    { id: 'first', header: i18n.t({ id: 'usage.col.first', message: 'First token' }), weight: 0.9, align: 'end', wide: true, cell: (row) => duration(row.firstTokenUs) },
    { id: 'cost', header: i18n.t({ id: 'usage.cost', message: 'Cost' }), weight: 1, align: 'end', cell: (row) => <Money usd={row.chargedUsd} style="row" /> },
  ];
}

// The receipt next to the list. J and K go to the next and the previous request.
function Panel({ workspace, rows, open, onOpen }: { workspace: string; rows: Receipt[]; open: string | undefined; onOpen: (open: string | undefined, replace: boolean) => void }) {
  const receipt = useQuery({ ...requestQuery(workspace, open ?? ''), placeholderData: keepPreviousData });
  const at = rows.findIndex((row) => receiptId(row) === open);
  const step = (by: number) => {
    const next = at < 0 ? undefined : rows[at + by];
    if (next) onOpen(receiptId(next), true);
  };
  useEffect(() => {
    if (open === undefined) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest('input, textarea')) return;
      const by = { j: 1, k: -1 }[event.key];
      if (by !== undefined) step(by);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  });
  return (
    <SidePanel opened={open !== undefined} onClose={() => onOpen(undefined, false)} title={i18n.t({ id: 'usage.receipt', message: 'Receipt' })}>
      {open !== undefined && (
        <>
          <div className={css.steps}>
            <Button small onClick={() => step(-1)} disabledReason={at > 0 ? undefined : i18n.t({ id: 'usage.firstOne', message: 'This is the first request in the list' })}>
              {i18n.t({ id: 'usage.previous', message: 'Previous' })}
            </Button>
            <Button small onClick={() => step(1)} disabledReason={at >= 0 && at < rows.length - 1 ? undefined : i18n.t({ id: 'usage.lastOne', message: 'This is the last request in the list' })}>
              {i18n.t({ id: 'usage.next', message: 'Next' })}
            </Button>
            <LinkButton small to={paths.request(workspace, open)}>
              {i18n.t({ id: 'usage.openPage', message: 'Open as page' })}
            </LinkButton>
            <Copy value={`${location.origin}${paths.request(workspace, open)}`} label={i18n.t({ id: 'usage.copyLink', message: 'Copy link' })} bare />
            <span className={`${css.hint} ${css.keys}`}>
              <kbd>J</kbd> <kbd>K</kbd>
            </span>
          </div>
          {receipt.data ? <ReceiptView receipt={receipt.data} workspace={workspace} /> : receipt.error ? <ErrorState error={receipt.error} what={i18n.t({ id: 'usage.whatRequest', message: 'the request' })} retry={() => void receipt.refetch()} /> : <RowSkeletons />}
        </>
      )}
    </SidePanel>
  );
}
