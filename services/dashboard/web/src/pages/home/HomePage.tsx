import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { whyRefused } from '@/api/refusals';
import { idOf, type Schema } from '@/api/types';
import { balanceQuery, POLL, POLL_FAST, summaryQuery, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useWorkspace } from '@/app/search';
import { count, money, nanos, percent, shortCount } from '@/format/money';
import { resolve } from '@/format/range';
import { absolute, startOfMonth, monthName, UTC } from '@/format/time';
import { IconPlus } from '@/icons';
import { UsageChart } from '@/pages/usage/UsageChart';
import { outcomeName } from '@/pages/usage/words';
import { DataTable, EmptyState, Freshness, LinkButton, Money, Page, polling, rangeLabel, Tile, Tiles, Time, UsedBar, useNow, useZone, type Column } from '@/ui';
import { AttentionList } from './Attention';
import { newestRequestsQuery } from './queries';

type Summary = Schema<'Summary'>;
type Receipt = Schema<'Receipt'>;

const ROWS = 4;
const LONG = 90; // days; a longer time needs no action

// The credit, the spend and the problems of the workspace.
export default function HomePage() {
  const workspace = useWorkspace();
  const zone = useZone();
  const may = usePermissions(workspace);
  const summary = useQuery({ ...summaryQuery(workspace), ...polling(POLL_FAST) });
  const canCreate = may('KeyService/CreateKey');
  return (
    <Page
      title={i18n.t({ id: 'home.title', message: 'Home' })}
      subtitle={summary.data ? <Freshness query={summary} /> : '\u00a0'}
      actions={
        canCreate && (
          <LinkButton to={paths.keys(workspace)} search={{ create: true }} icon={IconPlus}>
            {i18n.t({ id: 'home.createKey', message: 'Create API key' })}
          </LinkButton>
        )
      }
    >
      {summary.data && <AttentionList workspace={workspace} summary={summary.data} />}
      <Tiles>
        <CreditTile workspace={workspace} summary={summary.data} />
        <MonthTile workspace={workspace} />
        <TodayTile query={summary} />
        <FailedTile query={summary} />
      </Tiles>
      <UsageChart
        workspace={workspace}
        title={i18n.t({ id: 'home.costByModel', message: 'Cost per day by model' })}
        period={rangeLabel('30d')}
        asked={{ id: '30d', period: () => resolve({ range: '30d' }, zone, new Date()), zone, interval: 'USAGE_INTERVAL_DAY', groupBy: ['USAGE_GROUP_MODEL'] }}
        empty={
          <EmptyState
            title={i18n.t({ id: 'home.noUsage', message: 'No requests in the last 30 days' })}
            action={canCreate && <LinkButton kind="primary" to={paths.keys(workspace)} search={{ create: true }}>{i18n.t({ id: 'home.createKey', message: 'Create API key' })}</LinkButton>}
          >
            {i18n.t({ id: 'home.noUsageText', message: 'Create an API key and send the example request. Its cost appears here about a second later.' })}
          </EmptyState>
        }
      />
      {may('UsageService/ListRequests') && <NewestRequests workspace={workspace} />}
    </Page>
  );
}

function CreditTile({ workspace, summary }: { workspace: string; summary?: Summary }) {
  const query = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  const { data } = query;
  const held = nanos(data?.heldUsd) ?? 0n;
  const days = summary?.daysLeft;
  return (
    <Tile label={i18n.t({ id: 'home.credit', message: 'Available credit' })} loading={query.isPending} error={data ? null : query.error} retry={() => void query.refetch()} figure={<Money usd={data?.availableUsd} style="available" />}>
      {held > 0n
        ? i18n.t({ id: 'home.held', message: '{held} held for {count, plural, one {# running request} other {# running requests}}', values: { held: money(data?.heldUsd, 'exact'), count: parseInt(data?.openHolds ?? '0', 10) } })
        : days !== undefined && days > LONG
          ? i18n.t({ id: 'home.daysLong', message: 'More than {days} days at this week’s rate', values: { days: LONG } })
        : days !== undefined
          ? i18n.t({ id: 'home.daysLeft', message: '{days, plural, =0 {Less than a day} one {About # day} other {About # days}} at this week’s rate', values: { days } })
          : i18n.t({ id: 'home.nothingHeld', message: 'No credit held' })}
    </Tile>
  );
}

