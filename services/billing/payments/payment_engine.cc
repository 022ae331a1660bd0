#include "services/billing/payments/payment_engine.h"

#include <algorithm>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

constexpr int kBatch = 64;
constexpr int64_t kMismatchUs = kHourUs;
constexpr int64_t kCreditRefusedUs = 600 * kSecondUs;
constexpr int64_t kWatchUs = kHourUs;

// Retry delays of missing answers: 1 s, 2 s, 4 s and so on, up to a minute.
int64_t RetryPaymentUs(int64_t attempts) {
  return std::min<int64_t>(60, 1LL << std::min<int64_t>(attempts, 6)) * kSecondUs;
}
// Intervals of asking about a page, where a customer takes minutes. The webhook is usually faster.
int64_t PollUs(int64_t attempts) {
  return std::min<int64_t>(1800, 10LL << std::min<int64_t>(attempts, 8)) * kSecondUs;
}

}  // namespace

std::string CreditCommandId(const std::string& provider, const std::string& provider_id) {
  return "pay-" + HexEncode(Sha256("charge:" + provider + ":" + provider_id)).substr(0, 40);
}

std::string DerivedId(std::string_view kind, std::string_view workspace, std::string_view key) {
  std::string text(kind);
  text += ":";
  text += workspace;
  text += ":";
  text += key;
  return HexEncode(Sha256(text)).substr(0, 32);
}

PaymentEngine::PaymentEngine(Options options, PaymentStore& store, PaymentProvider& provider,
                             LedgerPort& ledger, PaymentMetrics& metrics)
    : options_(std::move(options)),
      store_(store),
      provider_(provider),
      ledger_(ledger),
      metrics_(metrics) {}

void PaymentEngine::LogError(std::string_view what, const sql::SqlError& error) const {
  log::Warn("payments: database error; the step will be retried",
            {{"step", what}, {"error", error.message}});
}

void PaymentEngine::RunOnce() {
  RunDue();
  RunTriggers();
}

int PaymentEngine::RunDue() {
  int worked = 0;
  const int64_t now_us = NowUs();
  const auto work_on = [&](const auto& due, const char* what, const auto& step) {
    if (!due.ok()) return LogError(what, due.error());
    for (const auto& row : *due) {
      if (stopping_) return;
      step(row);
      ++worked;
    }
  };
  work_on(store_.DuePayments(now_us, kBatch), "due payments",
          [this](const Payment& payment) { StepPayment(payment.workspace, payment.id); });
  work_on(store_.DueRefunds(now_us, kBatch), "due refunds",
          [this](const Refund& refund) { StepRefund(refund.workspace, refund.id); });
  work_on(store_.DueEvents(now_us, kBatch), "due events",
          [this](const ProviderEvent& event) { StepEvent(event); });
  return worked;
}

void PaymentEngine::Stop() {
  stopping_ = true;
  provider_.Abort();
}

void PaymentEngine::RunTriggers(const std::unordered_set<std::string>* only) {
  auto reloads = store_.TriggerableReloads(NowUs());
  if (!reloads.ok()) return LogError("auto-reloads", reloads.error());
  for (const AutoReload& reload : *reloads) {
    if (stopping_) return;
    if (only == nullptr || only->contains(reload.workspace)) Trigger(reload);
  }
}

std::optional<PaymentEngine::Claimed> PaymentEngine::Claim(const std::string& workspace,
                                                           const std::string& id) {
  std::optional<Claimed> claimed;
  auto seen = store_.FindPayment(workspace, id);
  if (!seen.ok()) {
    LogError("claim", seen.error());
    return std::nullopt;
  }
  if (!*seen) return std::nullopt;
  const auto unsent = [](const Payment& payment) {
    return payment.reload && payment.state == PaymentState::kRequested;
  };
  std::optional<LedgerFacts> ledger;
  // Without the ledger nothing is charged: the row stays due.
  if (unsent(**seen) && !(ledger = ReadLedger(workspace))) return std::nullopt;
  auto done = store_.Run(workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    claimed.reset();
    TRY(auto found, tx.FindPayment(id));
    if (!found || found->check_us == 0 || found->check_us > tx.now_us()) return {};
    Payment payment = *found;
    const Payment before = payment;
    payment.check_us = tx.now_us() + options_.lease_us;
    bool first = false;
    if (unsent(payment)) {
      if (!ledger) return {};
      TRY(auto why, WhyNotSend(tx, payment, *ledger));
      if (!why.empty()) {
        payment.state = PaymentState::kCancelled;
        payment.reason = kWithdrawn + why;
        payment.check_us = 0;
        return WriteChange(tx, before, payment);
      }
      // Written before the charge is sent, so that after a crash the engine asks about the charge
      // instead of assuming that it was not sent.
      first = true;
      payment.state = PaymentState::kSubmitted;
      payment.sent_us = payment.last_sent_us = tx.now_us();
    }
    TRY(WriteChange(tx, before, payment));
    claimed = Claimed{payment, first};
    return {};
  });
  if (!done.ok()) {
    LogError("claim", done.error());
    return std::nullopt;
  }
  return claimed;
}

