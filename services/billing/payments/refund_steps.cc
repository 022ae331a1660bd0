// Part of the engine: refunds. The ledger takes the credit first, so that it cannot be spent
// meanwhile; then the provider pays. If the provider cannot pay out the refund, at once or weeks
// later, the credit is returned. The ledger has no credit of a second charge of a payment: it is
// only given back, or becomes credit if the provider cannot.
#include <algorithm>
#include <utility>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

// An accepted refund can fail for about a month. A webhook reports it; without one the engine asks.
constexpr int64_t kAskUs = 86'400 * kSecondUs;
constexpr int64_t kMayFailUs = 35 * kAskUs;

int64_t RetryRefundUs(int64_t attempts) {
  return std::min<int64_t>(600, 1LL << std::min<int64_t>(attempts, 10)) * kSecondUs;
}

}  // namespace

void PaymentEngine::StepRefund(const std::string& workspace, const std::string& id) {
  struct Row {
    Refund refund;
    Payment payment;
  };
  std::optional<Row> claimed;
  auto done = store_.Run(workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    claimed.reset();
    TRY(auto refund, tx.FindRefund(id));
    if (!refund || refund->check_us == 0 || refund->check_us > tx.now_us()) return {};
    TRY(auto payment, tx.FindPayment(refund->payment));
    if (!payment) return {};
    claimed = Row{*refund, *payment};
    claimed->refund.check_us = tx.now_us() + options_.lease_us;
    return tx.Put(claimed->refund);
  });
  if (!done.ok()) return LogError("refund", done.error());
  if (!claimed || !Survives("refund_claimed")) return;
  Refund refund = claimed->refund;
  const RefundState was = refund.state;
  if (refund.state == RefundState::kSubmitted) return AskRefund(std::move(refund));
  if (refund.state == RefundState::kFailed) return ReturnCredit(std::move(refund));
  if (refund.state == RefundState::kRequested && !TakeCredit(refund)) {
    return WriteRefund(refund, was);
  }
  if (!Survives("refund_taken")) return;
  // Stored before the call to the provider: from here on the call is repeated until the provider
  // accepts it.
  if (was != refund.state) WriteRefund(refund, was);
  SendRefund(refund, claimed->payment);
}

// Returns whether the credit has been taken from the wallet.
bool PaymentEngine::TakeCredit(Refund& refund) {
  Correct take;
  take.workspace = refund.workspace;
  take.command_id = "refund-" + refund.id;
  take.kind = CommandKind::kRefund;
  take.amount_nano_usd = refund.amount_nano_usd;
  take.actor = refund.actor;
  take.reason = refund.reason;
  take.reference = refund.payment;
  auto reply = ledger_.Submit(std::move(take));
  if (!reply.ok()) {
    refund.check_us = NowUs() + RetryRefundUs(refund.attempts++);
    return false;
  }
  if (!reply->ok || reply->command_state == CommandState::kRejected) {
    refund.state = RefundState::kRefused;
    refund.check_us = 0;
    return false;
  }
  if (reply->command_state == CommandState::kPending) {
    // A second person decides.
    refund.check_us = NowUs() + RetryRefundUs(refund.attempts++);
    return false;
  }
  refund.state = RefundState::kTaken;
  refund.attempts = 0;
  return true;
}

ProviderResult<std::vector<RefundView>> PaymentEngine::RefundsElsewhere(const Payment& payment) {
  auto made = provider_.ListRefunds(payment.provider_id);
  if (!made.ok()) return made;
  // Read after the list, so that it has every refund that we have sent.
  auto ours = store_.RefundsOf(payment.workspace);
  if (!ours.ok()) {
    return Fail{ProviderError{ProviderError::Kind::kNotDone, "database", "no refunds were read"}};
  }
  std::erase_if(*made, [&](const RefundView& view) {
    return view.failed || std::ranges::any_of(*ours, [&](const Refund& refund) {
             return refund.state != RefundState::kRefused &&
                    (view.refund_id == refund.id || view.id == refund.provider_id);
           });
  });
  return made;
}

