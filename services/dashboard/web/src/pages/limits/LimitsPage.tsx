import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idOf, type Schema } from '@/api/types';
import { POLL, POLL_FAST, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { count, percent } from '@/format/money';
import { clock } from '@/format/time';
import { Button, DataTable, Dialog, EmptyState, Failure, Freshness, Link, Money, Notice, Page, polling, RowSkeletons, SidePanel, useZone, type Column } from '@/ui';
import { EditLimits } from './EditLimits';
import { KeyLimits } from './KeyLimits';
import css from './limits.module.css';
import { keyLimitUsageQuery, limitedKeysQuery, limitsQuery, limitUsageQuery } from './queries';
import { FreeAgain, Hour, InUse, inUse, LimitName, Refused, type Use } from './Use';
import { kindText, limitText, modelText } from './words';

type Key = Schema<'Key'>;
type Kind = Use['kind'];

export default function LimitsPage() {
  const workspace = useWorkspace();
  const zone = useZone();
  const may = usePermissions(workspace);
  const [editing, setEditing] = useState(false);
  const [{ key }, set] = useSearchState((search) => ({ key: typeof search.key === 'string' ? search.key : undefined }));
  // The fields that the dialog changes.
  const limits = useQuery({ ...limitsQuery(workspace), enabled: editing });
  const usage = useQuery({ ...limitUsageQuery(workspace), ...polling(POLL_FAST) });
  const keys = useQuery(limitedKeysQuery(workspace));
  const keyUsage = useQuery({ ...keyLimitUsageQuery(workspace), ...polling(POLL) });
  const usesOf = new Map(keyUsage.data?.keyLimits.map((one) => [one.name.replace(/\/limits$/, ''), one.uses]));
  const refusing = usage.data?.uses.reduce<Use | null>((most, one) => (one.hour && BigInt(one.hour.refused) > BigInt(most?.hour?.refused ?? '0') ? one : most), null);
  const first = usage.data?.uses.find((one) => one.bindsFirst);
  const opened = keys.data?.keys.find((one) => idOf(one.name) === key);
  return (
    <Page
      title={i18n.t({ id: 'limits.title', message: 'Limits' })}
      subtitle={
        <>
          {i18n.t({ id: 'limits.subtitle', message: 'Requests over a limit fail with 429 and can be retried' })} · <Freshness query={usage} />
        </>
      }
      actions={may('LimitService/UpdateLimits') && <Button onClick={() => setEditing(true)}>{i18n.t({ id: 'limits.edit', message: 'Change limits' })}</Button>}
    >
      {first && (
        <Notice tone={inUse(first) * 10n >= BigInt(first.limit) * 8n ? 'warn' : 'info'}>
          {i18n.t({
            id: 'limits.first',
            message: 'Closest limit: {kind}, {model}. {used} of {limit} in use ({part}).',
            values: { kind: kindText(first.kind), model: modelText(first.model), used: count(inUse(first)), limit: count(first.limit), part: percent(inUse(first), BigInt(first.limit)) },
          })}
        </Notice>
      )}
      {refusing && (
        <Notice tone="warn">
          {i18n.t({
            id: 'limits.refusing',
            message: 'Most refusals in the last hour: {kind}, {model}, {count, plural, one {# request} other {# requests}}.',
            values: { kind: kindText(refusing.kind), model: modelText(refusing.model), count: refusing.hour?.refused ?? '0' },
          })}
        </Notice>
      )}
      <h2>{i18n.t({ id: 'limits.workspace', message: 'Workspace and models' })}</h2>
      <DataTable
        label={i18n.t({ id: 'limits.workspace', message: 'Workspace and models' })}
        what={i18n.t({ id: 'limits.what', message: 'the limits' })}
        columns={useColumns}
        rows={usage.data?.uses}
        rowKey={(one) => `${one.model} ${one.kind}`}
        error={usage.error}
        retry={() => void usage.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'limits.noneTitle', message: 'No limits' })}>{i18n.t({ id: 'limits.noneText', message: 'Only the credit and the cap limit this workspace.' })}</EmptyState>}
      />
      <p className="quiet">
        {i18n.t({ id: 'limits.aboutHour', message: 'The last hour covers the current minute and the 59 minutes before it. Bars show the peak use in each minute. A mark means that requests were refused.' })}{' '}
        {usage.data?.countedSince && i18n.t({ id: 'limits.countedSince', message: 'Counts start at {time}, when the rate limiter started or lost its state.', values: { time: clock(usage.data.countedSince, zone) } })}
      </p>
      <p className="quiet">
        {usage.data?.plan ? i18n.t({ id: 'limits.plan', message: 'Plan: {plan}.', values: { plan: idOf(usage.data.plan) } }) : i18n.t({ id: 'limits.noPlan', message: 'No plan.' })}{' '}
        {!may('LimitService/UpdateLimits') && i18n.t({ id: 'limits.operators', message: 'Only the operator of this installation can change these limits.' })}{' '}
        <Link to={paths.cap(workspace)}>{i18n.t({ id: 'limits.cap', message: 'View the monthly cap in Billing' })}</Link>
      </p>
      <h2>{i18n.t({ id: 'limits.keys', message: 'API keys' })}</h2>
      <DataTable
        label={i18n.t({ id: 'limits.keys', message: 'API keys' })}
        what={i18n.t({ id: 'limits.keys.what', message: 'the API keys' })}
        columns={keyColumns(usesOf)}
        rows={keys.data?.keys}
        rowKey={(one) => idOf(one.name)}
        onOpen={(one) => set({ key: idOf(one.name) })}
        openKey={key}
        error={keys.error}
        retry={() => void keys.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'limits.noKeys', message: 'No active API keys' })}>{i18n.t({ id: 'limits.noKeysText', message: 'A key can have its own limits, below the limits of the workspace.' })}</EmptyState>}
      />
      <SidePanel opened={opened !== undefined} onClose={() => set({ key: undefined })} title={opened?.displayName || key || ''}>
        {opened && <KeyLimits workspace={workspace} apiKey={opened} mayEdit={may('LimitService/UpdateKeyModelLimits')} />}
      </SidePanel>
      <Dialog opened={editing} onClose={() => setEditing(false)} title={i18n.t({ id: 'limits.edit', message: 'Change limits' })} wide>
        {editing && (limits.data ? <EditLimits workspace={workspace} limits={limits.data} onClose={() => setEditing(false)} /> : limits.error ? <Failure error={limits.error} retry={() => void limits.refetch()} /> : <RowSkeletons />)}
      </Dialog>
    </Page>
  );
}

