import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { queryClient } from '@/api/query';
import type { Schema } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { useWorkspace } from '@/app/search';
import { money, nanos, percent, typedAmount } from '@/format/money';
import { AmountField, Button, Card, Dialog, DialogForm, ErrorState, Money, Notice, polling, RowSkeletons, SwitchField, toast, UsedBar, useFields } from '@/ui';
import { WhoCan } from '@/ui/WhoCan';
import { AlertsCard } from './Alerts';
import css from './billing.module.css';
import { BillingFrame } from './BillingFrame';
import { usedOfCap } from './cap';
import { MonthEnd } from './MonthEnd';
import { capQuery } from './queries';

type Cap = Schema<'Cap'>;

export default function CapPage() {
  const workspace = useWorkspace();
  const may = usePermissions(workspace);
  const query = useQuery({ ...capQuery(workspace), ...polling(POLL) });
  const [changing, setChanging] = useState(false);
  const cap = query.data;
  const canChange = may('LedgerService/UpdateCap');
  return (
    <BillingFrame workspace={workspace} title={i18n.t({ id: 'billing.cap.title', message: 'Cap and alerts' })}>
      <div className={css.two}>
        <Card
          title={i18n.t({ id: 'billing.cap.card', message: 'Monthly cap' })}
          actions={
            cap && canChange && (
              <Button small onClick={() => setChanging(true)}>
                {i18n.t({ id: 'billing.cap.change', message: 'Change cap' })}
              </Button>
            )
          }
        >
          {cap ? <CapState cap={cap} /> : query.error ? <ErrorState error={query.error} what={i18n.t({ id: 'billing.cap.what', message: 'the cap' })} retry={() => void query.refetch()} /> : <RowSkeletons rows={3} />}
          {cap && !canChange && <WhoCan workspace={workspace} roles={['owner']} />}
        </Card>
        {may('AlertService/GetAlertSettings') && <AlertsCard workspace={workspace} />}
      </div>
      <Dialog opened={changing} onClose={() => setChanging(false)} title={i18n.t({ id: 'billing.cap.change', message: 'Change cap' })}>
        {changing && cap && <CapForm workspace={workspace} cap={cap} onClose={() => setChanging(false)} />}
      </Dialog>
    </BillingFrame>
  );
}

function CapState({ cap }: { cap: Cap }) {
  const limit = nanos(cap.capUsd);
  if (limit === null) {
    return (
      <div className={css.stack}>
        <p>{i18n.t({ id: 'billing.cap.none', message: 'No cap. Requests can spend all available credit.' })}</p>
        <span className="quiet">{i18n.t({ id: 'billing.cap.spentOnly', message: '{spent} spent this month', values: { spent: money(cap.monthSpentUsd) } })}</span>
      </div>
    );
  }
  const reached = usedOfCap(cap) >= limit;
  return (
    <div className={css.stack}>
      {reached && <Notice tone="bad">{i18n.t({ id: 'billing.cap.reached', message: 'The cap is reached. New requests fail with 402 insufficient_credits until the month ends or an owner raises the cap.' })}</Notice>}
      <span>
        <Money usd={cap.monthSpentUsd} /> {i18n.t({ id: 'billing.ofCap', message: 'of {cap}', values: { cap: money(cap.capUsd) } })} · {percent(usedOfCap(cap), limit)}
      </span>
      <UsedBar used={usedOfCap(cap)} limit={limit} label={i18n.t({ id: 'billing.capUsed', message: 'Cap used (spent and held)' })} />
      <span className="quiet">
        {(nanos(cap.monthHeldUsd) ?? 0n) > 0n && <>{i18n.t({ id: 'billing.cap.held', message: 'including {held} held', values: { held: money(cap.monthHeldUsd, 'exact') } })} · </>}
        <MonthEnd />
      </span>
    </div>
  );
}

function CapForm({ workspace, cap, onClose }: { workspace: string; cap: Cap; onClose: () => void }) {
  const [requestId] = useState(newRequestId);
  const fields = useFields({ limited: cap.capUsd != null, capUsd: cap.capUsd ?? '' }, async (values) => {
    const capUsd = values.limited ? typedAmount(values.capUsd) : undefined;
    if (capUsd === null) {
      return { capUsd: i18n.t({ id: 'billing.notAmount', message: 'Enter an amount in USD, for example 25.00.' }) };
    }
    const saved = await unwrap(
      api.PATCH('/admin/v1/workspaces/{workspace}/cap', { params: { path: { workspace }, query: { requestId, updateMask: 'capUsd' } }, body: capUsd === undefined ? {} : { capUsd } }),
    );
    queryClient.setQueryData(capQuery(workspace).queryKey, saved);
    void queryClient.invalidateQueries({ queryKey: ['balance', workspace] });
    toast(i18n.t({ id: 'billing.cap.saved', message: 'Cap changed. It applies from the next request.' }));
    onClose();
  });
  const typed = nanos(typedAmount(fields.values.capUsd));
  const below = fields.values.limited && typed !== null && typed <= usedOfCap(cap);
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'billing.cap.change', message: 'Change cap' })} onCancel={onClose} danger={below}>
      <SwitchField label={i18n.t({ id: 'billing.cap.limited', message: 'Set a monthly cap' })} {...fields.bind('limited')} />
      {fields.values.limited && <AmountField label={i18n.t({ id: 'billing.cap.amount', message: 'Monthly cap' })} autoFocus {...fields.bind('capUsd')} />}
      {below && <Notice tone="warn">{i18n.t({ id: 'billing.cap.below', message: '{spent} is already spent or held. With this cap, new requests fail with 402 until the month ends.', values: { spent: money(cap.monthSpentUsd) } })}</Notice>}
    </DialogForm>
  );
}
