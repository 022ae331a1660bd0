#include "services/billing/payments/reload_rules.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/time_units.h"

namespace tollgate::billing::payments {
namespace {

using Act = Verdict::Kind;

std::string LoweredReason(CommandKind kind) {
  switch (kind) {
    case CommandKind::kRefund:
      return kPausedByRefund;
    case CommandKind::kChargeback:
      return kPausedByDispute;
    default:
      return kPausedByDebit;
  }
}

// The time from which one more charge fits into this window; 0: it fits now.
int64_t FitsAtUs(const std::vector<int64_t>& sent_us, int limit, int64_t window_us,
                 int64_t now_us) {
  const auto count = static_cast<size_t>(limit);
  if (sent_us.size() < count || sent_us[count - 1] <= now_us - window_us) return 0;
  return sent_us[count - 1] + window_us;
}

}  // namespace

Verdict MayCharge(const AutoReload& reload, const ChargeFacts& facts, const ChargeLimits& limits,
                  int64_t now_us) {
  const Balance& balance = facts.ledger.balance;
  if (!reload.enabled) return {Act::kWait, "auto-reload is off"};
  if (facts.ledger.restored) return {Act::kWait, "the database was restored: reconcile first"};
  // Only spending may trigger a charge: a person must have seen what else lowered the balance.
  const auto& lowered = facts.ledger.lowered;
  if (lowered && lowered->at_us > reload.confirmed_us) {
    return {Act::kPause, LoweredReason(lowered->kind)};
  }
  // The credit would only pay the debt, or could not be spent.
  if (balance.frozen != Freeze::kNone) return {Act::kWait, "the workspace is frozen"};
  if (balance.receivable_nano_usd > 0) return {Act::kWait, "the workspace owes credit"};
  if (balance.paid_nano_usd + balance.granted_nano_usd + facts.on_its_way_nano_usd >=
      reload.threshold_nano_usd) {
    return {Act::kEnough, "the balance is not low any more"};
  }
  if (balance.cap_nano_usd && balance.month_spent_nano_usd >= *balance.cap_nano_usd) {
    return {Act::kWait, "the monthly cap is used up"};
  }
  if (!facts.card_saved) return {Act::kPause, kPausedWithoutMethod};
  if (facts.card_disputed) return {Act::kPause, kPausedByCardDispute};
  if (facts.card_refused) return {Act::kPause, kPausedByCardRefusal};
  if (facts.month_charged_nano_usd > reload.ceiling_nano_usd - reload.amount_nano_usd) {
    return {Act::kPause, kPausedByCeiling, UtcMonthStartUs(NextMonth(UtcMonth(now_us)))};
  }
  if (const int64_t at = FitsAtUs(facts.sent_us, limits.per_day, kDayUs, now_us); at > 0) {
    return {Act::kPause, kPausedByDay, at};
  }
  if (const int64_t at = FitsAtUs(facts.sent_us, limits.per_hour, kHourUs, now_us); at > 0) {
    return {Act::kPause, kPausedByHour, at};
  }
  return {Act::kCharge, ""};
}

int64_t BackoffUs(int64_t declines) {
  switch (declines) {
    case 1:
      return kHourUs;
    case 2:
      return 6 * kHourUs;
    case 3:
      return 24 * kHourUs;
    default:
      return 0;
  }
}

void RollMonth(AutoReload& reload, int64_t now_us) {
  const int32_t month = UtcMonth(now_us);
  // The month never decreases: a clock that steps back must not reset the ceiling.
  if (month <= reload.month) return;
  reload.month = month;
  reload.month_charged_nano_usd = 0;
}

void Pause(AutoReload& reload, std::string reason, int64_t until_us) {
  reload.state = ReloadState::kPaused;
  reload.pause_reason = std::move(reason);
  reload.next_us = until_us;
}

void Charge(AutoReload& reload, const Payment& payment) {
  if (reload.month != UtcMonth(payment.created_us)) return;
  reload.month_charged_nano_usd += payment.amount_nano_usd;
}

void Uncharge(AutoReload& reload, const Payment& payment) {
  if (reload.month != UtcMonth(payment.created_us)) return;
  reload.month_charged_nano_usd =
      std::max<int64_t>(0, reload.month_charged_nano_usd - payment.amount_nano_usd);
}

Refusal RefusalOf(std::string_view reason) {
  // Stripe's codes after which its documentation says that the card cannot be used, or that the
  // customer must use another one.
  static constexpr std::string_view kForGood[] = {
      "card_not_supported",
      "currency_not_supported",
      "expired_card",
      "fraudulent",
      "incorrect_number",
      "invalid_account",
      "invalid_expiry_month",
      "invalid_expiry_year",
      "invalid_number",
      "lost_card",
      "merchant_blacklist",
      "new_account_information_available",
      "pickup_card",
      "resource_missing",  // the card is not at the provider any more
      "restricted_card",
      "revocation_of_all_authorizations",
      "revocation_of_authorization",
      "security_violation",
      "stolen_card",
      "stop_payment_order",
      "testmode_decline",
  };
  if (reason.ends_with(kDoNotTryAgain)) return Refusal::kForGood;
  if (reason == "authentication_required") return Refusal::kUnconfirmed;
  return std::ranges::find(kForGood, reason) == std::end(kForGood) ? Refusal::kForNow
                                                                   : Refusal::kForGood;
}

bool Decline(AutoReload& reload, const Payment& payment, int64_t now_us) {
  const Refusal refusal = RefusalOf(payment.reason);
  if (refusal == Refusal::kUnconfirmed) {
    Pause(reload, kPausedForConfirmation, 0);
    return true;
  }
  ++reload.declines;
  const int64_t wait_us = BackoffUs(reload.declines);
  if (wait_us == 0) {
    Pause(reload, "declined: " + payment.reason, 0);
    return true;
  }
  reload.pause_reason = payment.reason;
  if (refusal == Refusal::kForGood) {
    // The next check charges another card, or pauses.
    reload.state = ReloadState::kIdle;
    return false;
  }
  reload.state = ReloadState::kBackoff;
  reload.next_us = now_us + wait_us;
  return false;
}

void Continue(AutoReload& reload) {
  reload.state = ReloadState::kIdle;
  reload.pause_reason.clear();
  reload.next_us = 0;
}

void Resume(AutoReload& reload, const Payment* in_flight) {
  Continue(reload);
  if (in_flight != nullptr) {
    reload.state = in_flight->state == PaymentState::kRequested ? ReloadState::kRequested
                   : in_flight->state == PaymentState::kUnknown ? ReloadState::kUnknown
                                                                : ReloadState::kSubmitted;
  }
  reload.declines = 0;
}

}  // namespace tollgate::billing::payments
