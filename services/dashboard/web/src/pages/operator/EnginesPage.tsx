import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idOf } from '@/api/types';
import { POLL_FAST, usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { count } from '@/format/money';
import { Button, Card, DataTable, EmptyState, Facts, Freshness, Page, polling, SidePanel, StateChip, Tile, Tiles, Time, UsedBar, type Column } from '@/ui';
import { EngineState, ReasonDialog } from './parts';
import { enginesQuery, setDrained, type Engine } from './queries';

// Formats microseconds as milliseconds; "—" without a measurement.
export function milliseconds(us: string | number | undefined): string {
  const text = String(us ?? '0');
  if (!/^\d+$/.test(text) || BigInt(text) === 0n) return '—';
  const tenths = BigInt(text) / 100n;
  return tenths < 1000n
    ? i18n.t({ id: 'operator.ms', message: '{value} ms', values: { value: `${tenths / 10n}.${tenths % 10n}` } })
    : i18n.t({ id: 'operator.ms', message: '{value} ms', values: { value: count(tenths / 10n) } });
}

const sum = (values: string[]) => values.reduce((total, value) => total + BigInt(value), 0n);
// The highest value of all routers with a measurement.
const worst = (values: string[]) => values.reduce((most, value) => (BigInt(value) > most ? BigInt(value) : most), 0n).toString();

export default function EnginesPage() {
  const [search, setSearch] = useSearchState((raw) => ({ open: typeof raw.open === 'string' ? raw.open : '' }));
  const query = useQuery({ ...enginesQuery(), ...polling(POLL_FAST) });
  const engines = query.data?.engines;
  const open = engines?.find((engine) => idOf(engine.name) === search.open);
  const up = engines?.filter((engine) => engine.state === 'ENGINE_STATE_UP').length ?? 0;
  const pools = new Set(engines?.map((engine) => engine.pool));
  return (
    <Page title={i18n.t({ id: 'operator.engines.title', message: 'Engines' })} subtitle={<Freshness query={query} />}>
      <Tiles>
        <Tile label={i18n.t({ id: 'operator.enginesUp', message: 'Engines up' })} loading={query.isPending} error={query.isLoadingError && query.error} retry={() => void query.refetch()} figure={`${count(up)} / ${count(engines?.length)}`}>
          {i18n.t({ id: 'operator.inPools', message: '{count, plural, one {in # pool} other {in # pools}}', values: { count: pools.size } })}
        </Tile>
        <Tile label={i18n.t({ id: 'operator.running', message: 'Running requests' })} loading={query.isPending} error={query.isLoadingError && query.error} figure={count(sum(engines?.map((engine) => engine.runningRequests ?? '0') ?? []))}>
          {i18n.t({ id: 'operator.ofMost', message: 'Capacity: {most}', values: { most: count(sum(engines?.map((engine) => engine.maxRequests) ?? [])) } })}
        </Tile>
      </Tiles>
      <DataTable<Engine>
        label={i18n.t({ id: 'operator.engines.title', message: 'Engines' })}
        what={i18n.t({ id: 'operator.enginesWhat', message: 'the engines' })}
        columns={columns()}
        rows={engines}
        rowKey={(engine) => engine.name}
        onOpen={(engine) => setSearch({ open: idOf(engine.name) })}
        openKey={open?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noEngines', message: 'No engines' })}>{i18n.t({ id: 'operator.noEnginesText', message: 'Add engines to the pools in the catalog file.' })}</EmptyState>}
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={open ? idOf(open.name) : ''}>
        {open && <EnginePanel engine={open} />}
      </SidePanel>
    </Page>
  );
}

function columns(): Column<Engine>[] {
  return [
    { id: 'name', header: i18n.t({ id: 'operator.engine', message: 'Engine' }), weight: 1.6, cell: (engine) => idOf(engine.name) },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.2, cell: (engine) => <EngineState state={engine.state} /> },
    { id: 'pool', header: i18n.t({ id: 'operator.pool', message: 'Pool' }), weight: 1.3, wide: true, cell: (engine) => engine.pool },
    { id: 'kind', header: i18n.t({ id: 'operator.kind', message: 'Kind' }), weight: 0.8, wide: true, cell: (engine) => engine.kind },
    { id: 'load', header: i18n.t({ id: 'operator.load', message: 'Load' }), weight: 1.5, cell: (engine) => <Load engine={engine} /> },
    { id: 'first', header: i18n.t({ id: 'operator.firstOutput', message: 'First output' }), weight: 1.1, align: 'end', wide: true, cell: (engine) => <span className="num">{milliseconds(worst(engine.routers.map((router) => router.firstOutputUs)))}</span> },
    { id: 'check', header: i18n.t({ id: 'operator.healthCheck', message: 'Health check' }), weight: 1.1, align: 'end', wide: true, cell: (engine) => <span className="num">{milliseconds(worst(engine.routers.map((router) => router.healthCheckUs)))}</span> },
  ];
}

function Load({ engine }: { engine: Engine }) {
  const most = BigInt(engine.maxRequests);
  return (
    <>
      <span className="num">{most > 0n ? `${count(engine.runningRequests)} / ${count(engine.maxRequests)}` : count(engine.runningRequests)}</span>
      {most > 0n && <UsedBar used={BigInt(engine.runningRequests ?? '0')} limit={most} label={i18n.t({ id: 'operator.load', message: 'Load' })} />}
    </>
  );
}

function EnginePanel({ engine }: { engine: Engine }) {
  const may = usePermissions(null);
  const [asking, setAsking] = useState<'drain' | 'resume' | null>(null);
  const drained = engine.routers.length > 0 && engine.routers.every((router) => router.drained);
  const id = idOf(engine.name);
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <EngineState state={engine.state} /> },
          { label: i18n.t({ id: 'operator.pool', message: 'Pool' }), value: engine.pool },
          { label: i18n.t({ id: 'operator.kind', message: 'Kind' }), value: engine.kind },
          { label: i18n.t({ id: 'operator.models', message: 'Models' }), value: engine.models.join(', ') || '—' },
          { label: i18n.t({ id: 'operator.load', message: 'Load' }), value: <Load engine={engine} /> },
        ]}
      />
      {may(drained ? 'EngineService/ResumeEngine' : 'EngineService/DrainEngine') && (
        <div>
          {drained ? (
            <Button kind="primary" onClick={() => setAsking('resume')}>{i18n.t({ id: 'operator.resume', message: 'Resume engine' })}</Button>
          ) : (
            <Button onClick={() => setAsking('drain')}>{i18n.t({ id: 'operator.drain', message: 'Drain engine' })}</Button>
          )}
        </div>
      )}
      {engine.routers.map((router) => (
        <Card key={router.router} title={i18n.t({ id: 'operator.atRouter', message: 'Router {router}', values: { router: router.router || '—' } })}>
          <Facts
            facts={[
              {
                label: i18n.t({ id: 'operator.state', message: 'Status' }),
                value: router.drained ? (
                  <StateChip tone="quiet">{i18n.t({ id: 'operator.engineDrained', message: 'Drained' })}</StateChip>
                ) : router.healthy ? (
                  <StateChip tone="ok">{i18n.t({ id: 'operator.healthy', message: 'Healthy' })}</StateChip>
                ) : (
                  <StateChip tone="bad">{i18n.t({ id: 'operator.unhealthy', message: 'Unhealthy' })}</StateChip>
                ),
              },
              { label: i18n.t({ id: 'operator.running', message: 'Running requests' }), value: <span className="num">{count(router.runningRequests)}</span> },
              { label: i18n.t({ id: 'operator.firstOutput', message: 'First output' }), value: milliseconds(router.firstOutputUs) },
              { label: i18n.t({ id: 'operator.healthCheck', message: 'Health check' }), value: milliseconds(router.healthCheckUs) },
              { label: i18n.t({ id: 'operator.lastFailure', message: 'Last failure' }), value: router.lastFailureTime ? <><Time at={router.lastFailureTime} /> · {router.lastFailure}</> : i18n.t({ id: 'operator.noFailure', message: 'None since the router started' }) },
            ]}
          />
        </Card>
      ))}
      {engine.silentRouters.length > 0 && <p>{i18n.t({ id: 'operator.silentRouters', message: 'Routers that do not respond: {names}', values: { names: engine.silentRouters.join(', ') } })}</p>}
      <ReasonDialog
        opened={asking === 'drain'}
        onClose={() => setAsking(null)}
        title={i18n.t({ id: 'operator.drainTitle', message: 'Drain {id}', values: { id } })}
        verb={i18n.t({ id: 'operator.drain', message: 'Drain engine' })}
        optional
        act={(reason, requestId) => setDrained(id, true, requestId, reason)}
      >
        <p>{i18n.t({ id: 'operator.drainText', message: 'Routers stop sending new requests to this engine until it is resumed. Running requests complete.' })}</p>
      </ReasonDialog>
      <ReasonDialog
        opened={asking === 'resume'}
        onClose={() => setAsking(null)}
        title={i18n.t({ id: 'operator.resumeTitle', message: 'Resume {id}', values: { id } })}
        verb={i18n.t({ id: 'operator.resume', message: 'Resume engine' })}
        optional
        act={(reason, requestId) => setDrained(id, false, requestId, reason)}
      >
        <p>{i18n.t({ id: 'operator.resumeText', message: 'Routers send requests to this engine again as soon as its health checks succeed.' })}</p>
      </ReasonDialog>
    </>
  );
}
