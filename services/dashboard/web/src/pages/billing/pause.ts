// Why auto-reload is paused, and what ends it.
import { i18n } from '@lingui/core';

// Ends when the customer has paid on a page.
export const CONFIRM = 'authentication_required';

export function pauseText(reason: string): string {
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
    case CONFIRM:
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
