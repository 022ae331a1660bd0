// Usage of the workspace: cost over time, and sums by model or key. All figures come from the ledger.
import { i18n } from '@lingui/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { asApiError, type ApiError } from '@/api/errors';
import { keyNamesQuery, namesIn, useKeyNames } from '@/api/names';
import { POLL } from '@/api/workspace';
import { useSearchState, useWorkspace } from '@/app/search';
import { count, shortCount } from '@/format/money';
import { resolve } from '@/format/range';
import { absolute, dayText } from '@/format/time';
import { IconDownload } from '@/icons';
import { Button, EmptyState, Failure, Filters, Money, Page, polling, rangeLabel, Segments, Tile, Tiles, useNow, useZone, ZoneProvider } from '@/ui';
import { queryClient } from '@/api/query';
import { csvName, download, usageCsv } from './csv';
import { usageQuery, type Group, type Interval, type UsageAsked } from './queries';
import { quoted } from './requests';
import { UsageChart } from './UsageChart';
import { Chips, KeySelect, ModelSelect, parseAsked, PeriodPicker, UsageTabs, type Asked } from './UsageFilters';
import { UsageTable } from './UsageTable';
import css from './usage.module.css';

interface State extends Asked {
  by: 'model' | 'key';
  bars: 'auto' | 'hour' | 'day';
}

function parse(search: Record<string, unknown>): State {
  return { ...parseAsked(search, '7d'), by: search.by === 'key' ? 'key' : 'model', bars: search.bars === 'hour' || search.bars === 'day' ? search.bars : 'auto' };
}

const INTERVALS: Record<'hour' | 'day', Interval> = { hour: 'USAGE_INTERVAL_HOUR', day: 'USAGE_INTERVAL_DAY' };
const GROUPS: Record<State['by'], Group> = { model: 'USAGE_GROUP_MODEL', key: 'USAGE_GROUP_KEY' };
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
// More bars would be too narrow.
const MOST_HOURS = 15 * DAY;

export default function UsagePage() {
  const shown = useZone();
  const [state] = useSearchState(parse);
  return (
    <ZoneProvider zone={state.zone ?? shown}>
      <Usage />
    </ZoneProvider>
  );
}

