import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { type Schema } from '@/api/types';
import { POLL } from '@/api/workspace';
import { count } from '@/format/money';
import { Card, Copy, DataTable, EmptyState, ErrorState, Facts, Freshness, Money, Notice, Page, polling, RowSkeletons, StateChip, Time, type Column } from '@/ui';
import css from './operator.module.css';
import { WorkspaceLink } from './parts';
import { capacityQuery, catalogModelsQuery, catalogQuery, type LimitValues } from './queries';

type Model = Schema<'Model'>;
const shortName = (name: string) => name.replace(/^models\//, '');

export default function ModelsPage() {
  const status = useQuery({ ...catalogQuery(), ...polling(POLL) });
  const models = useQuery({ ...catalogModelsQuery(), ...polling(POLL) });
  const capacity = useQuery({ ...capacityQuery(), ...polling(POLL) });
  const limits = new Map(capacity.data?.capacities.map((one) => [one.name, one]));
  const loaded = status.data;
  return (
    <Page title={i18n.t({ id: 'operator.models.title', message: 'Models' })} subtitle={<Freshness query={status} />}>
      {loaded && loaded.problems.length > 0 && (
        <Notice tone="bad" alert>
          <b>{i18n.t({ id: 'operator.catalogRefused', message: 'The current catalog file was rejected. Tollgate serves the last valid version.' })}</b> <Time at={loaded.refuseTime} exact />
          <ul className={css.problems}>
            {loaded.problems.map((problem, index) => (
              <li key={index}>
                <code>{problem}</code>
              </li>
            ))}
          </ul>
        </Notice>
      )}
      <Card title={i18n.t({ id: 'operator.catalog', message: 'Catalog' })} subtitle={i18n.t({ id: 'operator.catalogText', message: 'Loaded from the operator’s file. Changes take effect without a restart.' })}>
        {!loaded && (status.error ? <ErrorState error={status.error} what={i18n.t({ id: 'operator.catalogWhat', message: 'the catalog status' })} retry={() => void status.refetch()} /> : <RowSkeletons rows={4} />)}
        {loaded && (
          <Facts
            facts={[
              {
                label: i18n.t({ id: 'operator.state', message: 'Status' }),
                value: loaded.problems.length > 0 ? <StateChip tone="bad">{i18n.t({ id: 'operator.fileRefused', message: 'File rejected' })}</StateChip> : <StateChip tone="ok">{i18n.t({ id: 'operator.fileServed', message: 'Up to date' })}</StateChip>,
              },
              { label: i18n.t({ id: 'operator.version', message: 'Version' }), value: <span className="num">{count(loaded.version)}</span> },
              { label: i18n.t({ id: 'operator.loadedAt', message: 'Loaded' }), value: <Time at={loaded.loadTime} exact /> },
              { label: i18n.t({ id: 'operator.content', message: 'Content' }), value: i18n.t({ id: 'operator.contentCounts', message: '{models, plural, one {# model} other {# models}}, {pools, plural, one {# pool} other {# pools}}, {engines, plural, one {# engine} other {# engines}}', values: { models: loaded.models, pools: loaded.pools, engines: loaded.engines } }) },
              { label: 'SHA-256', value: <><code>{loaded.digest.slice(0, 16)}…</code> <Copy bare value={loaded.digest} label={i18n.t({ id: 'operator.copyDigest', message: 'Copy digest' })} /></> },
            ]}
          />
        )}
      </Card>
      <DataTable<Model>
        label={i18n.t({ id: 'operator.models.title', message: 'Models' })}
        what={i18n.t({ id: 'operator.modelsWhat', message: 'the models' })}
        columns={columns((name) => limits.get(name)?.limits)}
        rows={models.data?.models}
        rowKey={(model) => model.name}
        error={models.error}
        retry={() => void models.refetch()}
        empty={<EmptyState title={i18n.t({ id: 'operator.noModels', message: 'No models' })}>{i18n.t({ id: 'operator.noModelsText', message: 'Add models to the catalog file.' })}</EmptyState>}
      />
    </Page>
  );
}

function columns(limitsOf: (name: string) => LimitValues | null | undefined): Column<Model>[] {
  return [
    { id: 'name', header: i18n.t({ id: 'operator.model', message: 'Model' }), weight: 2, cell: (model) => shortName(model.name) },
    {
      id: 'state',
      header: i18n.t({ id: 'operator.state', message: 'Status' }),
      weight: 1.1,
      cell: (model) => (model.serving ? <StateChip tone="ok">{i18n.t({ id: 'operator.serving', message: 'Serving' })}</StateChip> : <StateChip tone="bad">{i18n.t({ id: 'operator.notServing', message: 'Not serving' })}</StateChip>),
    },
    { id: 'input', header: i18n.t({ id: 'operator.inputPrice', message: 'Input / 1M tokens' }), weight: 1.1, align: 'end', wide: true, cell: (model) => <Money usd={model.inputUsdPerMillion} style="rate" /> },
    { id: 'output', header: i18n.t({ id: 'operator.outputPrice', message: 'Output / 1M tokens' }), weight: 1.1, align: 'end', cell: (model) => <Money usd={model.outputUsdPerMillion} style="rate" /> },
    { id: 'workspace', header: i18n.t({ id: 'operator.onlyFor', message: 'Available to' }), weight: 1, wide: true, cell: (model) => (model.workspace ? <WorkspaceLink name={model.workspace} /> : i18n.t({ id: 'operator.everybody', message: 'All workspaces' })) },
    { id: 'capacity', header: i18n.t({ id: 'operator.capacity', message: 'Capacity limits' }), weight: 1.6, wide: true, cell: (model) => limitText(limitsOf(model.name)) },
  ];
}

// "600 requests/min · 8 concurrent", or "No limit".
export function limitText(limits: LimitValues | null | undefined): string {
  const parts: string[] = [];
  if (limits && limits.requestsPerMinute !== '0') parts.push(i18n.t({ id: 'operator.limitRequests', message: '{count} requests/min', values: { count: count(limits.requestsPerMinute) } }));
  if (limits && limits.tokensPerMinute !== '0') parts.push(i18n.t({ id: 'operator.limitTokens', message: '{count} tokens/min', values: { count: count(limits.tokensPerMinute) } }));
  if (limits && limits.concurrentRequests !== '0') parts.push(i18n.t({ id: 'operator.limitConcurrent', message: '{count} concurrent', values: { count: count(limits.concurrentRequests) } }));
  return parts.join(' · ') || i18n.t({ id: 'operator.noLimit', message: 'No limit' });
}
