import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
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
import { Payments } from './Payments';
import { autoReloadQuery } from './queries';

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

function reasonText(reason: string): string {
  switch (reason) {
    case 'no_payment_method':
      return i18n.t({ id: 'billing.reload.noMethod', message: 'Auto-reload is paused because no card is saved. Add a card, then resume.' });
    case 'refunded':
      return i18n.t({ id: 'billing.reload.refunded', message: 'Auto-reload is paused because a payment was refunded. If the balance is below the threshold, resuming charges the card.' });
    case 'debited':
      return i18n.t({ id: 'billing.reload.debited', message: 'Auto-reload is paused because credit was deducted by an adjustment. If the balance is below the threshold, resuming charges the card.' });
    case 'disputed':
      return i18n.t({ id: 'billing.reload.disputed', message: 'Auto-reload is paused because a payment is disputed. The card of that payment is not charged again. Add another card, then resume.' });
    case 'fraud_warning':
      return i18n.t({ id: 'billing.reload.fraudWarning', message: 'Auto-reload is paused because the card issuer reported a payment as probable fraud. That card is not charged again. Add another card, then resume.' });
    case 'card_disputed':
      return i18n.t({ id: 'billing.reload.cardDisputed', message: 'Auto-reload is paused because a payment with the saved card is disputed. Add another card, then resume.' });
    case 'card_refused':
      return i18n.t({ id: 'billing.reload.cardRefused', message: 'Auto-reload is paused because the card issuer refuses the saved card for good. That card is not charged again. Add another card, then resume.' });
    case 'authentication_required':
      return i18n.t({ id: 'billing.reload.authentication', message: 'Auto-reload is paused because your bank wants you to confirm the charge. Pay on the page of the open payment; auto-reload then continues.' });
    case 'monthly_ceiling':
      return i18n.t({ id: 'billing.reload.atCeiling', message: 'Auto-reload is paused because this month’s reload limit is reached. It resumes next month, or when you raise the limit.' });
    case 'hourly_limit':
      return i18n.t({ id: 'billing.reload.hourlyLimit', message: 'Auto-reload is paused because the card was charged too often within an hour. It resumes by itself. A larger reload amount avoids this.' });
    case 'daily_limit':
      return i18n.t({ id: 'billing.reload.dailyLimit', message: 'Auto-reload is paused because the card was charged too often within a day. It resumes by itself. A larger reload amount avoids this.' });
  }
  if (reason.startsWith('declined')) return i18n.t({ id: 'billing.reload.declined', message: 'Auto-reload is paused because the card was declined four times ({reason}). Add another card or contact your bank, then resume.', values: { reason: reason.replace(/^declined:?\s*/, '') } });
  return i18n.t({ id: 'billing.reload.otherReason', message: 'Auto-reload is paused: {reason}', values: { reason } });
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
            <Button small busy={busy} onClick={() => void resume()}>
              {i18n.t({ id: 'billing.reload.resume', message: 'Resume' })}
            </Button>
          )
        }
      >
        {reasonText(reload.pauseReason)}
      </Notice>
      {error != null && <Failure error={error} />}
    </>
  );
}