ProviderResult<RefundView> PaymentEngine::MakeRefund(const Refund& refund, const Payment& payment) {
  if (provider_.name() != payment.provider) {
    return Fail{ProviderError{ProviderError::Kind::kNotDone, "other_provider",
                              "the provider of the payment is not configured"}};
  }
  RefundView adopted;
  adopted.id = refund.provider_id;
  if (!refund.provider_id.empty()) return adopted;
  Payment charged = payment;
  if (!refund.extra_charge.empty()) charged.provider_id = refund.extra_charge;
  TRY(auto elsewhere, RefundsElsewhere(charged));
  if (!elsewhere.empty()) {
    log::Warn(
        "payments: a refund waits, since the provider has refunds of the payment whose credit was "
        "not taken; adopt them, else the customer is paid twice",
        {{"refund", refund.id}, {"payment", payment.id}, {"elsewhere", elsewhere.front().id}});
    return Fail{ProviderError{ProviderError::Kind::kNotDone, "refunded_elsewhere", ""}};
  }
  return provider_.Refund(
      {refund.id, refund.workspace, charged.ref(), refund.amount_nano_usd / kNanoPerCent});
}

SqlResult<void> PaymentEngine::RefundExtraCharges(WorkspaceTx& tx, const Payment& payment,
                                                  const std::vector<ChargeView::Paid>& paid) {
  for (const ChargeView::Paid& charge : paid) {
    if (charge.id == payment.provider_id) continue;
    Refund refund;
    refund.id = DerivedId("extra_charge", payment.workspace, charge.id);
    TRY(auto known, tx.FindRefund(refund.id));
    if (known) continue;
    refund.workspace = payment.workspace;
    refund.payment = payment.id;
    refund.extra_charge = charge.id;
    refund.state = RefundState::kTaken;
    refund.amount_nano_usd = charge.cents * kNanoPerCent;
    refund.reason = "second charge " + charge.id + " of the payment";
    refund.actor = kEngineActor;
    refund.created_us = refund.updated_us = refund.check_us = tx.now_us();
    TRY(tx.Put(refund));
    TRY(tx.Log("refund/" + refund.id, "", Name(refund.state), refund.amount_nano_usd, kEngineActor,
               refund.reason));
    tx.AfterCommit([refund, charge = charge.id] {
      log::Warn("payments: the provider has made a second charge of a payment; it is given back",
                {{"workspace", refund.workspace}, {"payment", refund.payment}, {"charge", charge}});
    });
  }
  return {};
}

void PaymentEngine::SendRefund(Refund refund, const Payment& payment) {
  const RefundState was = refund.state;
  const auto sent = MakeRefund(refund, payment);
  if (!Survives("refund_sent")) return;
  if (sent.ok() && !sent->failed) {
    refund.state = RefundState::kSubmitted;
    refund.provider_id = sent->id;
    refund.attempts = 0;
    refund.check_us = provider_.manual() ? 0 : NowUs() + kAskUs;
  } else if (sent.ok() || sent.error().kind == ProviderError::Kind::kRefused) {
    if (!sent.ok()) metrics_.OnProviderError(sent.error());
    if (FailRefund(refund.workspace, refund.id)) StepRefund(refund.workspace, refund.id);
    return;
  } else {
    metrics_.OnProviderError(sent.error());
    refund.check_us = NowUs() + RetryRefundUs(refund.attempts++);
  }
  WriteRefund(refund, was);
}

// Asks whether a refund that the provider has accepted has failed since.
void PaymentEngine::AskRefund(Refund refund) {
  auto view = provider_.manual() ? ProviderResult<RefundView>(RefundView())
                                 : provider_.GetRefund(refund.provider_id);
  if (view.ok() && view->failed) {
    if (FailRefund(refund.workspace, refund.id)) StepRefund(refund.workspace, refund.id);
    return;
  }
  if (!view.ok()) metrics_.OnProviderError(view.error());
  const bool settled = NowUs() - refund.created_us > kMayFailUs;
  refund.check_us = settled ? 0 : NowUs() + (view.ok() ? kAskUs : RetryRefundUs(refund.attempts++));
  WriteRefund(refund, RefundState::kSubmitted);
}

