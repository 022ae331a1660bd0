import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { tableProps } from '@/api/paging';
import { idOf, type Schema } from '@/api/types';
import { workspaceQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { isZone, parseRange, resolve, type Range } from '@/format/range';
import { UTC } from '@/format/time';
import { Button, DataTable, EmptyState, Facts, Filters, Link, Money, RangePicker, SelectField, SidePanel, Time, ZoneProvider, type Column } from '@/ui';
import { BillingFrame } from './BillingFrame';
import { transactionsQuery } from './queries';
import { kindName, KINDS, memoText } from './words';

type Transaction = Schema<'Transaction'>;

interface State extends Range {
  kind?: string;
  zone: string;
  open?: string;
}

function parse(search: Record<string, unknown>): State {
  return {
    ...parseRange(search, '30d'),
    kind: KINDS.find((kind) => kind === search.kind),
    zone: isZone(search.zone) ? search.zone : UTC,
    open: search.open === undefined ? undefined : String(search.open),
  };
}

const REQUEST = /^[0-9a-f]{32}$/;

export default function TransactionsPage() {
  const workspace = useWorkspace();
  const [state, set] = useSearchState(parse);
  const { data: here } = useQuery(workspaceQuery(workspace));
  // Not recomputed on every render, because a new period reloads the list.
  const { start, end } = useMemo(() => resolve({ range: state.range, from: state.from, to: state.to }, state.zone, new Date()), [state.range, state.from, state.to, state.zone]);
  const filter = [
    `create_time >= "${start.toISOString()}"`,
    ...(state.range === 'custom' || state.range === 'last-month' ? [`create_time < "${end.toISOString()}"`] : []),
    ...(state.kind ? [`kind = "${state.kind}"`] : []),
  ].join(' AND ');
  const query = useInfiniteQuery({ ...transactionsQuery(workspace, filter), placeholderData: keepPreviousData });
  const table = tableProps(query, (page) => page.transactions);
  const opened = table.rows?.find((one) => idOf(one.name) === state.open);
  const columns: Column<Transaction>[] = [
    { id: 'time', header: i18n.t({ id: 'billing.column.time', message: 'Time' }), cell: (one) => <Time at={one.createTime} exact />, weight: 2 },
    { id: 'kind', header: i18n.t({ id: 'billing.column.kind', message: 'Type' }), cell: (one) => kindName(one.kind), weight: 1.8, wide: true },
    { id: 'memo', header: i18n.t({ id: 'billing.column.memo', message: 'Note' }), cell: (one) => memoText(one) || <code>{one.request.slice(0, 12)}</code>, weight: 2.2, wide: true },
    { id: 'amount', header: i18n.t({ id: 'billing.column.moved', message: 'Amount' }), cell: (one) => <Money usd={one.amountUsd} style="row" />, align: 'end', weight: 1.3, wide: true },
    { id: 'change', header: i18n.t({ id: 'billing.column.change', message: 'Change' }), cell: (one) => <Money usd={one.changeUsd} style="row" plus />, align: 'end', weight: 1.3 },
    { id: 'balance', header: i18n.t({ id: 'billing.column.balance', message: 'Balance' }), cell: (one) => <Money usd={one.balanceUsd} style="row" />, align: 'end', weight: 1.3 },
  ];
  return (
    <ZoneProvider zone={state.zone}>
      <BillingFrame workspace={workspace} title={i18n.t({ id: 'billing.transactions.title', message: 'Transactions' })}>
        <Filters>
          <RangePicker value={state} onChange={(range) => set({ ...range, from: range.from, to: range.to, open: undefined })} zone={state.zone} onZone={(zone) => set({ zone })} reportZone={here?.reportTimeZone || UTC} />
          <SelectField
            label={i18n.t({ id: 'billing.filter.kind', message: 'Type' })}
            value={state.kind ?? ''}
            options={[{ value: '', label: i18n.t({ id: 'billing.filter.all', message: 'All types' }) }, ...KINDS.map((kind) => ({ value: kind, label: kindName(kind) }))]}
            onChange={(kind) => set({ kind: kind || undefined, open: undefined })}
          />
        </Filters>
        <DataTable
          label={i18n.t({ id: 'billing.transactions.title', message: 'Transactions' })}
          what={i18n.t({ id: 'billing.transactions.what', message: 'the transactions' })}
          columns={columns}
          rowKey={(one) => idOf(one.name)}
          onOpen={(one) => set({ open: idOf(one.name) })}
          openKey={state.open}
          empty={
            state.kind ? (
              <EmptyState title={i18n.t({ id: 'billing.transactions.noMatch', message: 'No transactions of this type in this period' })} action={<Button onClick={() => set({ kind: undefined })}>{i18n.t({ id: 'billing.filter.clear', message: 'Clear filter' })}</Button>} />
            ) : (
              <EmptyState title={i18n.t({ id: 'billing.transactions.none', message: 'No transactions in this period' })}>{i18n.t({ id: 'billing.transactions.noneText', message: 'All changes to your credit appear here: payments, holds, charges, and adjustments.' })}</EmptyState>
            )
          }
          {...table}
        />
        <SidePanel opened={opened !== undefined} onClose={() => set({ open: undefined })} title={opened ? kindName(opened.kind) : ''}>
          {opened && <Details workspace={workspace} entry={opened} />}
        </SidePanel>
      </BillingFrame>
    </ZoneProvider>
  );
}

function Details({ workspace, entry }: { workspace: string; entry: Transaction }) {
  const request = REQUEST.test(entry.request) ? <Link to={paths.request(workspace, entry.request)}><code>{entry.request}</code></Link> : <code>{entry.request || '—'}</code>;
  return (
    <Facts
      facts={[
        { label: i18n.t({ id: 'billing.column.time', message: 'Time' }), value: <Time at={entry.createTime} exact /> },
        { label: i18n.t({ id: 'billing.entry.number', message: 'Entry' }), value: idOf(entry.name) },
        { label: i18n.t({ id: 'billing.column.moved', message: 'Amount' }), value: <Money usd={entry.amountUsd} style="exact" /> },
        { label: i18n.t({ id: 'billing.entry.from', message: 'From account' }), value: <code>{entry.debitAccount}</code> },
        { label: i18n.t({ id: 'billing.entry.to', message: 'To account' }), value: <code>{entry.creditAccount}</code> },
        { label: i18n.t({ id: 'billing.column.change', message: 'Change' }), value: <Money usd={entry.changeUsd} style="exact" plus /> },
        { label: i18n.t({ id: 'billing.entry.balance', message: 'Balance after' }), value: <Money usd={entry.balanceUsd} style="exact" /> },
        { label: i18n.t({ id: 'billing.entry.month', message: 'Month (UTC)' }), value: entry.month },
        { label: i18n.t({ id: 'billing.entry.request', message: 'Request' }), value: request },
        { label: i18n.t({ id: 'billing.column.memo', message: 'Note' }), value: entry.memo || '—' },
      ]}
    />
  );
}
