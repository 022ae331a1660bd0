import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { paths } from '@/app/paths';
import { nanos } from '@/format/money';
import { Button, ErrorState, Facts, Form, LinkButton, Money, RowSkeletons, toast, UsedBar, useFields } from '@/ui';
import css from './limits.module.css';
import { mapOf, ModelRows, rowOf } from './ModelRows';
import { keyModelLimitsQuery } from './queries';
import { limitText } from './words';

type Key = Schema<'Key'>;

// Of one key: its own limits, and those for single models.
export function KeyLimits({ workspace, apiKey, mayEdit }: { workspace: string; apiKey: Key; mayEdit: boolean }) {
  const key = idOf(apiKey.name);
  const query = useQuery(keyModelLimitsQuery(workspace, key));
  const models = Object.entries(query.data?.modelLimits ?? {});
  return (
    <div className={css.stack}>
      <Facts
        facts={[
          { label: i18n.t({ id: 'limits.requests', message: 'Requests per minute' }), value: limitText(apiKey.limits?.requestsPerMinute) },
          { label: i18n.t({ id: 'limits.tokens', message: 'Tokens per minute' }), value: limitText(apiKey.limits?.tokensPerMinute) },
          { label: i18n.t({ id: 'limits.concurrent', message: 'Requests at the same time' }), value: limitText(apiKey.limits?.concurrentRequests) },
          { label: i18n.t({ id: 'limits.column.spent', message: 'Spent this month' }), value: <Money usd={apiKey.monthSpentUsd} /> },
          { label: i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' }), value: apiKey.monthlyQuotaUsd == null ? i18n.t({ id: 'limits.none', message: 'none' }) : <Money usd={apiKey.monthlyQuotaUsd} /> },
        ]}
      />
      {apiKey.monthlyQuotaUsd != null && <UsedBar used={nanos(apiKey.monthSpentUsd) ?? 0n} limit={nanos(apiKey.monthlyQuotaUsd) ?? 0n} label={i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' })} />}
      <div>
        <LinkButton small to={paths.key(workspace, key)}>
          {i18n.t({ id: 'limits.openKey', message: 'Open the key' })}
        </LinkButton>
      </div>
      <h3 className={css.part}>{i18n.t({ id: 'limits.ofModels', message: 'Single models' })}</h3>
      {query.data === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'limits.what', message: 'the limits' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={2} />
      ) : mayEdit ? (
        <ModelForm key={JSON.stringify(query.data.modelLimits)} workspace={workspace} apiKey={key} limits={query.data} />
      ) : models.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'limits.noModelLimits', message: 'No limits for single models.' })}</p>
      ) : (
        <Facts facts={models.map(([model, values]) => ({ label: <code>{model}</code>, value: `${limitText(values.requestsPerMinute)} · ${limitText(values.tokensPerMinute)} · ${limitText(values.concurrentRequests)}` }))} />
      )}
    </div>
  );
}

function ModelForm({ workspace, apiKey, limits }: { workspace: string; apiKey: string; limits: Schema<'KeyModelLimits'> }) {
  const [requestId, setRequestId] = useState(newRequestId);
  const fields = useFields({ modelLimits: Object.entries(limits.modelLimits).map(([model, values]) => rowOf(model, values)) }, async (values) => {
    try {
      const saved = await unwrap(
        api.PATCH('/admin/v1/workspaces/{workspace}/keys/{key}/modelLimits', {
          params: { path: { workspace, key: apiKey }, query: { requestId, updateMask: 'modelLimits' } },
          body: { modelLimits: mapOf(values.modelLimits) },
        }),
      );
      queryClient.setQueryData(keyModelLimitsQuery(workspace, apiKey).queryKey, saved);
      toast(i18n.t({ id: 'limits.saved', message: 'Limits changed' }));
    } finally {
      setRequestId(newRequestId());
    }
  });
  return (
    <Form
      fields={fields}
      actions={
        <Button type="submit" kind="primary" busy={fields.busy}>
          {i18n.t({ id: 'limits.save', message: 'Save' })}
        </Button>
      }
    >
      <ModelRows rows={fields.values.modelLimits} onChange={(rows) => fields.set('modelLimits', rows)} />
    </Form>
  );
}