void PaymentEngine::StepPayment(const std::string& workspace, const std::string& id) {
  if (!Survives("before_claim")) return;
  auto claimed = Claim(workspace, id);
  if (!claimed || !Survives("after_claim")) return;
  Payment& payment = claimed->payment;
  if (payment.state == PaymentState::kSucceeded && !payment.credited) return Credit(payment);
  if (payment.provider != provider_.name() || provider_.manual()) {
    // The payment was made with another provider, which must handle it.
    log::Warn("payments: a payment waits for a provider that is not configured",
              {{"payment", payment.id}, {"provider", payment.provider}});
    return;
  }
  const auto result = claimed->first_send ? provider_.Charge(payment.ref()) : Ask(payment);
  if (!Survives("after_call")) return;
  auto applied = Apply(payment, result, claimed->first_send);
  if (!applied.ok()) return LogError("apply", applied.error());
  if (!Survives("after_apply")) return;
  if (result.ok() && result->state == ChargeView::State::kSucceeded) {
    auto now = Claim(workspace, id);
    if (now && now->payment.state == PaymentState::kSucceeded && !now->payment.credited) {
      Credit(now->payment);
    }
  }
}

ProviderResult<ChargeView> PaymentEngine::MakePage(const Payment& payment) {
  TRY(auto customer, EnsureCustomer(payment.workspace));
  PaymentRef ref = payment.ref();
  ref.customer = customer;
  TRY(auto page, provider_.CreateCheckout(ref));
  auto stored = store_.Run(payment.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(payment.id));
    if (!found || !found->checkout_id.empty()) return {};
    Payment after = *found;
    after.customer = customer;
    after.checkout_id = page.id;
    after.checkout_url = page.url;
    return WriteChange(tx, *found, std::move(after));
  });
  if (!stored.ok()) {
    LogError("page", stored.error());
    return Fail{
        ProviderError{ProviderError::Kind::kNotDone, "database", "the page was not stored"}};
  }
  ChargeView view;
  view.payment_id = payment.id;
  view.state = ChargeView::State::kOpen;
  return view;
}

ProviderResult<std::string> PaymentEngine::EnsureCustomer(const std::string& workspace) {
  std::string customer;
  const auto read = [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindCustomer(provider_.name()));
    customer = found;
    return {};
  };
  const Fail<ProviderError> failed{
      ProviderError{ProviderError::Kind::kNotDone, "database", "the customer was not stored"}};
  if (auto done = store_.Run(workspace, NowUs(), read); !done.ok()) return failed;
  if (!customer.empty()) return customer;
  TRY(auto made, provider_.CreateCustomer(workspace));
  auto stored = store_.Run(workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(tx.PutCustomer(provider_.name(), made));
    return read(tx);  // the customer stored first is used
  });
  if (!stored.ok()) return failed;
  return customer;
}

SqlResult<void> PaymentEngine::Apply(const Payment& asked, const ProviderResult<ChargeView>& result,
                                     bool first_send) {
  if (!result.ok()) {
    metrics_.OnProviderError(result.error());
    log::Warn(
        "payments: a call to the provider failed, retrying",
        {{"payment", asked.id}, {"code", result.error().code}, {"error", result.error().message}});
  }
  Payment before, after;
  auto done = store_.Run(asked.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(asked.id));
    if (!found) return {};
    before = after = *found;
    if (result.ok()) {
      ApplyView(tx, *result, after);
      if (after.state == PaymentState::kSucceeded) {
        TRY(RefundExtraCharges(tx, after, result->paid));
      }
    } else {
      // Nobody has sent it again meanwhile.
      const bool unsent = first_send && after.last_sent_us == asked.last_sent_us;
      ApplyError(result.error(), unsent, after);
      if (result.error().kept && after.keys == asked.keys && after.failed_us == 0) {
        after.failed_us = tx.now_us();
      }
    }
    return WriteChange(tx, before, after);
  });
  if (done.ok() && before.state != after.state) metrics_.OnPayment(after);
  return done;
}

void PaymentEngine::ApplyError(const ProviderError& error, bool unsent, Payment& payment) {
  if (payment.state == PaymentState::kSucceeded) return;
  const bool sent =
      payment.state == PaymentState::kSubmitted || payment.state == PaymentState::kUnknown;
  if (payment.state == PaymentState::kRequested && payment.checkout_id.empty() &&
      error.kind == ProviderError::Kind::kRefused) {
    // Without a page the customer cannot pay.
    payment.state = PaymentState::kCancelled;
    payment.reason = error.code;
    payment.check_us = 0;
    return;
  }
  if (sent && error.kind != ProviderError::Kind::kNotDone) {
    payment.state = PaymentState::kUnknown;
    payment.reason = error.code;
  } else if (unsent && payment.state == PaymentState::kSubmitted) {
    // The provider certainly has nothing: the rules are asked again before the next try.
    payment.state = PaymentState::kRequested;
    payment.sent_us = payment.last_sent_us = 0;
  }
  payment.check_us = NowUs() + RetryPaymentUs(payment.attempts);
  ++payment.attempts;
}

