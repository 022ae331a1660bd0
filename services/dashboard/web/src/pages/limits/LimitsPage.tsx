import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idOf, type Schema } from '@/api/types';
import { POLL_FAST, usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { count, percent } from '@/format/money';
import { Button, DataTable, Dialog, EmptyState, Freshness, Link, Money, Notice, Page, polling, SidePanel, StateChip, Time, UsedBar, type Column } from '@/ui';
import { EditLimits } from './EditLimits';
import { KeyLimits } from './KeyLimits';
import css from './limits.module.css';
import { limitedKeysQuery, limitsQuery, limitUsageQuery } from './queries';
import { kindText, limitText } from './words';

type Use = Schema<'LimitUse'>;
type Key = Schema<'Key'>;

const used = (use: Use) => BigInt(use.limit) - BigInt(use.remaining);

export default function LimitsPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const [editing, setEditing] = useState(false);
  const [{ key }, set] = useSearchState((search) => ({ key: typeof search.key === 'string' ? search.key : undefined }));
  const limits = useQuery(limitsQuery(workspace));
  const usage = useQuery({ ...limitUsageQuery(workspace), ...polling(POLL_FAST) });
  const keys = useQuery(limitedKeysQuery(workspace));
  const first = usage.data?.uses.find((one) => one.bindsFirst);
  const opened = keys.data?.keys.find((one) => idOf(one.name) === key);
  return (
    <Page
      title={i18n.t({ id: 'limits.title', message: 'Limits' })}
      subtitle={
        <>
          {i18n.t({ id: 'limits.subtitle', message: 'What is over a limit gets 429 and may try again' })} · <Freshness query={usage} />
        </>
      }
      actions={may('LimitService/UpdateLimits') && limits.data && <Button onClick={() => setEditing(true)}>{i18n.t({ id: 'limits.edit', message: 'Change limits' })}</Button>}
    >
      {first && (
        <Notice tone={used(first) * 10n >= BigInt(first.limit) * 8n ? 'warn' : 'info'}>
          {i18n.t({
            id: 'limits.first',
            message: 'Refuses first: {kind}, {model}. {used} of {limit} are in use ({part}).',
            values: { kind: kindText(first.kind), model: first.model || i18n.t({ id: 'limits.allModels', message: 'all models together' }), used: count(used(first)), limit: count(first.limit), part: percent(used(first), BigInt(first.limit)) },
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
        empty={<EmptyState title={i18n.t({ id: 'limits.noneTitle', message: 'No limits' })}>{i18n.t({ id: 'limits.noneText', message: 'This workspace may use as much as its credit and its cap allow.' })}</EmptyState>}
      />
      <p className="quiet">
        {limits.data?.plan ? i18n.t({ id: 'limits.plan', message: 'Plan: {plan}.', values: { plan: idOf(limits.data.plan) } }) : i18n.t({ id: 'limits.noPlan', message: 'No plan.' })}{' '}
        {!may('LimitService/UpdateLimits') && i18n.t({ id: 'limits.operators', message: 'The operator of this installation can change these limits.' })}{' '}
        <Link to={paths.cap(workspace)}>{i18n.t({ id: 'limits.cap', message: 'The monthly cap is in Billing.' })}</Link>
      </p>
      <h2>{i18n.t({ id: 'limits.keys', message: 'Keys' })}</h2>
      <DataTable
        label={i18n.t({ id: 'limits.keys', message: 'Keys' })}
        what={i18n.t({ id: 'limits.keys.what', message: 'the keys' })}
        columns={keyColumns}
        rows={keys.data?.keys}
        rowKey={(one) => idOf(one.name)}
        onOpen={(one) => set({ key: idOf(one.name) })}
        openKey={key}
        error={keys.error}
        retry={() => void keys.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'limits.noKeys', message: 'No keys that work' })}>{i18n.t({ id: 'limits.noKeysText', message: 'A key may have limits of its own, below those of the workspace.' })}</EmptyState>}
      />
      <SidePanel opened={opened !== undefined} onClose={() => set({ key: undefined })} title={opened?.displayName || key || ''}>
        {opened && <KeyLimits workspace={workspace} apiKey={opened} mayEdit={may('LimitService/UpdateKeyModelLimits')} />}
      </SidePanel>
      <Dialog opened={editing} onClose={() => setEditing(false)} title={i18n.t({ id: 'limits.edit', message: 'Change limits' })} wide>
        {editing && limits.data && <EditLimits workspace={workspace} limits={limits.data} onClose={() => setEditing(false)} />}
      </Dialog>
    </Page>
  );
}

const useColumns: Column<Use>[] = [
  {
    id: 'model',
    get header() {
      return i18n.t({ id: 'limits.column.of', message: 'Of' });
    },
    weight: 2,
    cell: (one) => (
      <span className={css.wrap}>
        {one.model || i18n.t({ id: 'limits.allModels', message: 'all models together' })} {one.bindsFirst && <StateChip tone="warn">{i18n.t({ id: 'limits.binds', message: 'binds first' })}</StateChip>}
      </span>
    ),
  },
  {
    id: 'kind',
    get header() {
      return i18n.t({ id: 'limits.column.kind', message: 'Limit' });
    },
    weight: 1.6,
    cell: (one) => <span className={css.wrap}>{kindText(one.kind)}</span>,
  },
  {
    id: 'used',
    get header() {
      return i18n.t({ id: 'limits.column.used', message: 'In use' });
    },
    weight: 1.8,
    cell: (one) => (
      <div className={css.used}>
        <UsedBar used={used(one)} limit={BigInt(one.limit)} label={kindText(one.kind)} />
        <span className="num">{i18n.t({ id: 'limits.usedOf', message: '{used} of {limit}', values: { used: count(used(one)), limit: count(one.limit) } })}</span>
      </div>
    ),
  },
  {
    id: 'resets',
    get header() {
      return i18n.t({ id: 'limits.column.resets', message: 'All free again' });
    },
    weight: 1.4,
    wide: true,
    cell: (one) =>
      one.kind === 'LIMIT_KIND_CONCURRENT_REQUESTS' ? i18n.t({ id: 'limits.asTheyEnd', message: 'as requests end' }) : <Time at={one.resetTime} exact none={i18n.t({ id: 'limits.free', message: 'now' })} />,
  },
];

const keyColumns: Column<Key>[] = [
  {
    id: 'key',
    get header() {
      return i18n.t({ id: 'limits.column.key', message: 'Key' });
    },
    weight: 2,
    cell: (one) => one.displayName || idOf(one.name),
  },
  {
    id: 'requests',
    get header() {
      return i18n.t({ id: 'limits.requests', message: 'Requests per minute' });
    },
    align: 'end',
    weight: 1.4,
    wide: true,
    cell: (one) => limitText(one.limits?.requestsPerMinute),
  },
  {
    id: 'tokens',
    get header() {
      return i18n.t({ id: 'limits.tokens', message: 'Tokens per minute' });
    },
    align: 'end',
    weight: 1.3,
    wide: true,
    cell: (one) => limitText(one.limits?.tokensPerMinute),
  },
  {
    id: 'concurrent',
    get header() {
      return i18n.t({ id: 'limits.column.concurrent', message: 'At the same time' });
    },
    align: 'end',
    weight: 1.3,
    wide: true,
    cell: (one) => limitText(one.limits?.concurrentRequests),
  },
  {
    id: 'spent',
    get header() {
      return i18n.t({ id: 'limits.column.spent', message: 'Spent this month' });
    },
    align: 'end',
    weight: 1.3,
    cell: (one) => <Money usd={one.monthSpentUsd} />,
  },
  {
    id: 'quota',
    get header() {
      return i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' });
    },
    align: 'end',
    weight: 1.2,
    cell: (one) => (one.monthlyQuotaUsd == null ? i18n.t({ id: 'limits.none', message: 'none' }) : <Money usd={one.monthlyQuotaUsd} />),
  },
];