const useColumns: Column<Use>[] = [
  {
    id: 'limit',
    get header() {
      return i18n.t({ id: 'limits.column.kind', message: 'Limit' });
    },
    weight: 2,
    cell: (one) => <LimitName use={one} />,
  },
  {
    id: 'used',
    get header() {
      return i18n.t({ id: 'limits.column.used', message: 'In use' });
    },
    weight: 1.5,
    cell: (one) => <InUse use={one} />,
  },
  {
    id: 'hour',
    get header() {
      return i18n.t({ id: 'limits.column.hour', message: 'Last hour' });
    },
    weight: 1.9,
    cell: (one) => <Hour use={one} />,
  },
  {
    id: 'refused',
    get header() {
      return i18n.t({ id: 'limits.column.refused', message: 'Refused' });
    },
    align: 'end',
    weight: 0.9,
    wide: true,
    cell: (one) => <Refused use={one} />,
  },
  {
    id: 'resets',
    get header() {
      return i18n.t({ id: 'limits.column.resets', message: 'Resets' });
    },
    weight: 1.4,
    wide: true,
    cell: (one) => <FreeAgain use={one} />,
  },
];

function keyColumns(usesOf: Map<string, Use[]>): Column<Key>[] {
  // The effective limit, which may be the plan's, with the last hour below.
  const ofKind = (kind: Kind, own: (key: Key) => string | undefined) => (key: Key) => {
    const use = usesOf.get(key.name)?.find((one) => one.kind === kind && one.model === '');
    if (!use) return limitText(own(key));
    return (
      <div className={css.two}>
        <span className="num">{count(use.limit)}</span>
        <span className={use.hour && use.hour.refused !== '0' ? `${css.under} ${css.refused}` : css.under}>
          {!use.hour
            ? '—'
            : use.hour.refused === '0'
              ? i18n.t({ id: 'limits.peak', message: 'peak {peak}', values: { peak: count(use.hour.peak) } })
              : i18n.t({ id: 'limits.refusedCount', message: '{count, plural, one {# refused} other {# refused}}', values: { count: use.hour.refused } })}
        </span>
      </div>
    );
  };
  return [
    { id: 'key', header: i18n.t({ id: 'limits.column.key', message: 'API key' }), weight: 2, cell: (one) => one.displayName || idOf(one.name) },
    { id: 'requests', header: i18n.t({ id: 'limits.requests', message: 'Requests per minute' }), align: 'end', weight: 1.4, wide: true, cell: ofKind('LIMIT_KIND_REQUESTS_PER_MINUTE', (one) => one.limits?.requestsPerMinute) },
    { id: 'tokens', header: i18n.t({ id: 'limits.tokens', message: 'Tokens per minute' }), align: 'end', weight: 1.3, wide: true, cell: ofKind('LIMIT_KIND_TOKENS_PER_MINUTE', (one) => one.limits?.tokensPerMinute) },
    { id: 'concurrent', header: i18n.t({ id: 'limits.column.concurrent', message: 'Concurrent' }), align: 'end', weight: 1.3, wide: true, cell: ofKind('LIMIT_KIND_CONCURRENT_REQUESTS', (one) => one.limits?.concurrentRequests) },
    { id: 'spent', header: i18n.t({ id: 'limits.column.spent', message: 'Spent this month' }), align: 'end', weight: 1.3, cell: (one) => <Money usd={one.monthSpentUsd} /> },
    { id: 'quota', header: i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' }), align: 'end', weight: 1.2, cell: (one) => (one.monthlyQuotaUsd == null ? i18n.t({ id: 'limits.none', message: 'None' }) : <Money usd={one.monthlyQuotaUsd} />) },
  ];
}
