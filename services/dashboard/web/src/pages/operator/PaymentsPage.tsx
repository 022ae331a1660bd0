import { i18n } from '@lingui/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import { asApiError } from '@/api/errors';
import { idOf, type Schema } from '@/api/types';
import { POLL, usePermissions } from '@/api/workspace';
import { useSearchState } from '@/app/search';
import { typedAmount } from '@/format/money';
import { IconRefresh } from '@/icons';
import { AmountField, Button, Confirm, Copy, DataTable, Dialog, DialogActions, DialogForm, EmptyState, Facts, Failure, Filters, Money, Notice, Page, polling, SelectField, SidePanel, TextField, Time, useFields, type Column } from '@/ui';
import css from './operator.module.css';
import { PaymentState, ReasonDialog, useChanged, WorkspaceLink } from './parts';
import { cancelPayment, confirmPayment, paymentsQuery, reconcilePayments, refundPayment, type Payment } from './queries';

const STATES = ['AWAITING_TRANSFER', '', 'SUCCEEDED', 'DECLINED', 'UNKNOWN', 'CANCELLED'] as const;

function viewName(state: string): string {
  switch (state) {
    case 'AWAITING_TRANSFER':
      return i18n.t({ id: 'operator.viewAwaiting', message: 'To confirm' });
    case 'SUCCEEDED':
      return i18n.t({ id: 'operator.viewSucceeded', message: 'Paid' });
    case 'DECLINED':
      return i18n.t({ id: 'operator.viewDeclined', message: 'Declined' });
    case 'UNKNOWN':
      return i18n.t({ id: 'operator.viewUnknown', message: 'Checking with provider' });
    case 'CANCELLED':
      return i18n.t({ id: 'operator.viewCancelled', message: 'Cancelled' });
    default:
      return i18n.t({ id: 'operator.viewAll', message: 'All, newest first' });
  }
}

export default function PaymentsPage() {
  const may = usePermissions(null);
  const [search, setSearch] = useSearchState((raw) => ({
    state: raw.state === 'ALL' ? '' : (STATES.find((one) => one !== '' && one === raw.state) ?? 'AWAITING_TRANSFER'),
    open: typeof raw.open === 'string' ? raw.open : '',
  }));
  const query = useInfiniteQuery({ ...paymentsQuery('-', search.state), ...polling(POLL), placeholderData: keepPreviousData });
  const rows = query.data?.pages.flatMap((page) => page.payments);
  const open = rows?.find((payment) => payment.name === search.open);
  const [reconciling, setReconciling] = useState(false);
  return (
    <Page
      title={i18n.t({ id: 'operator.payments.title', message: 'Payments' })}
      subtitle={i18n.t({ id: 'operator.paymentsText', message: 'Payments of all workspaces. A bank transfer becomes credit when you confirm it. Amounts in USD.' })}
      actions={may('PaymentService/ReconcilePayments') && <Button icon={IconRefresh} onClick={() => setReconciling(true)}>{i18n.t({ id: 'operator.reconcile', message: 'Reconcile with provider' })}</Button>}
    >
      <Filters>
        <SelectField label={i18n.t({ id: 'operator.show', message: 'Show' })} value={search.state || 'ALL'} options={STATES.map((state) => ({ value: state || 'ALL', label: viewName(state) }))} onChange={(state) => setSearch({ state, open: '' } as never)} />
      </Filters>
      <DataTable<Payment>
        label={i18n.t({ id: 'operator.payments.title', message: 'Payments' })}
        what={i18n.t({ id: 'operator.paymentsWhat', message: 'the payments' })}
        columns={columns()}
        rows={rows}
        rowKey={(payment) => payment.name}
        onOpen={(payment) => setSearch({ open: payment.name })}
        openKey={open?.name ?? null}
        error={query.error}
        retry={() => void query.refetch()}
        busy={query.isPlaceholderData}
        hasMore={query.hasNextPage}
        loadingMore={query.isFetchingNextPage}
        onMore={() => void query.fetchNextPage()}
        empty={
          search.state === 'AWAITING_TRANSFER' ? (
            <EmptyState title={i18n.t({ id: 'operator.noneToConfirm', message: 'No payments to confirm' })}>{i18n.t({ id: 'operator.noneToConfirmText', message: 'Bank transfers that customers have announced appear here.' })}</EmptyState>
          ) : (
            <EmptyState title={i18n.t({ id: 'operator.noPayments', message: 'No matching payments' })} />
          )
        }
      />
      <SidePanel opened={open !== undefined} onClose={() => setSearch({ open: '' })} title={i18n.t({ id: 'operator.payment', message: 'Payment' })}>
        {open && <PaymentPanel payment={open} onDone={() => setSearch({ open: '' })} />}
      </SidePanel>
      <ReconcileDialog opened={reconciling} onClose={() => setReconciling(false)} />
    </Page>
  );
}

