import { i18n } from '@lingui/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { asApiError } from '@/api/errors';
import { queryClient } from '@/api/query';
import type { Schema } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { useWorkspace } from '@/app/search';
import { absolute, UTC } from '@/format/time';
import { money, nanos, typedAmount } from '@/format/money';
import { AmountField, Button, Card, ErrorState, Facts, Failure, Money, Notice, polling, RowSkeletons, SettingsForm, StateChip, SwitchField, UsedBar, useSettings, type Tone } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import css from './billing.module.css';
import { BillingFrame } from './BillingFrame';
import { Methods } from './Methods';
import { MonthEnd } from './MonthEnd';
import { CONFIRM, pauseText } from './pause';
import { Payments } from './Payments';
import { autoReloadQuery, paymentsQuery } from './queries';

type AutoReload = Schema<'AutoReload'>;

export default function AutoReloadPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const query = useQuery({ ...autoReloadQuery(workspace), ...polling(POLL) });
  const reload = query.data;
  const canEdit = may('PaymentService/UpdateAutoReload');
  return (
    <BillingFrame workspace={workspace} title={i18n.t({ id: 'billing.reload.title', message: 'Auto-reload' })}>
      {reload?.state === 'AUTO_RELOAD_STATE_PAUSED' && <Paused workspace={workspace} reload={reload} mayResume={may('PaymentService/ResumeAutoReload')} />}
      <div className={css.two}>
        <Card title={i18n.t({ id: 'billing.reload.settings', message: 'Auto-reload settings' })} subtitle={reload && <ReloadState reload={reload} />}>
          {reload === undefined ? (
            query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'billing.reload.what', message: 'auto-reload' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={4} />
          ) : canEdit ? (
            <ReloadForm workspace={workspace} reload={reload} />
          ) : (
            <div className={css.stack}>
              <Facts facts={readOnly(reload)} />
              <WhoCan workspace={workspace} roles={['owner', 'billing']} />
            </div>
          )}
        </Card>
        <div className={css.stack}>
          {reload && <MonthCharged reload={reload} />}
          {may('PaymentService/ListPaymentMethods') && <Methods workspace={workspace} />}
        </div>
      </div>
      <h2>{i18n.t({ id: 'billing.reload.history', message: 'History' })}</h2>
      <Payments workspace={workspace} origin="AUTO_RELOAD" />
    </BillingFrame>
  );
}

function ReloadForm({ workspace, reload }: { workspace: string; reload: AutoReload }) {
  const stored = { enabled: reload.enabled, thresholdUsd: reload.thresholdUsd, amountUsd: reload.amountUsd, monthlyCeilingUsd: reload.monthlyCeilingUsd };
  const save = async (values: typeof stored, requestId: string) => {
    const names = ['thresholdUsd', 'amountUsd', 'monthlyCeilingUsd'] as const;
    const bad = names.filter((name) => typedAmount(values[name]) === null);
    if (bad.length > 0) {
      return Object.fromEntries(bad.map((name) => [name, i18n.t({ id: 'billing.notAmount', message: 'Enter an amount in USD, for example 25.00.' })]));
    }
    const amounts = Object.fromEntries(names.map((name) => [name, typedAmount(values[name])!]));
    const saved = await unwrap(
      api.PATCH('/admin/v1/workspaces/{workspace}/autoReload', {
        params: { path: { workspace }, query: { requestId, updateMask: 'enabled,thresholdUsd,amountUsd,monthlyCeilingUsd' } },
        body: { enabled: values.enabled, ...amounts },
      }),
    );
    queryClient.setQueryData(autoReloadQuery(workspace).queryKey, saved);
  };
  const fields = useSettings(stored, save, i18n.t({ id: 'billing.reload.saved', message: 'Auto-reload saved' }));
  return (
    <SettingsForm fields={fields}>
      <SwitchField label={i18n.t({ id: 'billing.reload.enabled', message: 'Charge the saved card when the balance is low' })} {...fields.bind('enabled')} />
      <AmountField label={i18n.t({ id: 'billing.reload.threshold', message: 'When the balance falls below' })} {...fields.bind('thresholdUsd')} />
      <AmountField label={i18n.t({ id: 'billing.reload.amount', message: 'Reload amount' })} hint={i18n.t({ id: 'billing.reload.amountHint', message: 'In USD, with at most two decimals. At least the threshold, so that one charge is enough.' })} {...fields.bind('amountUsd')} />
      <AmountField label={i18n.t({ id: 'billing.reload.ceiling', message: 'Monthly reload limit' })} hint={i18n.t({ id: 'billing.reload.ceilingHint', message: 'Auto-reload pauses at this amount until the next UTC month.' })} {...fields.bind('monthlyCeilingUsd')} />
    </SettingsForm>
  );
}