function Usage() {
  const workspace = useWorkspace();
  const zone = useZone();
  const now = useNow();
  const [state, set] = useSearchState(parse);
  const { nameOf } = useKeyNames(workspace, state.by === 'key' || state.key !== undefined);
  // One period for the chart, the sums and the table, so that they cannot differ. An open period ends at the current minute.
  const minute = new Date(Math.floor(now.getTime() / MINUTE) * MINUTE);
  const { start, end: at } = resolve(state, zone, minute);
  const end = at.getTime() === minute.getTime() ? new Date(at.getTime() + MINUTE) : at;
  const long = end.getTime() - start.getTime() > MOST_HOURS;
  const bars = long ? 'day' : state.bars === 'auto' ? (end.getTime() - start.getTime() <= 2 * DAY ? 'hour' : 'day') : state.bars;
  const terms = [state.key && `key = ${quoted(state.key)}`, state.model && `model = ${quoted(state.model)}`].filter(Boolean);
  const asked: UsageAsked = {
    period: () => ({ start, end }), id: `${start.toISOString()}/${end.toISOString()}`, zone,
    groupBy: [GROUPS[state.by]], ...(terms.length > 0 ? { filter: terms.join(' AND ') } : {}),
  };
  const sums = useQuery({ ...usageQuery(workspace, { ...asked, interval: 'USAGE_INTERVAL_NONE', top: 100 }), ...polling(POLL), placeholderData: keepPreviousData });
  const label = state.range === 'custom' && state.from && state.to ? `${state.from} – ${state.to}` : rangeLabel(state.range);
  const totals = sums.data?.totals ?? null;
  const nothing = totals !== null && totals.requests === '0' && totals.freeRequests === '0';
  const failed = { loading: sums.isPending, error: sums.data ? undefined : (sums.error ?? undefined), retry: () => void sums.refetch() };
  const filtered = state.key !== undefined || state.model !== undefined;
  return (
    <Page
      title={i18n.t({ id: 'usage.usage.title', message: 'Usage' })}
      subtitle={i18n.t({ id: 'usage.about', message: 'Amounts in USD, as posted in the ledger. Requests count at the time of their admission.' })}
      actions={<Export workspace={workspace} asked={asked} interval={INTERVALS[bars]} />}
    >
      <UsageTabs workspace={workspace} />
      <Filters>
        <PeriodPicker workspace={workspace} asked={state} set={set} />
        <ModelSelect value={state.model} onChange={(model) => set({ model })} />
        <KeySelect workspace={workspace} value={state.key} onChange={(key) => set({ key })} />
        <Segments
          label={i18n.t({ id: 'usage.by', message: 'Group by' })}
          value={state.by}
          onChange={(by) => set({ by })}
          options={[
            { value: 'model', label: i18n.t({ id: 'usage.byModel', message: 'By model' }) },
            { value: 'key', label: i18n.t({ id: 'usage.byKey', message: 'By API key' }) },
          ]}
        />
        {!long && (
          <Segments
            label={i18n.t({ id: 'usage.bars', message: 'Interval' })}
            value={bars}
            onChange={(next) => set({ bars: next })}
            options={[
              { value: 'hour', label: i18n.t({ id: 'usage.hours', message: 'Hours' }) },
              { value: 'day', label: i18n.t({ id: 'usage.days', message: 'Days' }) },
            ]}
          />
        )}
      </Filters>
      <Chips
        chips={[
          ...(state.model ? [{ label: i18n.t({ id: 'usage.filter.model', message: 'Model' }), value: state.model, onRemove: () => set({ model: undefined }) }] : []),
          ...(state.key ? [{ label: i18n.t({ id: 'usage.filter.key', message: 'API key' }), value: nameOf(state.key), onRemove: () => set({ key: undefined }) }] : []),
        ]}
        onClear={() => set({ key: undefined, model: undefined })}
      />
      <Tiles>
        <Tile label={i18n.t({ id: 'usage.cost', message: 'Cost' })} figure={<Money usd={totals?.costUsd} />} {...failed}>
          {i18n.t({ id: 'usage.costExact', message: 'exactly {usd} USD', values: { usd: totals?.costUsd ?? '—' } })}
        </Tile>
        <Tile label={i18n.t({ id: 'usage.requestsCount', message: 'Requests' })} figure={<span title={count(totals?.requests)}>{shortCount(totals?.requests)}</span>} {...failed}>
          {i18n.t({ id: 'usage.freeCount', message: '{count, plural, =0 {none without output} one {plus # without output (free)} other {plus # without output (free)}}', values: { count: totals?.freeRequests ?? '0' } })}
        </Tile>
        <Tile label={i18n.t({ id: 'usage.tokensIn', message: 'Input tokens' })} figure={<span title={count(totals?.tokens?.promptTokens)}>{shortCount(totals?.tokens?.promptTokens)}</span>} {...failed}>
          {i18n.t({ id: 'usage.cachedCount', message: '{tokens} cached', values: { tokens: count(totals?.tokens?.cachedTokens) } })}
        </Tile>
        <Tile label={i18n.t({ id: 'usage.tokensOut', message: 'Output tokens' })} figure={<span title={count(totals?.tokens?.completionTokens)}>{shortCount(totals?.tokens?.completionTokens)}</span>} {...failed}>
          {i18n.t({ id: 'usage.reasoningCount', message: '{tokens} reasoning', values: { tokens: count(totals?.tokens?.reasoningTokens) } })}
        </Tile>
      </Tiles>
      <UsageChart
        workspace={workspace}
        title={state.by === 'model' ? i18n.t({ id: 'usage.chartModel', message: 'Cost by model' }) : i18n.t({ id: 'usage.chartKey', message: 'Cost by API key' })}
        period={label}
        asked={{ ...asked, interval: INTERVALS[bars], top: 5 }}
        keyName={nameOf}
        onPick={(bucket) => {
          const day = dayText(new Date(parseInt(bucket.id, 10)), zone);
          set({ range: 'custom', from: day, to: day, bars: 'auto' });
        }}
        empty={
          <EmptyState
            title={i18n.t({ id: 'usage.noneBetween', message: 'No requests between {from} and {to}', values: { from: absolute(start, zone, 'minute', now), to: absolute(end, zone, 'minute', now) } })}
            action={
              filtered ? (
                <Button onClick={() => set({ key: undefined, model: undefined })}>{i18n.t({ id: 'usage.clearFilters', message: 'Clear filters' })}</Button>
              ) : (
                state.range !== '30d' && <Button onClick={() => set({ range: '30d', from: undefined, to: undefined })}>{i18n.t({ id: 'usage.show30', message: 'Show the last 30 days' })}</Button>
              )
            }
          >
            {filtered ? i18n.t({ id: 'usage.noneFiltered', message: 'No requests match these filters.' }) : i18n.t({ id: 'usage.noneText', message: 'Requests appear here after they end.' })}
          </EmptyState>
        }
      />
      {!nothing && (
        <UsageTable
          by={state.by}
          sums={sums.data}
          busy={sums.isPlaceholderData}
          error={sums.error}
          retry={() => void sums.refetch()}
          nameOf={nameOf}
          onPick={(id) => (state.by === 'model' ? set({ model: id, by: 'key' }) : set({ key: id, by: 'model' }))}
        />
      )}
      <p className={css.fresh}>
        {i18n.t({ id: 'usage.until.note', message: 'From {from} to {to}. Running requests are not included.', values: { from: absolute(start, zone, 'minute', now), to: absolute(end > now ? now : end, zone, 'minute', now) } })}
      </p>
    </Page>
  );
}

// Queries the whole range in one call: one snapshot, with all groups that the API returns.
function Export({ workspace, asked, interval }: { workspace: string; asked: UsageAsked; interval: Interval }) {
  const zone = useZone();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      const report = await queryClient.fetchQuery(usageQuery(workspace, { ...asked, interval, groupBy: ['USAGE_GROUP_MODEL', 'USAGE_GROUP_KEY'], top: 100 }));
      const names = await queryClient.ensureQueryData(keyNamesQuery(workspace));
      const { start, end } = asked.period();
      if (report.totals) download(csvName(workspace, dayText(start, zone), dayText(new Date(end.getTime() - 1), zone), zone), usageCsv(report.rows, report.totals, namesIn(names)));
    } catch (caught) {
      setError(asApiError(caught));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {error && <Failure error={error} />}
      <Button icon={IconDownload} busy={busy} onClick={() => void run()}>
        {i18n.t({ id: 'usage.export', message: 'Export CSV' })}
      </Button>
    </>
  );
}