function columns(): Column<Payment>[] {
  return [
    { id: 'time', header: i18n.t({ id: 'operator.created', message: 'Created' }), weight: 1.5, cell: (payment) => <Time at={payment.createTime} exact /> },
    { id: 'workspace', header: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), weight: 1.2, wide: true, cell: (payment) => <WorkspaceLink name={payment.name} /> },
    { id: 'state', header: i18n.t({ id: 'operator.state', message: 'Status' }), weight: 1.3, cell: (payment) => <PaymentState payment={payment} /> },
    { id: 'provider', header: i18n.t({ id: 'operator.provider', message: 'Provider' }), weight: 0.8, wide: true, cell: (payment) => payment.provider },
    { id: 'actor', header: i18n.t({ id: 'operator.by', message: 'By' }), weight: 1.4, wide: true, cell: (payment) => (payment.reload ? i18n.t({ id: 'operator.autoReload', message: 'Auto-reload' }) : payment.actor) },
    { id: 'amount', header: i18n.t({ id: 'operator.amount', message: 'Amount' }), weight: 0.9, align: 'end', cell: (payment) => <Money usd={payment.amountUsd} /> },
  ];
}

function PaymentPanel({ payment, onDone }: { payment: Payment; onDone: () => void }) {
  const may = usePermissions(null);
  const [act, setAct] = useState<'confirm' | 'cancel' | 'giveUp' | 'refund' | null>(null);
  const waits = payment.state === 'PAYMENT_STATE_AWAITING_TRANSFER';
  const unpaid = waits || payment.state === 'PAYMENT_STATE_REQUESTED' || payment.state === 'PAYMENT_STATE_SUBMITTED';
  const close = () => setAct(null);
  return (
    <>
      <Facts
        facts={[
          { label: i18n.t({ id: 'operator.amount', message: 'Amount' }), value: <Money usd={payment.amountUsd} /> },
          { label: i18n.t({ id: 'operator.state', message: 'Status' }), value: <PaymentState payment={payment} /> },
          { label: i18n.t({ id: 'operator.workspace.title', message: 'Workspace' }), value: <WorkspaceLink name={payment.name} /> },
          { label: i18n.t({ id: 'operator.refunded', message: 'Refunded' }), value: <Money usd={payment.refundedUsd || '0'} /> },
          { label: i18n.t({ id: 'operator.provider', message: 'Provider' }), value: payment.provider },
          { label: i18n.t({ id: 'operator.reference', message: 'Reference' }), value: payment.providerId || '—' },
          { label: i18n.t({ id: 'operator.note', message: 'Note' }), value: payment.reason || '—' },
          { label: i18n.t({ id: 'operator.by', message: 'By' }), value: payment.actor || '—' },
          { label: i18n.t({ id: 'operator.confirmedBy', message: 'First confirmed by' }), value: payment.confirmedBy || '—' },
          { label: i18n.t({ id: 'operator.created', message: 'Created' }), value: <Time at={payment.createTime} exact /> },
          { label: i18n.t({ id: 'operator.changed', message: 'Changed' }), value: <Time at={payment.updateTime} exact /> },
          { label: i18n.t({ id: 'operator.id', message: 'ID' }), value: <><code>{idOf(payment.name)}</code> <Copy bare value={idOf(payment.name)} label={i18n.t({ id: 'operator.copyId', message: 'Copy ID' })} /></> },
        ]}
      />
      <div className={css.row}>
        {waits && may('PaymentService/ConfirmPayment') && <Button kind="primary" onClick={() => setAct('confirm')}>{i18n.t({ id: 'operator.confirmPayment', message: 'Confirm payment' })}</Button>}
        {unpaid && may('PaymentService/CancelPayment') && <Button onClick={() => setAct('cancel')}>{i18n.t({ id: 'operator.cancelPayment', message: 'Cancel payment' })}</Button>}
        {payment.state === 'PAYMENT_STATE_UNKNOWN' && may('PaymentService/CancelPayment') && <Button onClick={() => setAct('giveUp')}>{i18n.t({ id: 'operator.giveUp', message: 'Give up payment' })}</Button>}
        {payment.credited && may('PaymentService/RefundPayment') && <Button onClick={() => setAct('refund')}>{i18n.t({ id: 'operator.refundPayment', message: 'Refund payment' })}</Button>}
      </div>
      <ReasonDialog
        opened={act === 'confirm'}
        onClose={close}
        title={i18n.t({ id: 'operator.confirmPayment', message: 'Confirm payment' })}
        verb={i18n.t({ id: 'operator.confirmPayment', message: 'Confirm payment' })}
        label={i18n.t({ id: 'operator.bankReference', message: 'Bank reference' })}
        optional
        act={async (reference, requestId) => {
          await confirmPayment(payment, requestId, reference);
          onDone();
        }}
      >
        <p>
          {i18n.t({ id: 'operator.confirmText', message: 'The transfer has arrived. The workspace receives this credit immediately, or when a second operator confirms it if you made much credit today:' })} <Money usd={payment.amountUsd} plus />
        </p>
      </ReasonDialog>
      <ReasonDialog
        opened={act === 'cancel'}
        onClose={close}
        danger
        title={i18n.t({ id: 'operator.cancelPayment', message: 'Cancel payment' })}
        verb={i18n.t({ id: 'operator.cancelPayment', message: 'Cancel payment' })}
        optional
        act={async (reason, requestId) => {
          await cancelPayment(payment, requestId, reason);
          onDone();
        }}
      >
        <p>{i18n.t({ id: 'operator.cancelPaymentText', message: 'No credit is posted. A transfer that arrives later requires a new payment.' })}</p>
      </ReasonDialog>
      <ReasonDialog
        opened={act === 'giveUp'}
        onClose={close}
        danger
        title={i18n.t({ id: 'operator.giveUp', message: 'Give up payment' })}
        verb={i18n.t({ id: 'operator.giveUp', message: 'Give up payment' })}
        act={async (reason, requestId) => {
          await cancelPayment(payment, requestId, reason, true);
          onDone();
        }}
      >
        <p>{i18n.t({ id: 'operator.giveUpText', message: 'The payment ends now, whatever the provider has, and auto-reload may charge again. If the provider reports it as paid later, its credit is still posted.' })}</p>
      </ReasonDialog>
      <RefundDialog payment={payment} opened={act === 'refund'} onClose={close} />
    </>
  );
}