void PaymentEngine::ApplyView(WorkspaceTx& tx, const ChargeView& view, Payment& payment) {
  using State = ChargeView::State;
  if (payment.state == PaymentState::kSucceeded) {
    // A paid payment stays paid: refunds and disputes have their own entries.
    payment.check_us = payment.credited ? 0 : NowUs();
    return;
  }
  if (!view.provider_id.empty()) payment.provider_id = view.provider_id;
  if (payment.ended() && view.state != State::kSucceeded) {
    payment.check_us = 0;
    return;
  }
  switch (view.state) {
    case State::kNone:
    case State::kOpen:
      if (payment.state == PaymentState::kRequested || payment.state == PaymentState::kUnknown) {
        if (view.state == State::kOpen) payment.state = PaymentState::kSubmitted;
      }
      payment.check_us =
          NowUs() + (payment.reload ? RetryPaymentUs(payment.attempts) : PollUs(payment.attempts));
      ++payment.attempts;
      return;
    case State::kSucceeded:
      if (view.received_cents != payment.amount_cents() || view.currency != "usd" ||
          view.provider_id.empty()) {
        tx.AfterCommit([this, view, id = payment.id, cents = payment.amount_cents()] {
          metrics_.OnMismatch();
          log::Error(
              "payments: the provider's amount differs from the payment's; no credit is posted",
              {{"payment", id},
               {"provider_id", view.provider_id},
               {"received_cents", view.received_cents},
               {"cents", cents}});
        });
        if (payment.ended()) {  // a person has given it up
          payment.check_us = 0;
          return;
        }
        payment.state = PaymentState::kUnknown;
        payment.reason = kAmountMismatch;
        payment.check_us = NowUs() + kMismatchUs;
        return;
      }
      payment.state = PaymentState::kSucceeded;
      payment.reason.clear();
      payment.check_us = NowUs();
      payment.attempts = 0;
      return;
    case State::kDeclined:
    case State::kCancelled:
      payment.state =
          view.state == State::kDeclined ? PaymentState::kDeclined : PaymentState::kCancelled;
      payment.reason = view.reason;
      payment.check_us = 0;
      payment.attempts = 0;
      return;
  }
}

SqlResult<void> PaymentEngine::WriteChange(WorkspaceTx& tx, const Payment& before, Payment after) {
  after.updated_us = tx.now_us();
  if (after.ended() && after.check_us == 0 && after.watch_us > tx.now_us()) {
    after.check_us = std::min(tx.now_us() + kWatchUs, after.watch_us);
  }
  if (before.state != after.state || before.credited != after.credited ||
      before.disputed != after.disputed) {
    std::string to(Name(after.state));
    if (after.credited) to += "+credited";
    if (after.disputed) to += "+disputed";
    std::string from(Name(before.state));
    if (before.credited) from += "+credited";
    if (before.disputed) from += "+disputed";
    TRY(tx.Log("payment/" + after.id, from, to, after.amount_nano_usd, kEngineActor, after.reason));
  }
  TRY(tx.Put(after));
  return FollowPayment(tx, before, after);
}

void PaymentEngine::Credit(const Payment& payment) {
  AddCredit credit;
  credit.workspace = payment.workspace;
  credit.command_id = CreditCommandId(payment.provider, payment.provider_id);
  credit.amount_nano_usd = payment.amount_nano_usd;
  credit.actor = kEngineActor;
  credit.reason = "payment " + payment.id;
  auto reply = ledger_.Submit(std::move(credit));
  if (!Survives("after_credit")) return;
  const bool posted = reply.ok() && reply->ok;
  if (reply.ok() && !reply->ok) {
    metrics_.OnCreditRefused();
    log::Error("payments: the ledger refused the credit of a paid payment",
               {{"payment", payment.id},
                {"workspace", payment.workspace},
                {"denied_by", static_cast<int>(reply->denied_by)}});
  }
  auto done = store_.Run(payment.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(payment.id));
    if (!found || found->credited) return {};
    Payment after = *found;
    if (posted) {
      after.credited = true;
      after.check_us = 0;
      after.attempts = 0;
    } else {
      after.check_us = NowUs() + (reply.ok() ? kCreditRefusedUs : RetryPaymentUs(after.attempts));
      ++after.attempts;
    }
    return WriteChange(tx, *found, std::move(after));
  });
  if (!done.ok()) LogError("credited", done.error());
}

}  // namespace tollgate::billing::payments