bool PaymentEngine::FailRefund(const std::string& workspace, const std::string& id) {
  std::optional<Refund> failed;
  auto done = store_.Run(workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failed.reset();
    TRY(auto found, tx.FindRefund(id));
    if (!found ||
        (found->state != RefundState::kTaken && found->state != RefundState::kSubmitted)) {
      return {};
    }
    failed = *found;
    failed->state = RefundState::kFailed;
    failed->attempts = 0;
    failed->updated_us = failed->check_us = tx.now_us();
    TRY(tx.Put(*failed));
    return tx.Log("refund/" + id, Name(found->state), Name(failed->state), failed->amount_nano_usd,
                  kEngineActor, "");
  });
  if (!done.ok()) {
    LogError("refund", done.error());
    return false;
  }
  if (failed) {
    metrics_.OnRefundFailed();
    log::Error(
        "payments: the provider cannot pay out a refund; its credit is returned. Tell the "
        "customer, or pay in another way",
        {{"refund", id}, {"workspace", workspace}, {"payment", failed->payment}});
  }
  return Survives("refund_failed");
}

Operation PaymentEngine::CreditOf(const Refund& refund) const {
  const std::string reason = "refund " + refund.id + " could not be paid out";
  if (!refund.extra_charge.empty()) {
    return AddCredit{.workspace = refund.workspace,
                     .command_id = CreditCommandId(provider_.name(), refund.extra_charge),
                     .amount_nano_usd = refund.amount_nano_usd,
                     .actor = kEngineActor,
                     .reason = reason};
  }
  Correct give;
  give.workspace = refund.workspace;
  give.command_id = "refund-failed-" + refund.id;
  give.kind = CommandKind::kRefundFailed;
  give.amount_nano_usd = refund.amount_nano_usd;
  give.actor = kEngineActor;
  give.reason = reason;
  give.reference = refund.payment;
  return give;
}

void PaymentEngine::ReturnCredit(Refund refund) {
  auto reply = ledger_.Submit(CreditOf(refund));
  if (!Survives("refund_returned")) return;
  if (reply.ok() && reply->ok) {
    refund.state = RefundState::kReturned;
    refund.check_us = 0;
  } else {
    refund.check_us = NowUs() + RetryRefundUs(refund.attempts++);
    log::Error("payments: the credit of a failed refund could not be returned, retrying",
               {{"refund", refund.id}, {"workspace", refund.workspace}});
  }
  WriteRefund(refund, RefundState::kFailed);
}

void PaymentEngine::WriteRefund(const Refund& refund, RefundState was) {
  auto done = store_.Run(refund.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindRefund(refund.id));
    // Another engine claimed the row after the lease expired, and was faster.
    if (!found || found->state > refund.state || found->check_us == 0) return {};
    Refund after = refund;
    after.updated_us = tx.now_us();
    TRY(tx.Put(after));
    const bool undone =
        after.state == RefundState::kRefused || after.state == RefundState::kReturned;
    if (undone && found->state != after.state && refund.extra_charge.empty()) {
      TRY(auto payment, tx.FindPayment(refund.payment));
      if (payment) {
        payment->refunded_nano_usd -= refund.amount_nano_usd;
        TRY(tx.Put(*payment));
      }
    }
    if (was == after.state) return {};
    if (after.state == RefundState::kTaken) {
      TRY(PauseReload(tx, kPausedByRefund));
    }
    return tx.Log("refund/" + refund.id, Name(was), Name(after.state), refund.amount_nano_usd,
                  refund.actor, refund.reason);
  });
  if (!done.ok()) LogError("refund", done.error());
}

}  // namespace tollgate::billing::payments
