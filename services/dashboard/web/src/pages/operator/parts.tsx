// Shared parts of the operator pages: state chips, a question with a reason, a link to a workspace.
import { i18n } from '@lingui/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { newRequestId } from '@/api/client';
import { paths } from '@/app/paths';
import { Dialog, DialogForm, Link, StateChip, TextField, useFields, type Tone } from '@/ui';
import { AREA, type Adjustment, type DeadLetter, type Engine, type Payment, type Process, type Verification } from './queries';

type Shown = [Tone | 'quiet', string];

function Chip({ of: [tone, text] }: { of: Shown }) {
  return <StateChip tone={tone}>{text}</StateChip>;
}

export function EngineState({ state }: { state: Engine['state'] }) {
  const shown: Record<Engine['state'], Shown> = {
    ENGINE_STATE_UP: ['ok', i18n.t({ id: 'operator.engineUp', message: 'Up' })],
    ENGINE_STATE_PARTLY_UP: ['warn', i18n.t({ id: 'operator.enginePartly', message: 'Partially up' })],
    ENGINE_STATE_DOWN: ['bad', i18n.t({ id: 'operator.engineDown', message: 'Down' })],
    ENGINE_STATE_DRAINED: ['quiet', i18n.t({ id: 'operator.engineDrained', message: 'Drained' })],
    ENGINE_STATE_UNSPECIFIED: ['quiet', '—'],
  };
  return <Chip of={shown[state]} />;
}

export function ProcessState({ process }: { process: Process }) {
  if (!process.answers) return <Chip of={['bad', i18n.t({ id: 'operator.processSilent', message: 'No response' })]} />;
  if (!process.ready) return <Chip of={['warn', i18n.t({ id: 'operator.processNotReady', message: 'Not ready' })]} />;
  return <Chip of={['ok', i18n.t({ id: 'operator.processReady', message: 'Ready' })]} />;
}

export function PaymentState({ payment }: { payment: Payment }) {
  const shown: Record<Payment['state'], Shown> = {
    PAYMENT_STATE_REQUESTED: ['info', i18n.t({ id: 'operator.payRequested', message: 'Requested' })],
    PAYMENT_STATE_SUBMITTED: ['info', i18n.t({ id: 'operator.paySubmitted', message: 'Payment pending' })],
    PAYMENT_STATE_AWAITING_TRANSFER: ['warn', i18n.t({ id: 'operator.payAwaiting', message: 'Awaiting transfer' })],
    PAYMENT_STATE_SUCCEEDED: payment.credited
      ? ['ok', i18n.t({ id: 'operator.payCredited', message: 'Credited' })]
      : ['info', i18n.t({ id: 'operator.paySucceeded', message: 'Paid, credit pending' })],
    PAYMENT_STATE_DECLINED: ['bad', i18n.t({ id: 'operator.payDeclined', message: 'Declined' })],
    PAYMENT_STATE_CANCELLED: ['quiet', i18n.t({ id: 'operator.payCancelled', message: 'Cancelled' })],
    PAYMENT_STATE_UNKNOWN: ['warn', i18n.t({ id: 'operator.payUnknown', message: 'Checking with provider' })],
    PAYMENT_STATE_UNSPECIFIED: ['quiet', '—'],
  };
  if (payment.disputed) return <Chip of={['bad', i18n.t({ id: 'operator.payDisputed', message: 'Disputed' })]} />;
  return <Chip of={shown[payment.state]} />;
}

export function AdjustmentState({ state }: { state: Adjustment['state'] }) {
  const shown: Record<Adjustment['state'], Shown> = {
    ADJUSTMENT_STATE_POSTED: ['ok', i18n.t({ id: 'operator.adjPosted', message: 'Posted' })],
    ADJUSTMENT_STATE_PENDING_APPROVAL: ['warn', i18n.t({ id: 'operator.adjPending', message: 'Pending approval' })],
    ADJUSTMENT_STATE_REJECTED: ['quiet', i18n.t({ id: 'operator.adjRejected', message: 'Rejected' })],
    ADJUSTMENT_STATE_UNSPECIFIED: ['quiet', '—'],
  };
  return <Chip of={shown[state]} />;
}

