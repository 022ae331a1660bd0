import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import type { Schema } from '@/api/types';
import { usePermissions } from '@/api/workspace';
import { paths } from '@/app/paths';
import { typedAmount } from '@/format/money';
import { AmountField, Card, CheckboxField, EntriesField, ErrorState, Facts, Link, Money, RowSkeletons, SettingsForm, SwitchField, useSettings } from '@/ui';
import css from './billing.module.css';
import { alertsQuery } from './queries';

type Alerts = Schema<'AlertSettings'>;

// The alerts of the workspace about credit and spend, and their recipients.
export function AlertsCard({ workspace }: { workspace: string }) {
  const may = usePermissions(workspace);
  const query = useQuery(alertsQuery(workspace));
  return (
    <Card title={i18n.t({ id: 'billing.alerts', message: 'Alerts' })}>
      <div className={css.stack}>
      {query.data ? (
        may('AlertService/UpdateAlertSettings') ? <AlertsForm workspace={workspace} alerts={query.data} /> : <Facts facts={facts(query.data)} />
      ) : query.error ? (
        <ErrorState error={query.error} what={i18n.t({ id: 'billing.alerts.what', message: 'the alerts' })} retry={() => void query.refetch()} />
      ) : (
        <RowSkeletons rows={5} />
      )}
      {may('AlertService/ListWebhooks') && (
        <p className="quiet">
          {i18n.t({ id: 'billing.alerts.webhooks', message: 'To receive alerts in your own systems, add a webhook in' })} <Link to={paths.settings(workspace)}>{i18n.t({ id: 'billing.alerts.settings', message: 'Settings' })}</Link>
        </p>
      )}
      </div>
    </Card>
  );
}

function facts(alerts: Alerts) {
  return [
    { label: i18n.t({ id: 'billing.alerts.emails', message: 'Email addresses' }), value: alerts.emails.join(', ') || '—' },
    { label: i18n.t({ id: 'billing.alerts.low', message: 'When available credit falls below' }), value: <Money usd={alerts.lowBalanceUsd} /> },
    { label: i18n.t({ id: 'billing.alerts.percents', message: 'When monthly spend reaches' }), value: alerts.capPercents.map((one) => i18n.t({ id: 'billing.alerts.percent', message: '{one}%', values: { one } })).join(', ') || '—' },
  ];
}

function AlertsForm({ workspace, alerts }: { workspace: string; alerts: Alerts }) {
  const stored = { emails: alerts.emails, lowBalanceUsd: alerts.lowBalanceUsd, at50: alerts.capPercents.includes(50), at80: alerts.capPercents.includes(80), at100: alerts.capPercents.includes(100), reloadPaused: alerts.reloadPaused };
  const save = async (values: typeof stored, requestId: string) => {
    const lowBalanceUsd = typedAmount(values.lowBalanceUsd || '0');
    if (lowBalanceUsd === null) {
      return { lowBalanceUsd: i18n.t({ id: 'billing.notAmount', message: 'Enter an amount in USD, for example 25.00.' }) };
    }
    const capPercents = [values.at50 && 50, values.at80 && 80, values.at100 && 100].filter((one): one is number => one !== false);
    const saved = await unwrap(
      api.PATCH('/admin/v1/workspaces/{workspace}/alertSettings', {
        params: { path: { workspace }, query: { requestId, updateMask: 'emails,lowBalanceUsd,capPercents,reloadPaused' } },
        body: { emails: values.emails, lowBalanceUsd, capPercents, reloadPaused: values.reloadPaused },
      }),
    );
    queryClient.setQueryData(alertsQuery(workspace).queryKey, saved);
  };
  const fields = useSettings(stored, save, i18n.t({ id: 'billing.alerts.saved', message: 'Alerts saved' }));
  return (
    <SettingsForm fields={fields}>
      <EntriesField label={i18n.t({ id: 'billing.alerts.emails', message: 'Email addresses' })} hint={i18n.t({ id: 'billing.alerts.emailsHint', message: 'Up to 10. Press Enter after each address.' })} {...fields.bind('emails')} />
      <AmountField label={i18n.t({ id: 'billing.alerts.low', message: 'When available credit falls below' })} hint={i18n.t({ id: 'billing.alerts.lowHint', message: '0 turns this alert off. It is sent once, and again after the credit has recovered.' })} {...fields.bind('lowBalanceUsd')} />
      <div className={css.stack} role="group" aria-label={i18n.t({ id: 'billing.alerts.percents', message: 'When monthly spend reaches' })}>
        <strong className={css.legend}>{i18n.t({ id: 'billing.alerts.percents', message: 'When monthly spend reaches' })}</strong>
        <CheckboxField label={i18n.t({ id: 'billing.alerts.at50', message: '50% of the cap' })} {...fields.bind('at50')} />
        <CheckboxField label={i18n.t({ id: 'billing.alerts.at80', message: '80% of the cap' })} {...fields.bind('at80')} />
        <CheckboxField label={i18n.t({ id: 'billing.alerts.at100', message: '100% of the cap' })} {...fields.bind('at100')} />
      </div>
      <SwitchField label={i18n.t({ id: 'billing.alerts.reload', message: 'When auto-reload is paused' })} {...fields.bind('reloadPaused')} />
    </SettingsForm>
  );
}
