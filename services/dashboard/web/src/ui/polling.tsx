// Live figures: polled while the page is visible, and immediately when it becomes visible again. The interval grows while
// calls fail.
import { i18n } from '@lingui/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { clock } from '@/format/time';
import { TextButton } from './states';
import { useZone } from './Time';

const LONGEST = 60_000;
const MISSES = 3;
const failuresBefore = new WeakMap<object, number>();

interface Polled {
  state: { errorUpdateCount: number; errorUpdatedAt: number; dataUpdatedAt: number };
}

// The number of failures since the last success.
function misses(query: Polled): number {
  const { state } = query;
  if (state.dataUpdatedAt >= state.errorUpdatedAt) failuresBefore.set(query, state.errorUpdateCount);
  return state.errorUpdateCount - (failuresBefore.get(query) ?? 0);
}

// Exported for its test. random: 0 to 1.
export function nextDelay(interval: number, missed: number, random: number): number {
  if (missed === 0) return interval;
  return Math.min(interval * 2 ** missed, LONGEST) * (0.75 + random / 4);
}

// useQuery({ ...balanceQuery(workspace), ...polling(POLL) })
export function polling(interval: number) {
  return {
    refetchInterval: (query: Polled) => nextDelay(interval, misses(query), Math.random()),
    refetchIntervalInBackground: false,
    refetchOnWindowFocus: 'always' as const,
  };
}

// Shows "Updated 14:05:12", or that updates have stopped.
export function Freshness({ query }: { query: Pick<UseQueryResult, 'dataUpdatedAt' | 'errorUpdatedAt' | 'errorUpdateCount' | 'isError' | 'refetch' | 'failureCount'> }) {
  const zone = useZone();
  if (query.dataUpdatedAt === 0) return null;
  const time = clock(new Date(query.dataUpdatedAt), zone);
  if (query.errorUpdatedAt > query.dataUpdatedAt && query.errorUpdateCount >= MISSES) {
    return (
      <span role="status">
        {i18n.t({ id: 'live.stopped', message: 'Not updated since {time}.', values: { time } })} <TextButton onClick={() => void query.refetch()}>{i18n.t({ id: 'action.retry', message: 'Retry' })}</TextButton>
      </span>
    );
  }
  return <span className="num">{i18n.t({ id: 'live.updated', message: 'Updated {time}', values: { time } })}</span>;
}
