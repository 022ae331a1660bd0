import { i18n } from '@lingui/core';
import { count, nanos, percent, share } from '@/format/money';
import type { Schema } from '@/api/types';
import { DataTable, Money, type Column } from '@/ui';
import { OTHER } from './buckets';
import type { UsageRow } from './queries';
import css from './usage.module.css';

interface UsageTableProps {
  by: 'model' | 'key';
  sums: Schema<'QueryUsageResponse'> | undefined;
  busy: boolean;
  error: unknown;
  retry: () => void;
  nameOf: (key: string) => string;
  onPick: (id: string) => void;
}

// The sums of the period by model or key. The last row is the ledger's total.
export function UsageTable({ by, sums, busy, error, retry, nameOf, onPick }: UsageTableProps) {
  const totals = sums?.totals;
  const idOf = (row: UsageRow) => (row.other ? OTHER : by === 'model' ? row.model : row.key);
  const whole = nanos(totals?.costUsd) ?? 0n;
  // One style for the whole column: cents, unless the amounts are too small.
  const style = whole >= 1_000_000_000n || whole === 0n ? 'total' : 'row';
  const tokens = (id: string, header: string, of: (row: UsageRow) => string | undefined, wide = true, weight = 1.3): Column<UsageRow> => ({
    id, header, align: 'end', wide, weight, cell: (row) => count(of(row) ?? '0'), total: totals ? count(of(totals) ?? '0') : '—',
  });
  const columns: Column<UsageRow>[] = [
    {
      id: 'name',
      header: by === 'model' ? i18n.t({ id: 'usage.filter.model', message: 'Model' }) : i18n.t({ id: 'usage.filter.key', message: 'API key' }),
      weight: 2.4,
      cell: (row) => (row.other ? i18n.t({ id: 'usage.others', message: 'Other' }) : by === 'model' ? row.model : <span title={row.key}>{nameOf(row.key)}</span>),
      total: i18n.t({ id: 'usage.total', message: 'Total' }),
    },
    tokens('requests', i18n.t({ id: 'usage.col.requests', message: 'Requests' }), (row) => row.requests, false, 1),
    tokens('free', i18n.t({ id: 'usage.col.free', message: 'Free' }), (row) => row.freeRequests, true, 1),
    tokens('in', i18n.t({ id: 'usage.tokensIn', message: 'Input tokens' }), (row) => row.tokens?.promptTokens),
    tokens('cached', i18n.t({ id: 'usage.col.cached', message: 'Cached input' }), (row) => row.tokens?.cachedTokens),
    tokens('out', i18n.t({ id: 'usage.tokensOut', message: 'Output tokens' }), (row) => row.tokens?.completionTokens),
    tokens('reasoning', i18n.t({ id: 'usage.col.reasoning', message: 'Reasoning' }), (row) => row.tokens?.reasoningTokens),
    {
      id: 'share',
      header: i18n.t({ id: 'usage.col.share', message: 'Share' }),
      align: 'end',
      wide: true,
      weight: 1.3,
      cell: (row) => {
        const part = nanos(row.costUsd) ?? 0n;
        return (
          <span className={css.share}>
            <i>
              <b style={{ width: `${share(part, whole) * 100}%` }} />
            </i>
            {percent(part, whole)}
          </span>
        );
      },
      total: totals ? percent(whole, whole) : '—',
    },
    { id: 'cost', header: i18n.t({ id: 'usage.cost', message: 'Cost' }), align: 'end', weight: 1.2, cell: (row) => <Money usd={row.costUsd} style={style} />, total: <Money usd={totals?.costUsd} style={style} /> },
  ];
  return (
    <DataTable
      label={by === 'model' ? i18n.t({ id: 'usage.tableModel', message: 'Usage by model' }) : i18n.t({ id: 'usage.tableKey', message: 'Usage by API key' })}
      columns={columns}
      rows={sums?.rows}
      rowKey={idOf}
      onOpen={(row) => !row.other && onPick(idOf(row))}
      busy={busy}
      error={error}
      retry={retry}
      empty={null}
      what={i18n.t({ id: 'usage.what', message: 'the usage' })}
    />
  );
}