function RefundDialog({ payment, opened, onClose }: { payment: Payment; opened: boolean; onClose: () => void }) {
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'operator.refundPayment', message: 'Refund payment' })}>
      {opened && <RefundForm payment={payment} onClose={onClose} />}
    </Dialog>
  );
}

function RefundForm({ payment, onClose }: { payment: Payment; onClose: () => void }) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const [wrong, setWrong] = useState(false);
  const fields = useFields({ amountUsd: '', reason: '', adopt: '' }, async ({ amountUsd, reason, adopt }) => {
    const amount = typedAmount(amountUsd);
    setWrong(amount === null);
    if (amount === null) return;
    await refundPayment(payment, requestId, amount, reason.trim(), adopt.trim());
    await changed();
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.refundPayment', message: 'Refund payment' })} onCancel={onClose} danger>
      <p>{i18n.t({ id: 'operator.refundText', message: 'Unspent paid credit is taken back first. Then the provider pays it out. A refund above the configured amount requires approval by a second operator.' })}</p>
      <AmountField label={i18n.t({ id: 'operator.amount', message: 'Amount' })} autoFocus {...fields.bind('amountUsd')} error={wrong ? i18n.t({ id: 'operator.notAmount', message: 'Enter an amount, for example 25 or 0.50.' }) : fields.errors.amountUsd} />
      <TextField label={i18n.t({ id: 'operator.reason', message: 'Reason (recorded in the ledger)' })} maxLength={500} {...fields.bind('reason')} />
      <TextField label={i18n.t({ id: 'operator.adoptRefund', message: 'Refund already made at the provider' })} hint={i18n.t({ id: 'operator.adoptRefundHint', message: 'Its ID, for example re_123, if someone has refunded this amount in the provider’s dashboard: only its credit is taken. Otherwise leave it empty.' })} maxLength={255} mono {...fields.bind('adopt')} />
    </DialogForm>
  );
}

