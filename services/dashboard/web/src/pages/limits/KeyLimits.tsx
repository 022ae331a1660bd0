import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { POLL_FAST } from '@/api/workspace';
import { paths } from '@/app/paths';
import { nanos } from '@/format/money';
import { ErrorState, Facts, LinkButton, Money, polling, RowSkeletons, SettingsForm, UsedBar, useSettings } from '@/ui';
import css from './limits.module.css';
import { mapOf, ModelRows, rowOf } from './ModelRows';
import { keyModelLimitsQuery, oneKeyLimitUsageQuery } from './queries';
import { Hour, InUse, LimitName, type Use } from './Use';
import { limitText } from './words';

type Key = Schema<'Key'>;

// The limits of one key, in total and by model.
export function KeyLimits({ workspace, apiKey, mayEdit }: { workspace: string; apiKey: Key; mayEdit: boolean }) {
  const key = idOf(apiKey.name);
  const query = useQuery(keyModelLimitsQuery(workspace, key));
  const usage = useQuery({ ...oneKeyLimitUsageQuery(workspace, key), ...polling(POLL_FAST) });
  const models = Object.entries(query.data?.modelLimits ?? {});
  return (
    <div className={css.stack}>
      {usage.data === undefined ? (
        usage.error ? <ErrorState error={usage.error} what={i18n.t({ id: 'limits.hour.what', message: 'the usage' })} retry={() => void usage.refetch()} /> : <RowSkeletons rows={3} />
      ) : usage.data.uses.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'limits.keyHasNone', message: 'This key has no limits of its own. The limits of the workspace apply.' })}</p>
      ) : (
        usage.data.uses.map((use) => <KeyUse key={`${use.model} ${use.kind}`} use={use} />)
      )}
      <Facts
        facts={[
          { label: i18n.t({ id: 'limits.column.spent', message: 'Spent this month' }), value: <Money usd={apiKey.monthSpentUsd} /> },
          { label: i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' }), value: apiKey.monthlyQuotaUsd == null ? i18n.t({ id: 'limits.none', message: 'None' }) : <Money usd={apiKey.monthlyQuotaUsd} /> },
        ]}
      />
      {apiKey.monthlyQuotaUsd != null && <UsedBar used={nanos(apiKey.monthSpentUsd) ?? 0n} limit={nanos(apiKey.monthlyQuotaUsd) ?? 0n} label={i18n.t({ id: 'limits.column.quota', message: 'Monthly quota' })} />}
      <div>
        <LinkButton small to={paths.key(workspace, key)}>
          {i18n.t({ id: 'limits.openKey', message: 'View API key' })}
        </LinkButton>
      </div>
      <h3 className={css.part}>{i18n.t({ id: 'limits.ofModels', message: 'Individual models' })}</h3>
      {query.data === undefined ? (
        query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'limits.what', message: 'the limits' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={2} />
      ) : mayEdit ? (
        <ModelForm workspace={workspace} apiKey={key} limits={query.data} />
      ) : models.length === 0 ? (
        <p className="quiet">{i18n.t({ id: 'limits.noModelLimits', message: 'No limits for individual models.' })}</p>
      ) : (
        <Facts facts={models.map(([model, values]) => ({ label: <code>{model}</code>, value: `${limitText(values.requestsPerMinute)} · ${limitText(values.tokensPerMinute)} · ${limitText(values.concurrentRequests)}` }))} />
      )}
    </div>
  );
}

function KeyUse({ use }: { use: Use }) {
  return (
    <div className={css.keyUse}>
      <LimitName use={use} />
      <div className={css.half}>
        <InUse use={use} />
        <Hour use={use} />
      </div>
      {use.hour && use.hour.refused !== '0' && (
        <p className={css.refused}>{i18n.t({ id: 'limits.refusedHour', message: '{count, plural, one {# request was refused in the last hour.} other {# requests were refused in the last hour.}}', values: { count: use.hour.refused } })}</p>
      )}
    </div>
  );
}

function ModelForm({ workspace, apiKey, limits }: { workspace: string; apiKey: string; limits: Schema<'KeyModelLimits'> }) {
  const stored = { modelLimits: Object.entries(limits.modelLimits).map(([model, values]) => rowOf(model, values)) };
  const save = async (values: typeof stored, requestId: string) => {
    const saved = await unwrap(
      api.PATCH('/admin/v1/workspaces/{workspace}/keys/{key}/modelLimits', {
        params: { path: { workspace, key: apiKey }, query: { requestId, updateMask: 'modelLimits' } },
        body: { modelLimits: mapOf(values.modelLimits) },
      }),
    );
    queryClient.setQueryData(keyModelLimitsQuery(workspace, apiKey).queryKey, saved);
    void queryClient.invalidateQueries({ queryKey: ['limits', workspace] });
  };
  const fields = useSettings(stored, save, i18n.t({ id: 'limits.saved', message: 'Limits changed' }));
  return (
    <SettingsForm fields={fields}>
      <ModelRows rows={fields.values.modelLimits} onChange={(rows) => fields.set('modelLimits', rows)} />
    </SettingsForm>
  );
}
