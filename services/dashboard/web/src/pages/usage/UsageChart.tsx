// Cost over time by model or key, with the ledger's total.
import { i18n } from '@lingui/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { idOf } from '@/api/types';
import { POLL } from '@/api/workspace';
import { fromNanos, money } from '@/format/money';
import { asDate, zoneName } from '@/format/time';
import { BarChart, Card, EmptyState, ErrorState, polling, Skeleton, useNow, type Bucket } from '@/ui';
import { bars } from './buckets';
import { usageQuery, type UsageAsked } from './queries';

interface UsageChartProps {
  workspace: string;
  title: string;
  period: string; // "Last 30 days"
  asked: UsageAsked;
  keyName?: (key: string) => string;
  onPick?: (bucket: Bucket) => void;
  empty?: ReactNode;
}

export function UsageChart({ workspace, title, period, asked, keyName = idOf, onPick, empty }: UsageChartProps) {
  const usage = useQuery({ ...usageQuery(workspace, asked), ...polling(POLL), placeholderData: keepPreviousData });
  const now = useNow();
  const { data } = usage;
  const other = i18n.t({ id: 'usage.other', message: 'Other' });
  const start = asDate(data?.startTime);
  const end = asDate(data?.endTime);
  const made =
    data && start && end
      ? bars(data.rows, {
          interval: data.interval, start, end, zone: asked.zone, now, other,
          name: (row) => (asked.groupBy?.[0] === 'USAGE_GROUP_KEY' ? { id: row.key, name: keyName(row.key) } : { id: row.model, name: row.model }),
          until: (time) => i18n.t({ id: 'usage.until', message: 'until {time}', values: { time } }),
        })
      : null;
  const format = (value: bigint) => money(fromNanos(value), value !== 0n && value < 10_000_000n ? 'exact' : 'total');
  return (
    <Card title={title} subtitle={data ? i18n.t({ id: 'usage.subtitle', message: '{period} · {zone} · total {total}', values: { period, zone: zoneName(asked.zone), total: money(data.totals?.costUsd) } }) : period}>
      {!made && (usage.error ? <ErrorState error={usage.error} what={i18n.t({ id: 'usage.what', message: 'the usage' })} retry={() => void usage.refetch()} /> : <Skeleton height={252} />)}
      {made && made.series.length === 0 && (empty ?? <EmptyState title={i18n.t({ id: 'usage.none', message: 'No requests in this period' })} />)}
      {made && made.series.length > 0 && <BarChart label={`${title}, ${period}`} series={made.series} buckets={made.buckets} format={format} formatAxis={(value) => money(fromNanos(value), value < 10_000_000n && value > 0n ? 'exact' : 'axis')} onPick={onPick} />}
    </Card>
  );
}
