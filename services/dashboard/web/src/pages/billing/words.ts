// Texts for the API's states and kinds.
import { i18n } from '@lingui/core';
import type { Schema } from '@/api/types';
import { fromNanos, money } from '@/format/money';
import type { Tone } from '@/ui';

type Payment = Schema<'Payment'>;

export function paymentState(payment: Payment): { tone: Tone | 'quiet'; text: string } {
  switch (payment.state) {
    case 'PAYMENT_STATE_REQUESTED':
      return { tone: 'info', text: i18n.t({ id: 'billing.payment.requested', message: 'Requested' }) };
    case 'PAYMENT_STATE_SUBMITTED':
      return { tone: 'info', text: i18n.t({ id: 'billing.payment.submitted', message: 'Payment pending' }) };
    case 'PAYMENT_STATE_AWAITING_TRANSFER':
      return { tone: 'warn', text: i18n.t({ id: 'billing.payment.awaiting', message: 'Awaiting transfer' }) };
    case 'PAYMENT_STATE_SUCCEEDED':
      if (payment.disputed) return { tone: 'bad', text: i18n.t({ id: 'billing.payment.disputed', message: 'Disputed' }) };
      return payment.credited
        ? { tone: 'ok', text: i18n.t({ id: 'billing.payment.credited', message: 'Paid' }) }
        : { tone: 'info', text: i18n.t({ id: 'billing.payment.paid', message: 'Paid, credit pending' }) };
    case 'PAYMENT_STATE_DECLINED':
      return { tone: 'bad', text: i18n.t({ id: 'billing.payment.declined', message: 'Declined' }) };
    case 'PAYMENT_STATE_CANCELLED':
      return { tone: 'quiet', text: i18n.t({ id: 'billing.payment.cancelled', message: 'Cancelled' }) };
    default:
      return { tone: 'warn', text: i18n.t({ id: 'billing.payment.unknown', message: 'Checking with provider' }) };
  }
}

// The kinds of ledger entries in the filter, the most frequent first.
export const KINDS = ['topup', 'grant', 'charge', 'settle', 'hold', 'void', 'refund', 'credit_adjustment', 'debit_adjustment', 'chargeback', 'cap_change'] as const;

export function kindName(kind: string): string {
  switch (kind) {
    case 'topup':
      return i18n.t({ id: 'billing.kind.topup', message: 'Payment' });
    case 'grant':
      return i18n.t({ id: 'billing.kind.grant', message: 'Granted credit' });
    case 'hold':
      return i18n.t({ id: 'billing.kind.hold', message: 'Hold' });
    case 'extend':
      return i18n.t({ id: 'billing.kind.extend', message: 'Hold extended' });
    case 'settle':
      return i18n.t({ id: 'billing.kind.settle', message: 'Hold settled' });
    case 'void':
      return i18n.t({ id: 'billing.kind.void', message: 'Hold released' });
    case 'charge':
      return i18n.t({ id: 'billing.kind.charge', message: 'Request charge' });
    case 'expire_charge':
      return i18n.t({ id: 'billing.kind.expireCharge', message: 'Expired hold charged' });
    case 'expire_void':
      return i18n.t({ id: 'billing.kind.expireVoid', message: 'Expired hold released' });
    case 'overrun':
      return i18n.t({ id: 'billing.kind.overrun', message: 'Overrun, not charged' });
    case 'late_correction':
      return i18n.t({ id: 'billing.kind.lateCorrection', message: 'Late correction' });
    case 'cap_change':
      return i18n.t({ id: 'billing.kind.capChange', message: 'Cap changed' });
    case 'refund':
      return i18n.t({ id: 'billing.kind.refund', message: 'Refund' });
    case 'refund_failed':
      return i18n.t({ id: 'billing.kind.refundFailed', message: 'Refund failed' });
    case 'credit_adjustment':
      return i18n.t({ id: 'billing.kind.creditAdjustment', message: 'Credit adjustment' });
    case 'debit_adjustment':
      return i18n.t({ id: 'billing.kind.debitAdjustment', message: 'Debit adjustment' });
    case 'chargeback':
      return i18n.t({ id: 'billing.kind.chargeback', message: 'Disputed payment' });
    case 'chargeback_won':
      return i18n.t({ id: 'billing.kind.chargebackWon', message: 'Dispute won' });
    case 'freeze':
      return i18n.t({ id: 'billing.kind.freeze', message: 'Workspace frozen' });
    case 'unfreeze':
      return i18n.t({ id: 'billing.kind.unfreeze', message: 'Workspace unfrozen' });
    case 'receivable_paid':
      return i18n.t({ id: 'billing.kind.receivablePaid', message: 'Debt repaid' });
    case 'write_off':
      return i18n.t({ id: 'billing.kind.writeOff', message: 'Written off' });
    default:
      return kind.replaceAll('_', ' ');
  }
}

// The lines of a statement, by their English names in the API.
export function movementName(item: string): string {
  switch (item) {
    case 'Top-ups':
      return i18n.t({ id: 'billing.movement.topups', message: 'Payments' });
    case 'Granted credit':
      return i18n.t({ id: 'billing.kind.grant', message: 'Granted credit' });
    case 'Refunds':
      return i18n.t({ id: 'billing.movement.refunds', message: 'Refunds' });
    case 'Refunds that could not be paid out':
      return i18n.t({ id: 'billing.movement.refundsBack', message: 'Failed refunds' });
    case 'Chargebacks':
      return i18n.t({ id: 'billing.movement.chargebacks', message: 'Disputed payments' });
    case 'Chargebacks taken back':
      return i18n.t({ id: 'billing.movement.chargebacksBack', message: 'Disputes won' });
    case 'Paid for earlier chargebacks':
      return i18n.t({ id: 'billing.movement.owed', message: 'Debt repaid' });
    case 'Adjustments in your favour':
      return i18n.t({ id: 'billing.movement.credits', message: 'Credit adjustments' });
    case 'Adjustments to your debit':
      return i18n.t({ id: 'billing.movement.debits', message: 'Debit adjustments' });
    case 'Written off':
      return i18n.t({ id: 'billing.kind.writeOff', message: 'Written off' });
    case 'Usage':
      return i18n.t({ id: 'billing.movement.usage', message: 'Usage' });
    default:
      return item;
  }
}

// The note of an entry. For a change of the cap, the memo has the nano-dollars.
export function memoText(entry: Schema<'Transaction'>): string {
  const cap = /^cap=(\d+)\b/.exec(entry.memo);
  if (entry.kind !== 'cap_change' || !cap) return entry.memo;
  return i18n.t({ id: 'billing.memo.cap', message: 'Cap set to {cap}', values: { cap: money(fromNanos(BigInt(cap[1]!))) } });
}