function MonthTile({ workspace }: { workspace: string }) {
  const query = useQuery({ ...balanceQuery(workspace), ...polling(POLL) });
  const now = useNow();
  const { data } = query;
  const spent = nanos(data?.monthSpentUsd);
  const cap = nanos(data?.capUsd);
  const resets = absolute(startOfMonth(now, UTC, 1), UTC, 'minute', now);
  return (
    <Tile
      label={i18n.t({ id: 'home.month', message: 'Spent in {month}', values: { month: monthName(now, UTC) } })}
      loading={query.isPending}
      error={data ? null : query.error}
      retry={() => void query.refetch()}
      figure={<Money usd={data?.monthSpentUsd} />}
      bar={spent !== null && cap !== null && <UsedBar used={spent} limit={cap} label={i18n.t({ id: 'home.capUsed', message: 'Monthly cap used' })} />}
    >
      {cap !== null
        ? i18n.t({ id: 'home.ofCap', message: 'of {cap} cap · resets {resets}', values: { cap: money(data?.capUsd), resets } })
        : i18n.t({ id: 'home.noCap', message: 'No cap · month ends {resets}', values: { resets } })}
    </Tile>
  );
}

interface SummaryTile {
  query: { data?: Summary; isPending: boolean; error: unknown; refetch: () => unknown };
}

function TodayTile({ query }: SummaryTile) {
  const today = query.data?.today;
  const all = today ? BigInt(today.requests) + BigInt(today.freeRequests) : null;
  const running = query.data?.runningRequests;
  return (
    <Tile label={i18n.t({ id: 'home.today', message: 'Requests today' })} loading={query.isPending} error={query.data ? null : query.error} retry={() => void query.refetch()} figure={count(all)}>
      {today?.tokens && i18n.t({ id: 'home.tokens', message: '{in} input tokens · {out} output tokens', values: { in: shortCount(today.tokens.promptTokens), out: shortCount(today.tokens.completionTokens) } })}
      {running !== undefined && running !== '0' && <> · {i18n.t({ id: 'home.running', message: '{count} running', values: { count: count(running) } })}</>}
    </Tile>
  );
}

// The share of today's requests that ended in an error, with the two most frequent causes.
function FailedTile({ query }: SummaryTile) {
  const { data } = query;
  const refused = (data?.refusals ?? []).reduce((sum, one) => sum + BigInt(one.count), 0n);
  const served = data?.today ? BigInt(data.today.requests) : 0n;
  return (
    <Tile label={i18n.t({ id: 'home.failed', message: 'Refused or failed today' })} loading={query.isPending} error={data ? null : query.error} retry={() => void query.refetch()} figure={data?.today ? (refused === 0n ? '0' : percent(refused, refused + served)) : '—'}>
      {data && (refused === 0n ? i18n.t({ id: 'home.noneFailed', message: 'No requests refused or failed' }) : data.refusals.slice(0, 2).map((one) => `${count(one.count)} ${whyRefused(one)}`).join(' · '))}
    </Tile>
  );
}

function NewestRequests({ workspace }: { workspace: string }) {
  const requests = useQuery({ ...newestRequestsQuery(workspace, ROWS), ...polling(POLL) });
  const rows = requests.data?.receipts;
  if (rows?.length === 0) return null;
  const columns: Column<Receipt>[] = [
    { id: 'model', header: i18n.t({ id: 'home.model', message: 'Model' }), weight: 2, cell: (one) => one.model },
    { id: 'time', header: i18n.t({ id: 'home.time', message: 'Time' }), weight: 1.1, cell: (one) => <Time at={one.createTime} /> },
    { id: 'tokens', header: i18n.t({ id: 'home.tokensInOut', message: 'Input / output tokens' }), weight: 1.2, align: 'end', wide: true, cell: (one) => `${count(one.tokens?.promptTokens)} / ${count(one.tokens?.completionTokens)}` },
    { id: 'outcome', header: i18n.t({ id: 'home.outcome', message: 'Outcome' }), weight: 1.2, wide: true, cell: (one) => outcomeName(one.outcome) },
    { id: 'cost', header: i18n.t({ id: 'home.cost', message: 'Cost' }), weight: 1, align: 'end', cell: (one) => <Money usd={one.chargedUsd} style="row" /> },
  ];
  return (
      <DataTable<Receipt>
        title={i18n.t({ id: 'home.newest', message: 'Recent requests' })}
        label={i18n.t({ id: 'home.newest', message: 'Recent requests' })}
        what={i18n.t({ id: 'home.whatRequests', message: 'the recent requests' })}
        columns={columns}
        rows={rows}
        rowKey={(one) => one.name}
        rowLink={(one) => paths.request(workspace, idOf(one.name))}
        error={requests.error}
        retry={() => void requests.refetch()}
        empty={null}
      />
  );
}
