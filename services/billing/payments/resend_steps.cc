// Part of the engine: asks the provider about a payment, and sends a lost charge again (ADR 0049).
#include <algorithm>
#include <iterator>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

// An idempotency key of the provider lasts at least 24 h: until then a lost charge is sent again
// under its key. A call cannot arrive more than an hour after it was sent.
constexpr int64_t kResendUs = 23 * kHourUs;
constexpr int64_t kGiveUpUs = 25 * kHourUs;
constexpr int64_t kArriveUs = kHourUs;
// The provider repeats an error of its own for as long as it keeps the key. If the charge is still
// unknown to it after this time, the charge is sent under another key.
constexpr int64_t kNextKeyUs[] = {10 * kMinuteUs, kHourUs, 6 * kHourUs};

bool NeedsNextKey(const Payment& payment, int64_t now_us) {
  return payment.failed_us > 0 && payment.keys <= std::ssize(kNextKeyUs) &&
         now_us - payment.failed_us >= kNextKeyUs[payment.keys - 1];
}

}  // namespace

ProviderResult<ChargeView> PaymentEngine::Ask(Payment& payment) {
  if (payment.state == PaymentState::kRequested && payment.checkout_id.empty()) {
    if (NowUs() - payment.created_us <= kGiveUpUs) return MakePage(payment);
    ChargeView expired;
    expired.payment_id = payment.id;
    expired.state = ChargeView::State::kCancelled;
    expired.reason = "no_page";
    return expired;
  }
  auto found = provider_.Find(payment.ref());
  if (!found.ok() || found->state != ChargeView::State::kNone || payment.ended()) return found;
  return ResendOrGiveUp(payment);
}

// Called when the provider does not know the payment.
ProviderResult<ChargeView> PaymentEngine::ResendOrGiveUp(Payment& payment) {
  const int64_t age_us = NowUs() - std::max(payment.sent_us, payment.created_us);
  ChargeView gone;
  gone.payment_id = payment.id;
  gone.state = payment.reload ? ChargeView::State::kDeclined : ChargeView::State::kCancelled;
  gone.reason = "lost";
  if (!payment.reload) return age_us > kGiveUpUs ? ProviderResult<ChargeView>(gone) : ChargeView();
  // Same key: if the first call still arrives, the provider makes only one charge.
  if (age_us < kResendUs) {
    TRY(auto why, MarkResent(payment));
    if (why.empty()) return provider_.Charge(payment.ref());
    if (NowUs() - payment.last_sent_us > kArriveUs) {
      gone.state = ChargeView::State::kCancelled;
      gone.reason = kWithdrawn + why;
      return gone;
    }
  }
  if (age_us > kGiveUpUs) return gone;
  return ChargeView();
}

ProviderResult<std::string> PaymentEngine::MarkResent(Payment& payment) {
  const auto ledger = ReadLedger(payment.workspace);
  std::string why = "the ledger cannot be read";
  auto done = store_.Run(payment.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(payment.id));
    if (!found || !ledger) return {};
    TRY(auto reason, WhyNotSend(tx, *found, *ledger));
    why = std::move(reason);
    if (!why.empty()) return {};
    Payment sent = *found;
    sent.last_sent_us = tx.now_us();
    if (NeedsNextKey(sent, tx.now_us())) {
      ++sent.keys;
      sent.failed_us = 0;
      sent.sent_us = tx.now_us();
      sent.watch_us = tx.now_us() + kGiveUpUs;
      TRY(tx.Log("payment/" + sent.id, Name(sent.state), Name(sent.state), sent.amount_nano_usd,
                 kEngineActor, "sent under key " + std::to_string(sent.keys)));
    }
    payment.keys = sent.keys;
    payment.last_sent_us = sent.last_sent_us;
    return tx.Put(sent);
  });
  if (!ledger || !done.ok()) {
    return Fail{ProviderError{ProviderError::Kind::kNotDone, "database", why}};
  }
  return why;
}

}  // namespace tollgate::billing::payments
