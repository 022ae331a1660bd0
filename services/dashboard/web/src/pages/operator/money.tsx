// Credit grants and ledger adjustments by operators.
import { i18n } from '@lingui/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { newRequestId } from '@/api/client';
import type { Schema } from '@/api/types';
import { typedAmount } from '@/format/money';
import { AmountField, CheckboxField, DataTable, Dialog, DialogForm, EmptyState, Money, Notice, SelectField, TextField, Time, toast, useFields } from '@/ui';
import { adjustmentKindName, useChanged } from './parts';
import { createAdjustment, grantCredit, grantsQuery, type Adjustment } from './queries';

interface MoneyDialogProps {
  workspace: string;
  opened: boolean;
  onClose: () => void;
}

const notAmount = () => i18n.t({ id: 'operator.notAmount', message: 'Enter an amount, for example 25 or 0.50.' });

export function GrantTable({ workspace }: { workspace: string }) {
  const query = useQuery(grantsQuery(workspace));
  return (
    <DataTable<Schema<'CreditGrant'>>
      label={i18n.t({ id: 'operator.grants', message: 'Credit grants' })}
      what={i18n.t({ id: 'operator.grantsWhat', message: 'the credit grants' })}
      columns={[
        { id: 'time', header: i18n.t({ id: 'operator.created', message: 'Created' }), weight: 1.5, cell: (grant) => <Time at={grant.createTime} exact /> },
        { id: 'kind', header: i18n.t({ id: 'operator.kind', message: 'Kind' }), weight: 1, cell: (grant) => (grant.paid ? i18n.t({ id: 'operator.grantPaid', message: 'Paid externally' }) : i18n.t({ id: 'operator.grantFree', message: 'Granted' })) },
        { id: 'reason', header: i18n.t({ id: 'operator.reasonColumn', message: 'Reason' }), weight: 2, wide: true, cell: (grant) => grant.reason || '—' },
        { id: 'actor', header: i18n.t({ id: 'operator.by', message: 'By' }), weight: 1.5, wide: true, cell: (grant) => grant.actor },
        { id: 'amount', header: i18n.t({ id: 'operator.amount', message: 'Amount' }), weight: 1, align: 'end', cell: (grant) => <Money usd={grant.amountUsd} plus /> },
      ]}
      rows={query.data?.creditGrants}
      rowKey={(grant) => grant.name}
      error={query.error}
      retry={() => void query.refetch()}
      empty={<EmptyState title={i18n.t({ id: 'operator.noGrants', message: 'No credit grants yet' })} />}
    />
  );
}

export function GrantDialog({ workspace, opened, onClose }: MoneyDialogProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'operator.grant', message: 'Grant credit' })}>
      {opened && <GrantForm workspace={workspace} onClose={onClose} />}
    </Dialog>
  );
}

function GrantForm({ workspace, onClose }: Omit<MoneyDialogProps, 'opened'>) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const [wrong, setWrong] = useState(false);
  const fields = useFields({ amountUsd: '', reason: '', paid: false }, async (values) => {
    const amountUsd = typedAmount(values.amountUsd);
    setWrong(amountUsd === null);
    if (amountUsd === null) return;
    await grantCredit(workspace, requestId, { amountUsd, paid: values.paid, reason: values.reason.trim() });
    await changed();
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.grant', message: 'Grant credit' })} onCancel={onClose}>
      <AmountField label={i18n.t({ id: 'operator.amount', message: 'Amount' })} autoFocus {...fields.bind('amountUsd')} error={wrong ? notAmount() : fields.errors.amountUsd} />
      <TextField label={i18n.t({ id: 'operator.reason', message: 'Reason (recorded in the ledger)' })} maxLength={500} {...fields.bind('reason')} />
      <CheckboxField label={i18n.t({ id: 'operator.paidOutside', message: 'Payment received outside the payment providers' })} hint={i18n.t({ id: 'operator.paidOutsideHint', message: 'This credit is spent after granted credit and can be refunded.' })} {...fields.bind('paid')} />
    </DialogForm>
  );
}

