import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import type { Schema } from '@/api/types';
import type { Period } from '@/format/range';

export type UsageRow = Schema<'UsageRow'>;
export type Interval = 'USAGE_INTERVAL_UNSPECIFIED' | 'USAGE_INTERVAL_QUARTER_HOUR' | 'USAGE_INTERVAL_HOUR' | 'USAGE_INTERVAL_DAY' | 'USAGE_INTERVAL_NONE';
export type Group = 'USAGE_GROUP_MODEL' | 'USAGE_GROUP_KEY';

export interface UsageAsked {
  period: () => Period; // evaluated at each call, because an open period moves on
  id: string; // the cache key of the period
  zone: string;
  interval?: Interval;
  groupBy?: Group[];
  top?: number;
  filter?: string;
}

// The ledger keeps sums per quarter of an hour. For other bounds it would read single requests. No usage is later than now.
const quarterAfter = (at: Date) => new Date(Math.ceil(at.getTime() / 900_000) * 900_000).toISOString();

export function usageQuery(workspace: string, asked: UsageAsked) {
  const { id, zone, interval, groupBy, top, filter } = asked;
  return queryOptions({
    queryKey: ['usage', workspace, { id, zone, interval, groupBy, top, filter }],
    queryFn: ({ signal }) => {
      const { start, end } = asked.period();
      return unwrap(
        api.GET('/admin/v1/workspaces/{workspace}/usage:query', {
          params: { path: { workspace }, query: { startTime: quarterAfter(start), endTime: quarterAfter(end), timeZone: zone, interval, groupBy, top, filter } },
          signal,
        }),
      );
    },
  });
}
