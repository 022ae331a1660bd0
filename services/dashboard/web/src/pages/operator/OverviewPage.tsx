// What needs attention, most urgent first; then the state of the installation.
import { i18n } from '@lingui/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { idOf } from '@/api/types';
import { POLL, POLL_FAST } from '@/api/workspace';
import { paths } from '@/app/paths';
import { count } from '@/format/money';
import { asDate } from '@/format/time';
import { DataTable, EmptyState, Freshness, Link, Notice, Page, polling, Tile, Tiles, Time, type Tone } from '@/ui';
import css from './operator.module.css';
import { EngineState, VerificationState } from './parts';
import { adjustmentsQuery, catalogQuery, deadLettersQuery, enginesQuery, paymentsQuery, processesQuery, verificationsQuery, type Engine } from './queries';

interface Line {
  tone: Tone;
  text: ReactNode;
  to: string;
  label: string;
}

// An older verification counts as missing.
const CHECK_DAYS = 7 * 86_400_000;

function useOverview() {
  return {
    engines: useQuery({ ...enginesQuery(), ...polling(POLL_FAST) }),
    processes: useQuery({ ...processesQuery(), ...polling(POLL) }),
    catalog: useQuery({ ...catalogQuery(), ...polling(POLL) }),
    letters: useInfiniteQuery({ ...deadLettersQuery(false), ...polling(POLL) }),
    pending: useInfiniteQuery({ ...adjustmentsQuery('-', 'PENDING_APPROVAL'), ...polling(POLL) }),
    payments: useInfiniteQuery({ ...paymentsQuery('-', 'AWAITING_TRANSFER'), ...polling(POLL) }),
    checks: useInfiniteQuery({ ...verificationsQuery(), ...polling(POLL) }),
  };
}
type Overview = ReturnType<typeof useOverview>;

const first = <T,>(query: { data?: { pages: T[] } }) => query.data?.pages[0];
// "50+" when the page is full: the rest is not counted.
const atLeast = (rows: unknown[] | undefined, more: string | undefined) => `${count(rows?.length ?? 0)}${more ? '+' : ''}`;

function serving({ engines, processes, catalog }: Overview): Line[] {
  const lines: Line[] = [];
  const toEngines = { to: paths.operatorEngines, label: i18n.t({ id: 'operator.seeEngines', message: 'View engines' }) };
  const down = engines.data?.engines.filter((engine) => engine.state === 'ENGINE_STATE_DOWN') ?? [];
  const partly = engines.data?.engines.filter((engine) => engine.state === 'ENGINE_STATE_PARTLY_UP') ?? [];
  if (down.length > 0) lines.push({ ...toEngines, tone: 'bad', text: i18n.t({ id: 'operator.enginesDown', message: '{count, plural, one {# engine is down:} other {# engines are down:}} {names}', values: { count: down.length, names: down.map((engine) => idOf(engine.name)).join(', ') } }) });
  if (partly.length > 0) lines.push({ ...toEngines, tone: 'warn', text: i18n.t({ id: 'operator.enginesPartly', message: 'Engines that some routers cannot reach: {names}', values: { names: partly.map((engine) => idOf(engine.name)).join(', ') } }) });
  const sick = processes.data?.processes.filter((process) => !process.answers || !process.ready) ?? [];
  if (sick.length > 0) lines.push({ tone: 'bad', to: paths.operatorFleet, label: i18n.t({ id: 'operator.seeFleet', message: 'View processes' }), text: i18n.t({ id: 'operator.processesSick', message: 'Not serving: {names}', values: { names: [...new Set(sick.map((process) => process.service))].join(', ') } }) });
  if (catalog.data && catalog.data.problems.length > 0) lines.push({ tone: 'bad', to: paths.operatorModels, label: i18n.t({ id: 'operator.seeCatalog', message: 'View catalog' }), text: i18n.t({ id: 'operator.catalogBad', message: 'The catalog file was rejected. Tollgate serves the last valid version.' }) });
  return lines;
}

function money({ letters, pending, payments, checks }: Overview): Line[] {
  const lines: Line[] = [];
  const newest = first(checks)?.ledgerVerifications[0];
  const toLedger = { to: paths.operatorLedger, label: i18n.t({ id: 'operator.seeChecks', message: 'View verifications' }) };
  if (newest?.state === 'LEDGER_VERIFICATION_STATE_VIOLATED') lines.push({ ...toLedger, tone: 'bad', text: i18n.t({ id: 'operator.ledgerViolated', message: 'The last ledger verification found violations.' }) });
  const dead = first(letters);
  if (dead && dead.deadLetters.length > 0) lines.push({ tone: 'bad', to: paths.operatorSettlements, label: i18n.t({ id: 'operator.seeSettlements', message: 'Review' }), text: i18n.t({ id: 'operator.lettersOpen', message: 'Failed settlements: {count}', values: { count: atLeast(dead.deadLetters, dead.nextPageToken) } }) });
  const waits = first(pending);
  if (waits && waits.adjustments.length > 0) lines.push({ tone: 'warn', to: paths.operatorRefunds, label: i18n.t({ id: 'operator.seeRefunds', message: 'Review' }), text: i18n.t({ id: 'operator.refundsWait', message: 'Refunds and adjustments waiting for approval: {count}', values: { count: atLeast(waits.adjustments, waits.nextPageToken) } }) });
  const transfers = first(payments);
  if (transfers && transfers.payments.length > 0) lines.push({ tone: 'warn', to: paths.operatorPayments, label: i18n.t({ id: 'operator.seePayments', message: 'View payments' }), text: i18n.t({ id: 'operator.paymentsWait', message: 'Bank transfers to confirm: {count}', values: { count: atLeast(transfers.payments, transfers.nextPageToken) } }) });
  if (first(checks) && (!newest || Date.now() - (asDate(newest.createTime)?.getTime() ?? 0) > CHECK_DAYS)) lines.push({ ...toLedger, tone: 'info', text: i18n.t({ id: 'operator.notChecked', message: 'The ledger was not verified in the last seven days.' }) });
  return lines;
}

