// The catalog: price, capabilities and status of each model.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { POLL, modelsQuery } from '@/api/workspace';
import { paths } from '@/app/paths';
import { useSearchState, useWorkspace } from '@/app/search';
import { count } from '@/format/money';
import { Button, Copy, DataTable, EmptyState, Filters, Money, Page, polling, SelectField, TextField, type Column } from '@/ui';
import { Calculator } from './Calculator';
import { capabilityName, modelId, type Model } from './models';
import { Capabilities, Serving } from './parts';
import css from './models.module.css';

interface State {
  query: string;
  capability: string;
}

function parse(search: Record<string, unknown>): State {
  const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : '');
  return { query: text(search.query), capability: text(search.capability) };
}

export default function ModelsPage() {
  const workspace = useWorkspace();
  const [state, set] = useSearchState(parse);
  const models = useQuery({ ...modelsQuery(), ...polling(POLL * 4) });
  const all = models.data?.models;
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = all?.filter(
    (model) =>
      words.every((word) => `${modelId(model)} ${model.displayName} ${model.description}`.toLowerCase().includes(word)) &&
      (state.capability === '' || model.capabilities.includes(state.capability)),
  );
  const capabilities = [...new Set(all?.flatMap((model) => model.capabilities))].sort();
  return (
    <Page title={i18n.t({ id: 'models.models.title', message: 'Models' })} subtitle={i18n.t({ id: 'models.about', message: 'Prices in USD per million tokens. You pay only for tokens: requests without output are free.' })}>
      <Filters>
        <div className={css.search}>
          <TextField label={i18n.t({ id: 'models.search', message: 'Search' })} placeholder={i18n.t({ id: 'models.searchHint', message: 'Name or model ID' })} type="search" value={state.query} onChange={(query) => set({ query }, { replace: true })} />
        </div>
        <div className={css.pick}>
          <SelectField
            label={i18n.t({ id: 'models.col.can', message: 'Capabilities' })}
            value={state.capability}
            options={[{ value: '', label: i18n.t({ id: 'models.anything', message: 'All capabilities' }) }, ...capabilities.map((one) => ({ value: one, label: capabilityName(one) }))]}
            onChange={(capability) => set({ capability })}
          />
        </div>
      </Filters>
      <DataTable
        label={i18n.t({ id: 'models.models.title', message: 'Models' })}
        columns={columns()}
        rows={shown}
        rowKey={modelId}
        rowLink={(model) => paths.model(workspace, modelId(model))}
        error={models.error}
        retry={() => void models.refetch()}
        what={i18n.t({ id: 'models.what', message: 'the models' })}
        empty={
          all?.length === 0 ? (
            <EmptyState title={i18n.t({ id: 'models.none', message: 'No models yet' })}>{i18n.t({ id: 'models.noneText', message: 'The operator adds models to the catalog.' })}</EmptyState>
          ) : (
            <EmptyState title={i18n.t({ id: 'models.noMatch', message: 'No models match' })} action={<Button onClick={() => set({ query: '', capability: '' })}>{i18n.t({ id: 'models.clear', message: 'Clear search' })}</Button>}>
              {i18n.t({ id: 'models.noMatchText', message: 'No model has this name and this capability.' })}
            </EmptyState>
          )
        }
      />
      {all && all.length > 0 && <Calculator models={all} />}
    </Page>
  );
}

function columns(): Column<Model>[] {
  return [
    {
      id: 'id',
      header: i18n.t({ id: 'models.col.id', message: 'Model ID' }),
      weight: 2,
      cell: (model) => <span title={model.displayName}>{modelId(model)}</span>,
    },
    { id: 'copy', header: i18n.t({ id: 'models.copy', message: 'Copy model ID' }), headerHidden: true, weight: 0.8, wide: true, cell: (model) => <Copy value={modelId(model)} label={i18n.t({ id: 'models.copy', message: 'Copy model ID' })} bare /> },
    { id: 'in', header: i18n.t({ id: 'models.col.in', message: 'Input / 1M' }), align: 'end', cell: (model) => <Money usd={model.inputUsdPerMillion} style="rate" /> },
    { id: 'out', header: i18n.t({ id: 'models.col.out', message: 'Output / 1M' }), align: 'end', cell: (model) => <Money usd={model.outputUsdPerMillion} style="rate" /> },
    { id: 'window', header: i18n.t({ id: 'models.col.window', message: 'Context' }), align: 'end', wide: true, cell: (model) => count(model.contextWindow) },
    { id: 'max', header: i18n.t({ id: 'models.col.max', message: 'Max output' }), align: 'end', wide: true, cell: (model) => count(model.maxOutputTokens) },
    { id: 'can', header: i18n.t({ id: 'models.col.can', message: 'Capabilities' }), weight: 2.2, wide: true, cell: (model) => <Capabilities model={model} /> },
    { id: 'state', header: i18n.t({ id: 'models.col.state', message: 'Status' }), weight: 1.1, wide: true, cell: (model) => <Serving model={model} /> },
  ];
}