const KINDS: Adjustment['kind'][] = ['ADJUSTMENT_KIND_REFUND', 'ADJUSTMENT_KIND_CREDIT', 'ADJUSTMENT_KIND_DEBIT', 'ADJUSTMENT_KIND_CHARGEBACK', 'ADJUSTMENT_KIND_WRITE_OFF'];

function kindText(kind: string): string {
  switch (kind) {
    case 'ADJUSTMENT_KIND_REFUND':
      return i18n.t({ id: 'operator.refundKindText', message: 'Returns unspent paid credit. The money is paid back outside the ledger.' });
    case 'ADJUSTMENT_KIND_CREDIT':
      return i18n.t({ id: 'operator.creditKindText', message: 'Adds credit, for example for failed requests.' });
    case 'ADJUSTMENT_KIND_DEBIT':
      return i18n.t({ id: 'operator.debitKindText', message: 'Removes credit that is not held.' });
    case 'ADJUSTMENT_KIND_CHARGEBACK':
      return i18n.t({ id: 'operator.chargebackKindText', message: 'Records a payment that the bank took back. An amount that the credit does not cover is owed, and the workspace is frozen.' });
    default:
      return i18n.t({ id: 'operator.writeOffKindText', message: 'Writes off an amount owed.' });
  }
}

export function AdjustmentDialog({ workspace, opened, onClose }: MoneyDialogProps) {
  return (
    <Dialog opened={opened} onClose={onClose} title={i18n.t({ id: 'operator.correct', message: 'Create adjustment' })}>
      {opened && <AdjustmentForm workspace={workspace} onClose={onClose} />}
    </Dialog>
  );
}

function AdjustmentForm({ workspace, onClose }: Omit<MoneyDialogProps, 'opened'>) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const [wrong, setWrong] = useState(false);
  const fields = useFields({ kind: KINDS[0] as string, amountUsd: '', granted: false, reason: '', reference: '' }, async (values) => {
    const amountUsd = typedAmount(values.amountUsd);
    setWrong(amountUsd === null);
    if (amountUsd === null) return;
    const made = await createAdjustment(workspace, requestId, { kind: values.kind as Adjustment['kind'], amountUsd, granted: values.granted, reason: values.reason.trim(), reference: values.reference.trim() });
    await changed();
    if (made.state === 'ADJUSTMENT_STATE_PENDING_APPROVAL') toast(i18n.t({ id: 'operator.waitsForSecond', message: 'Another operator must approve this adjustment.' }));
    onClose();
  });
  const choosable = fields.values.kind === 'ADJUSTMENT_KIND_CREDIT' || fields.values.kind === 'ADJUSTMENT_KIND_DEBIT';
  return (
    <DialogForm fields={fields} verb={i18n.t({ id: 'operator.post', message: 'Create adjustment' })} onCancel={onClose} danger>
      <Notice>{i18n.t({ id: 'operator.secondPerson', message: 'An adjustment above the configured amount requires approval by another operator. Adjustments cannot be changed later.' })}</Notice>
      <SelectField label={i18n.t({ id: 'operator.kind', message: 'Kind' })} hint={kindText(fields.values.kind)} options={KINDS.map((kind) => ({ value: kind, label: adjustmentKindName(kind) }))} {...fields.bind('kind')} />
      <AmountField label={i18n.t({ id: 'operator.amount', message: 'Amount' })} autoFocus {...fields.bind('amountUsd')} error={wrong ? notAmount() : fields.errors.amountUsd} />
      {choosable && <CheckboxField label={i18n.t({ id: 'operator.ofGranted', message: 'Use granted credit instead of paid credit' })} {...fields.bind('granted')} />}
      <TextField label={i18n.t({ id: 'operator.reason', message: 'Reason (recorded in the ledger)' })} maxLength={500} {...fields.bind('reason')} />
      <TextField label={i18n.t({ id: 'operator.reference', message: 'Reference' })} hint={i18n.t({ id: 'operator.referenceHint', message: 'Reference of the payment or dispute, if any' })} maxLength={128} mono {...fields.bind('reference')} />
    </DialogForm>
  );
}