function MonthCharged({ reload }: { reload: AutoReload }) {
  const ceiling = nanos(reload.monthlyCeilingUsd) ?? 0n;
  return (
    <Card title={i18n.t({ id: 'billing.reload.month', message: 'Charged this month' })}>
      <div className={css.stack}>
        <span>
          <Money usd={reload.monthChargedUsd} /> {ceiling > 0n && i18n.t({ id: 'billing.ofCap', message: 'of {cap}', values: { cap: money(reload.monthlyCeilingUsd) } })}
        </span>
        {ceiling > 0n && <UsedBar used={nanos(reload.monthChargedUsd) ?? 0n} limit={ceiling} label={i18n.t({ id: 'billing.reload.month', message: 'Charged this month' })} />}
        <span className="quiet"><MonthEnd /></span>
      </div>
    </Card>
  );
}

function readOnly(reload: AutoReload) {
  return [
    { label: i18n.t({ id: 'billing.reload.threshold', message: 'When the balance falls below' }), value: <Money usd={reload.thresholdUsd} /> },
    { label: i18n.t({ id: 'billing.reload.amount', message: 'Reload amount' }), value: <Money usd={reload.amountUsd} /> },
    { label: i18n.t({ id: 'billing.reload.ceiling', message: 'Monthly reload limit' }), value: <Money usd={reload.monthlyCeilingUsd} /> },
  ];
}

function ReloadState({ reload }: { reload: AutoReload }) {
  const [tone, text] = stateOf(reload);
  return <StateChip tone={tone}>{text}</StateChip>;
}

function stateOf(reload: AutoReload): [Tone | 'quiet', string] {
  if (reload.state === 'AUTO_RELOAD_STATE_PAUSED') return ['bad', i18n.t({ id: 'billing.reload.paused', message: 'Paused' })];
  if (!reload.enabled) return ['quiet', i18n.t({ id: 'billing.reload.off', message: 'Off' })];
  switch (reload.state) {
    case 'AUTO_RELOAD_STATE_REQUESTED':
    case 'AUTO_RELOAD_STATE_SUBMITTED':
      return ['info', i18n.t({ id: 'billing.reload.charging', message: 'Charge in progress' })];
    case 'AUTO_RELOAD_STATE_UNKNOWN':
      return ['warn', i18n.t({ id: 'billing.reload.unknown', message: 'Checking a charge with the provider' })];
    case 'AUTO_RELOAD_STATE_BACKOFF':
      return ['warn', i18n.t({ id: 'billing.reload.backoff', message: 'Declined, next attempt {time}', values: { time: absolute(reload.nextAttemptTime, UTC, 'minute') } })];
    default:
      return ['ok', i18n.t({ id: 'billing.reload.on', message: 'On' })];
  }
}

// Leads to the page on which the bank can ask for its confirmation; payments has opened it.
function ConfirmAtBank({ workspace }: { workspace: string }) {
  const query = useInfiniteQuery({ ...paymentsQuery(workspace, 'CUSTOMER'), ...polling(POLL) });
  const page = query.data?.pages.flatMap((one) => one.payments).find((one) => one.actor === 'payments' && one.state === 'PAYMENT_STATE_SUBMITTED' && one.checkoutUrl);
  if (!page) return null;
  return (
    <Button small onClick={() => location.assign(page.checkoutUrl)}>
      {i18n.t({ id: 'billing.reload.confirmAtBank', message: 'Pay and confirm' })}
    </Button>
  );
}

function Paused({ workspace, reload, mayResume }: { workspace: string; reload: AutoReload; mayResume: boolean }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [requestId] = useState(newRequestId);
  const resume = async () => {
    setBusy(true);
    setError(null);
    try {
      const saved = await unwrap(api.POST('/admin/v1/workspaces/{workspace}/autoReload:resume', { params: { path: { workspace } }, body: { requestId } }));
      queryClient.setQueryData(autoReloadQuery(workspace).queryKey, saved);
    } catch (caught) {
      setError(asApiError(caught));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Notice
        tone="bad"
        action={
          mayResume && (
            <>
              {reload.pauseReason === CONFIRM && <ConfirmAtBank workspace={workspace} />}
              <Button small busy={busy} onClick={() => void resume()}>
                {i18n.t({ id: 'billing.reload.resume', message: 'Resume' })}
              </Button>
            </>
          )
        }
      >
        {pauseText(reload.pauseReason)}
      </Notice>
      {error != null && <Failure error={error} />}
    </>
  );
}