type Reconciled = Schema<'ReconcilePaymentsResponse'>;

function ReconcileDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const changed = useChanged();
  const [result, setResult] = useState<Reconciled | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const title = i18n.t({ id: 'operator.reconcile', message: 'Reconcile with provider' });
  if (!result) {
    return (
      <Confirm opened={opened} onClose={onClose} title={title} verb={i18n.t({ id: 'operator.compare', message: 'Reconcile' })} act={async () => setResult(await reconcilePayments(false))}>
        <p>{i18n.t({ id: 'operator.reconcileText', message: 'Compares the provider’s charges of the last 30 days with payments and ledger entries, in both directions. Nothing is changed.' })}</p>
      </Confirm>
    );
  }
  const close = () => {
    setResult(null);
    setError(null);
    onClose();
  };
  const adopt = async () => {
    setBusy(true);
    setError(null);
    try {
      setResult(await reconcilePayments(true));
      await changed();
    } catch (caught) {
      setError(asApiError(caught));
    } finally {
      setBusy(false);
    }
  };
  const adoptable = result.differences.some((one) => one.kind === 'LOST_PAYMENT' || one.kind === 'DISPUTE');
  return (
    <Dialog opened onClose={close} title={title} wide>
      <Notice tone={result.differences.length > 0 ? 'bad' : 'ok'}>
        {i18n.t({ id: 'operator.reconciled', message: '{charges, plural, one {# charge} other {# charges}} and {payments, plural, one {# payment} other {# payments}} compared. {differences, plural, =0 {No difference.} one {# difference.} other {# differences.}}', values: { charges: parseInt(result.providerCharges, 10), payments: parseInt(result.payments, 10), differences: result.differences.length } })}
      </Notice>
      {parseInt(result.adopted, 10) > 0 && <Notice tone="ok">{i18n.t({ id: 'operator.adopted', message: '{adopted, plural, one {# payment or dispute was} other {# payments and disputes were}} adopted.', values: { adopted: parseInt(result.adopted, 10) } })}</Notice>}
      {result.reloadsWait && <Notice tone="warn">{i18n.t({ id: 'operator.reloadsWait', message: 'The database was restored. Auto-reload charges no card until a reconciliation reaches back to the restored time and finds no lost payment and no missing credit.' })}</Notice>}
      {result.differences.map((one, index) => (
        <Facts
          key={index}
          facts={[
            { label: i18n.t({ id: 'operator.difference', message: 'Difference' }), value: <code>{one.kind}</code> },
            { label: i18n.t({ id: 'operator.payment', message: 'Payment' }), value: one.payment || one.providerId },
            { label: i18n.t({ id: 'operator.atProvider', message: 'Provider amount' }), value: <Money usd={one.providerAmountUsd} /> },
            { label: i18n.t({ id: 'operator.inLedger', message: 'Ledger amount' }), value: <Money usd={one.ledgerAmountUsd} /> },
          ]}
        />
      ))}
      {result.byHand.length > 0 && <p>{i18n.t({ id: 'operator.byHandText', message: 'Posted by hand, without a payment or a bank reference:' })}</p>}
      {result.byHand.map((one) => (
        <Facts
          key={one.name}
          facts={[
            { label: i18n.t({ id: 'operator.byHand', message: 'By hand' }), value: <code>{one.name}</code> },
            { label: i18n.t({ id: 'operator.amount', message: 'Amount' }), value: <Money usd={one.amountUsd} /> },
            { label: i18n.t({ id: 'operator.by', message: 'By' }), value: one.actor },
            { label: i18n.t({ id: 'operator.note', message: 'Note' }), value: one.reason },
          ]}
        />
      ))}
      {adoptable && <p>{i18n.t({ id: 'operator.adoptText', message: 'Adopting makes the lost payments from the provider’s records, posts their credit once, and follows the disputes.' })}</p>}
      {error != null && <Failure error={error} />}
      <DialogActions>
        {adoptable && <Button busy={busy} onClick={() => void adopt()}>{i18n.t({ id: 'operator.adopt', message: 'Adopt' })}</Button>}
        <Button kind="primary" onClick={close}>{i18n.t({ id: 'operator.done', message: 'Done' })}</Button>
      </DialogActions>
    </Dialog>
  );
}