export function adjustmentKindName(kind: Adjustment['kind']): string {
  switch (kind) {
    case 'ADJUSTMENT_KIND_REFUND':
      return i18n.t({ id: 'operator.kindRefund', message: 'Refund' });
    case 'ADJUSTMENT_KIND_CREDIT':
      return i18n.t({ id: 'operator.kindCredit', message: 'Credit' });
    case 'ADJUSTMENT_KIND_DEBIT':
      return i18n.t({ id: 'operator.kindDebit', message: 'Debit' });
    case 'ADJUSTMENT_KIND_CHARGEBACK':
      return i18n.t({ id: 'operator.kindChargeback', message: 'Chargeback' });
    case 'ADJUSTMENT_KIND_WRITE_OFF':
      return i18n.t({ id: 'operator.kindWriteOff', message: 'Write-off' });
    default:
      return '—';
  }
}

export function DeadLetterState({ state }: { state: DeadLetter['state'] }) {
  const shown: Record<DeadLetter['state'], Shown> = {
    DEAD_LETTER_STATE_OPEN: ['bad', i18n.t({ id: 'operator.deadOpen', message: 'Open' })],
    DEAD_LETTER_STATE_RETRIED: ['ok', i18n.t({ id: 'operator.deadRetried', message: 'Settled' })],
    DEAD_LETTER_STATE_WRITTEN_OFF: ['quiet', i18n.t({ id: 'operator.deadWrittenOff', message: 'Written off' })],
    DEAD_LETTER_STATE_ADJUSTED: ['info', i18n.t({ id: 'operator.deadAdjusted', message: 'Adjustment' })],
    DEAD_LETTER_STATE_UNSPECIFIED: ['quiet', '—'],
  };
  return <Chip of={shown[state]} />;
}

export function VerificationState({ state }: { state: Verification['state'] }) {
  const shown: Record<Verification['state'], Shown> = {
    LEDGER_VERIFICATION_STATE_RUNNING: ['info', i18n.t({ id: 'operator.verRunning', message: 'Running' })],
    LEDGER_VERIFICATION_STATE_CONSISTENT: ['ok', i18n.t({ id: 'operator.verConsistent', message: 'Consistent' })],
    LEDGER_VERIFICATION_STATE_VIOLATED: ['bad', i18n.t({ id: 'operator.verViolated', message: 'Violations found' })],
    LEDGER_VERIFICATION_STATE_CANCELLED: ['quiet', i18n.t({ id: 'operator.verCancelled', message: 'Cancelled' })],
    LEDGER_VERIFICATION_STATE_BROKEN_OFF: ['warn', i18n.t({ id: 'operator.verBroken', message: 'Interrupted' })],
    LEDGER_VERIFICATION_STATE_UNSPECIFIED: ['quiet', '—'],
  };
  return <Chip of={shown[state]} />;
}

// Links "workspaces/acme/…" to the operator page of that workspace.
export function WorkspaceLink({ name }: { name: string }) {
  const id = name.replace(/^workspaces\//, '').split('/')[0] ?? '';
  return id === '' || id === '_' ? <>—</> : <Link to={paths.operatorWorkspace(id)}>{id}</Link>;
}

// Refetches all queries of the area after a change.
export function useChanged(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await Promise.all(['balance', 'workspace', 'workspaces', AREA].map((key) => client.invalidateQueries({ queryKey: [key] })));
  };
}

interface ReasonDialogProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  verb: string;
  children?: ReactNode;
  danger?: boolean;
  label?: string; // label of the text field; default: the reason
  optional?: boolean;
  act: (reason: string, requestId: string) => Promise<unknown>;
}

// A question that requires a reason for the ledger. On failure, the dialog stays open and shows the error.
export function ReasonDialog(props: ReasonDialogProps) {
  return (
    <Dialog opened={props.opened} onClose={props.onClose} title={props.title}>
      {props.opened && <ReasonForm {...props} />}
    </Dialog>
  );
}

function ReasonForm({ onClose, verb, children, danger, label, optional, act }: ReasonDialogProps) {
  const changed = useChanged();
  const [requestId] = useState(newRequestId);
  const [missing, setMissing] = useState(false);
  const fields = useFields({ reason: '' }, async ({ reason }) => {
    setMissing(!optional && reason.trim() === '');
    if (!optional && reason.trim() === '') return;
    await act(reason.trim(), requestId);
    await changed();
    onClose();
  });
  return (
    <DialogForm fields={fields} verb={verb} onCancel={onClose} danger={danger}>
      {children}
      <TextField
        label={label ?? i18n.t({ id: 'operator.reason', message: 'Reason (recorded in the ledger)' })}
        maxLength={500}
        autoFocus
        {...fields.bind('reason')}
        error={missing ? i18n.t({ id: 'operator.reasonMissing', message: 'Enter a reason. The audit log keeps it.' }) : fields.errors.reason}
      />
    </DialogForm>
  );
}