export default function OverviewPage() {
  const all = useOverview();
  const lines = [...serving(all), ...money(all)];
  const settled = Object.values(all).every((query) => query.isSuccess);
  const order: Tone[] = ['bad', 'warn', 'info', 'ok'];
  return (
    <Page title={i18n.t({ id: 'operator.overview.title', message: 'Overview' })} subtitle={<Freshness query={all.engines} />}>
      <section className={css.notices} aria-label={i18n.t({ id: 'operator.needs', message: 'Needs attention' })}>
        {lines.sort((a, b) => order.indexOf(a.tone) - order.indexOf(b.tone)).map((line, index) => (
          <Notice key={index} tone={line.tone} action={<Link to={line.to}>{line.label}</Link>}>
            {line.text}
          </Notice>
        ))}
        {lines.length === 0 && settled && <Notice tone="ok">{i18n.t({ id: 'operator.nothing', message: 'Nothing needs your attention.' })}</Notice>}
      </section>
      <OverviewTiles all={all} />
      <EngineList all={all} />
    </Page>
  );
}

function OverviewTiles({ all: { engines, processes, letters, checks } }: { all: Overview }) {
  const known = engines.data?.engines ?? [];
  const up = known.filter((engine) => engine.state === 'ENGINE_STATE_UP').length;
  const running = known.reduce((sum, engine) => sum + BigInt(engine.runningRequests ?? '0'), 0n);
  const ready = processes.data?.processes.filter((process) => process.answers && process.ready).length ?? 0;
  const dead = first(letters);
  const newest = first(checks)?.ledgerVerifications[0];
  const state = (query: { isPending: boolean; isLoadingError: boolean; error: unknown; refetch: () => unknown }) => ({ loading: query.isPending, error: query.isLoadingError && query.error, retry: () => void query.refetch() });
  return (
    <Tiles>
      <Tile {...state(engines)} label={i18n.t({ id: 'operator.enginesUp', message: 'Engines up' })} figure={`${count(up)} / ${count(known.length)}`}>
        {i18n.t({ id: 'operator.runningNow', message: '{count} requests running', values: { count: count(running) } })}
      </Tile>
      <Tile {...state(processes)} label={i18n.t({ id: 'operator.processesReady', message: 'Processes ready' })} figure={`${count(ready)} / ${count(processes.data?.processes.length)}`}>
        <Link to={paths.operatorFleet}>{i18n.t({ id: 'operator.seeFleet', message: 'View processes' })}</Link>
      </Tile>
      <Tile {...state(letters)} label={i18n.t({ id: 'operator.settlements.title', message: 'Failed settlements' })} figure={atLeast(dead?.deadLetters, dead?.nextPageToken)}>
        <Link to={paths.operatorSettlements}>{i18n.t({ id: 'operator.seeAll', message: 'View all' })}</Link>
      </Tile>
      <Tile {...state(checks)} label={i18n.t({ id: 'operator.ledger.title', message: 'Ledger verification' })} figure={newest ? <VerificationState state={newest.state} /> : '—'}>
        {newest ? <>{i18n.t({ id: 'operator.entriesChecked', message: '{count} entries', values: { count: count(newest.entries) } })} · <Time at={newest.createTime} /></> : i18n.t({ id: 'operator.noChecks', message: 'No verifications yet' })}
      </Tile>
    </Tiles>
  );
}

function EngineList({ all: { engines } }: { all: Overview }) {
  return (
    <DataTable<Engine>
      label={i18n.t({ id: 'operator.engines.title', message: 'Engines' })}
      what={i18n.t({ id: 'operator.enginesWhat', message: 'the engines' })}
      columns={[
        { id: 'name', header: i18n.t({ id: 'operator.engine', message: 'Engine' }), weight: 1.5, cell: (engine) => idOf(engine.name) },
        { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.2, cell: (engine) => <EngineState state={engine.state} /> },
        { id: 'pool', header: i18n.t({ id: 'operator.pool', message: 'Pool' }), weight: 1.5, wide: true, cell: (engine) => engine.pool },
        { id: 'running', header: i18n.t({ id: 'operator.running', message: 'Running requests' }), weight: 1, align: 'end', cell: (engine) => <span className="num">{count(engine.runningRequests)}</span> },
      ]}
      rows={engines.data?.engines}
      rowKey={(engine) => engine.name}
      rowLink={() => paths.operatorEngines}
      error={engines.error}
      retry={() => void engines.refetch()}
      empty={<EmptyState title={i18n.t({ id: 'operator.noEngines', message: 'No engines' })} />}
    />
  );
}
