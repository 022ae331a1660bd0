import { i18n } from '@lingui/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newRequestId, unwrap } from '@/api/client';
import { tableProps } from '@/api/paging';
import { queryClient } from '@/api/query';
import { idOf, type Schema } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { money } from '@/format/money';
import { ActionMenu, Button, Confirm, DataTable, EmptyState, Money, polling, StateChip, TextField, Time, type Column, type MenuAction } from '@/ui';
import { paymentsQuery } from './queries';
import { paymentState } from './words';

type Payment = Schema<'Payment'>;

export function refreshMoney(workspace: string): Promise<unknown> {
  return Promise.all(['payments', 'balance', 'transactions', 'statements', 'autoReload', 'paymentMethods'].map((key) => queryClient.invalidateQueries({ queryKey: [key, workspace] })));
}

// Payments, newest first. origin AUTO_RELOAD: only payments by auto-reload. Operators confirm and cancel transfers here.
export function Payments({ workspace, origin = '' }: { workspace: string; origin?: '' | 'AUTO_RELOAD' }) {
  const query = useInfiniteQuery({ ...paymentsQuery(workspace, origin), ...polling(POLL) });
  const may = usePermissions(workspace);
  const [act, setAct] = useState<{ kind: 'confirm' | 'cancel'; payment: Payment; requestId: string } | null>(null);
  const [text, setText] = useState('');
  const start = (kind: 'confirm' | 'cancel', payment: Payment) => {
    setText('');
    setAct({ kind, payment, requestId: newRequestId() });
  };
  const actions = (payment: Payment): MenuAction[] => {
    if (payment.state !== 'PAYMENT_STATE_AWAITING_TRANSFER') return [];
    const list: MenuAction[] = [];
    if (may('PaymentService/ConfirmPayment')) list.push({ label: i18n.t({ id: 'billing.confirm.verb', message: 'Confirm transfer' }), onClick: () => start('confirm', payment) });
    if (may('PaymentService/CancelPayment')) list.push({ label: i18n.t({ id: 'billing.cancel.verb', message: 'Cancel payment' }), danger: true, onClick: () => start('cancel', payment) });
    return list;
  };
  const columns: Column<Payment>[] = [
    { id: 'time', header: i18n.t({ id: 'billing.column.time', message: 'Time' }), cell: (one) => <Time at={one.createTime} exact />, weight: 2.4 },
    { id: 'amount', header: i18n.t({ id: 'billing.column.amount', message: 'Amount' }), cell: (one) => <Money usd={one.amountUsd} />, align: 'end', weight: 1.3 },
    { id: 'state', header: i18n.t({ id: 'billing.column.state', message: 'Status' }), cell: (one) => <State payment={one} />, weight: 2.2 },
    { id: 'how', header: i18n.t({ id: 'billing.column.how', message: 'Method' }), cell: how, weight: 1.6, wide: true },
    { id: 'reference', header: i18n.t({ id: 'billing.column.reference', message: 'Reference' }), cell: (one) => <code title={idOf(one.name)}>{one.providerId || idOf(one.name).slice(0, 12)}</code>, weight: 2, wide: true },
    {
      id: 'actions',
      header: i18n.t({ id: 'billing.column.actions', message: 'Actions' }),
      headerHidden: true,
      weight: 0.6,
      wide: true,
      align: 'end',
      cell: (one) => {
        const list = actions(one);
        return list.length > 0 ? <ActionMenu label={i18n.t({ id: 'billing.actionsOf', message: 'Actions for the payment of {amount}', values: { amount: money(one.amountUsd) } })} actions={list} /> : null;
      },
    },
  ];
  const shown = act && money(act.payment.amountUsd);
  return (
    <>
      <DataTable
        label={i18n.t({ id: 'billing.payments', message: 'Payments' })}
        what={i18n.t({ id: 'billing.payments.what', message: 'the payments' })}
        columns={columns}
        rowKey={(one) => one.name}
        empty={<EmptyState title={i18n.t({ id: 'billing.payments.none', message: 'No payments yet' })}>{origin ? i18n.t({ id: 'billing.payments.noReload', message: 'Auto-reload has not charged a card yet.' }) : i18n.t({ id: 'billing.payments.noneText', message: 'Payments add credit to this workspace.' })}</EmptyState>}
        {...tableProps(query, (page) => page.payments)}
      />
      <Confirm
        opened={act !== null}
        onClose={() => setAct(null)}
        danger={act?.kind === 'cancel'}
        title={act?.kind === 'cancel' ? i18n.t({ id: 'billing.cancel.title', message: 'Cancel payment' }) : i18n.t({ id: 'billing.confirm.title', message: 'Confirm transfer' })}
        verb={act?.kind === 'cancel' ? i18n.t({ id: 'billing.cancel.verb', message: 'Cancel payment' }) : i18n.t({ id: 'billing.confirm.verb', message: 'Confirm transfer' })}
        act={async () => {
          if (!act) return;
          const path = { workspace, payment: idOf(act.payment.name) };
          if (act.kind === 'confirm') await unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments/{payment}:confirm', { params: { path }, body: { requestId: act.requestId, reference: text } }));
          else await unwrap(api.POST('/admin/v1/workspaces/{workspace}/payments/{payment}:cancel', { params: { path }, body: { requestId: act.requestId, reason: text } }));
          await refreshMoney(workspace);
        }}
      >
        <p>
          {act?.kind === 'cancel'
            ? i18n.t({ id: 'billing.cancel.text', message: 'This cancels the payment of {shown}. If the transfer still arrives, it must be returned.', values: { shown } })
            : i18n.t({ id: 'billing.confirm.text', message: 'The transfer of {shown} has arrived. The credit is added immediately.', values: { shown } })}
        </p>
        <TextField label={act?.kind === 'cancel' ? i18n.t({ id: 'billing.cancel.reason', message: 'Reason' }) : i18n.t({ id: 'billing.confirm.reference', message: 'Bank reference' })} value={text} onChange={setText} />
      </Confirm>
    </>
  );
}

function State({ payment }: { payment: Payment }) {
  const { tone, text } = paymentState(payment);
  return (
    <>
      <StateChip tone={tone}>{text}</StateChip>{' '}
      {payment.state === 'PAYMENT_STATE_SUBMITTED' && payment.checkoutUrl && (
        <Button small onClick={() => location.assign(payment.checkoutUrl)}>
          {i18n.t({ id: 'billing.payment.pay', message: 'Pay' })}
        </Button>
      )}
      {payment.reason && <span className="quiet"> {payment.reason}</span>}
    </>
  );
}

function how(payment: Payment): string {
  if (payment.reload) return i18n.t({ id: 'billing.how.reload', message: 'Auto-reload' });
  return payment.provider === 'manual' ? i18n.t({ id: 'billing.how.manual', message: 'Bank transfer' }) : i18n.t({ id: 'billing.how.card', message: 'Checkout' });
}
