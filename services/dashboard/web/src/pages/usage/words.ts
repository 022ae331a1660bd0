// Texts for the API's values of a request.
import { i18n } from '@lingui/core';
import type { Tone } from '@/ui';
import type { Receipt } from './requests';

export function outcomeName(outcome: string): string {
  switch (outcome) {
    case 'completed':
      return i18n.t({ id: 'usage.outcome.completed', message: 'Completed' });
    case 'failed_before_output':
      return i18n.t({ id: 'usage.outcome.failedBefore', message: 'Failed before output' });
    case 'failed_mid_stream':
      return i18n.t({ id: 'usage.outcome.failedMid', message: 'Failed during output' });
    case 'client_gone':
      return i18n.t({ id: 'usage.outcome.clientGone', message: 'Client disconnected' });
    case 'recovered':
      return i18n.t({ id: 'usage.outcome.recovered', message: 'Recovered' });
    default:
      return outcome || '—';
  }
}

// The explanation of an outcome, for the receipt.
export function outcomeText(outcome: string): string {
  switch (outcome) {
    case 'completed':
      return i18n.t({ id: 'usage.outcomeText.completed', message: 'The full response was sent.' });
    case 'failed_before_output':
      return i18n.t({ id: 'usage.outcomeText.failedBefore', message: 'The engine returned no output. The request is free.' });
    case 'failed_mid_stream':
      return i18n.t({ id: 'usage.outcomeText.failedMid', message: 'The engine failed during the response. Output sent until then is charged.' });
    case 'client_gone':
      return i18n.t({ id: 'usage.outcomeText.clientGone', message: 'The client closed the connection. Output generated until then is charged.' });
    case 'recovered':
      return i18n.t({ id: 'usage.outcomeText.recovered', message: 'A process stopped during the request. The request was settled from recorded data.' });
    default:
      return '';
  }
}

export function outcomeTone(outcome: string): Tone | 'quiet' {
  if (outcome === 'completed') return 'ok';
  if (outcome === 'client_gone' || outcome === 'recovered') return 'warn';
  return outcome.startsWith('failed') ? 'bad' : 'quiet';
}

export function stateName(state: string): string {
  switch (state) {
    case 'open':
      return i18n.t({ id: 'usage.state.open', message: 'Running' });
    case 'settled':
      return i18n.t({ id: 'usage.state.settled', message: 'Settled' });
    case 'voided':
      return i18n.t({ id: 'usage.state.voided', message: 'Voided, not charged' });
    case 'expired_charged':
      return i18n.t({ id: 'usage.state.expiredCharged', message: 'Expired, charged' });
    case 'expired_void':
      return i18n.t({ id: 'usage.state.expiredVoid', message: 'Expired, not charged' });
    case 'corrected':
      return i18n.t({ id: 'usage.state.corrected', message: 'Corrected' });
    default:
      return state || '—';
  }
}

export function surfaceName(surface: string): string {
  const paths: Record<string, string> = {
    chat_completions: '/v1/chat/completions', completions: '/v1/completions', embeddings: '/v1/embeddings', messages: '/v1/messages', responses: '/v1/responses',
  };
  return paths[surface] ?? surface;
}

export function entryName(kind: string): string {
  switch (kind) {
    case 'hold':
      return i18n.t({ id: 'usage.entry.hold', message: 'Hold' });
    case 'settle':
      return i18n.t({ id: 'usage.entry.settle', message: 'Hold settled' });
    case 'charge':
      return i18n.t({ id: 'usage.entry.charge', message: 'Charge' });
    case 'void':
    case 'expire_void':
      return i18n.t({ id: 'usage.entry.release', message: 'Hold released' });
    case 'expire_charge':
      return i18n.t({ id: 'usage.entry.expired', message: 'Hold expired' });
    case 'extend':
      return i18n.t({ id: 'usage.entry.extend', message: 'Hold extended' });
    case 'overrun':
      return i18n.t({ id: 'usage.entry.overrun', message: 'Overrun, paid by the operator' });
    case 'late_correction':
      return i18n.t({ id: 'usage.entry.correction', message: 'Correction' });
    case 'refund':
      return i18n.t({ id: 'usage.entry.refund', message: 'Refund' });
    default:
      return kind.replaceAll('_', ' ');
  }
}

// The duration of a request in microseconds; null while it runs.
export function wholeTime(receipt: Pick<Receipt, 'createTime' | 'closeTime'>): number | null {
  if (!receipt.createTime || !receipt.closeTime) return null;
  const ms = Date.parse(receipt.closeTime) - Date.parse(receipt.createTime);
  return ms > 0 ? ms * 1000 : null;
}
