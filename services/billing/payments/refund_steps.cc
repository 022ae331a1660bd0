// The part of the engine that gives money back: the ledger first, so that the credit cannot be
// spent meanwhile, then the provider. And the disputes of customers.
#include <algorithm>
#include <utility>

#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

constexpr int64_t kSecondUs = 1'000'000;

int64_t RetryUs(int64_t attempts) {
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
    auto refund = tx.FindRefund(id);
    if (!refund.ok()) return Fail{refund.error()};
    if (!*refund || (*refund)->check_us == 0 || (*refund)->check_us > tx.now_us()) return {};
    auto payment = tx.FindPayment((*refund)->payment);
    if (!payment.ok()) return Fail{payment.error()};
    if (!*payment) return {};
    claimed = Row{**refund, **payment};
    claimed->refund.check_us = tx.now_us() + options_.lease_us;
    return tx.Put(claimed->refund);
  });
  if (!done.ok()) return LogError("refund", done.error());
  if (!claimed || !Survives("refund_claimed")) return;
  Refund refund = claimed->refund;
  const RefundState was = refund.state;
  if (refund.state == RefundState::kRequested && !TakeCredit(refund)) {
    return WriteRefund(refund, was);
  }
  if (!Survives("refund_taken")) return;
  // Stored before the provider is asked: from here on it is repeated until the provider has it.
  if (was != refund.state) WriteRefund(refund, was);
  SendRefund(refund, claimed->payment);
}

// Whether the credit is out of the wallet now.
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
    refund.check_us = NowUs() + RetryUs(refund.attempts++);
    return false;
  }
  if (!reply->ok || reply->command_state == CommandState::kRejected) {
    refund.state = RefundState::kRefused;
    refund.check_us = 0;
    return false;
  }
  if (reply->command_state == CommandState::kPending) {
    // A second person decides.
    refund.check_us = NowUs() + RetryUs(refund.attempts++);
    return false;
  }
  refund.state = RefundState::kTaken;
  refund.attempts = 0;
  return true;
}

void PaymentEngine::SendRefund(Refund refund, const Payment& payment) {
  const RefundState was = refund.state;
  const RefundRef ref{refund.id, refund.workspace, payment.ref(),
                      refund.amount_nano_usd / kNanoPerCent};
  const auto sent = provider_.name() == payment.provider
                        ? provider_.Refund(ref)
                        : ProviderResult<RefundView>(
                              Fail{ProviderError{ProviderError::Kind::kNotDone, "other_provider",
                                                 "the provider of the payment is not configured"}});
  if (!Survives("refund_sent")) return;
  if (sent.ok() && !sent->failed) {
    refund.state = RefundState::kSubmitted;
    refund.provider_id = sent->id;
    refund.check_us = 0;
  } else if (sent.ok() || sent.error().kind == ProviderError::Kind::kRefused) {
    refund.state = RefundState::kFailed;
    refund.check_us = 0;
    log::Error(
        "payments: the provider refused a refund whose credit is taken; give it back with an "
        "adjustment, or pay by another way",
        {{"refund", refund.id},
         {"payment", payment.id},
         {"code", sent.ok() ? "failed" : sent.error().code}});
  } else {
    metrics_.OnProviderError(sent.error());
    refund.check_us = NowUs() + RetryUs(refund.attempts++);
  }
  WriteRefund(refund, was);
}

void PaymentEngine::WriteRefund(const Refund& refund, RefundState was) {
  auto done = store_.Run(refund.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    auto found = tx.FindRefund(refund.id);
    if (!found.ok()) return Fail{found.error()};
    // Another engine, which had the row after its lease, was faster.
    if (!*found || (*found)->state > refund.state || (*found)->check_us == 0) return {};
    Refund after = refund;
    after.updated_us = tx.now_us();
    if (auto put = tx.Put(after); !put.ok()) return put;
    if (after.state == RefundState::kRefused && (*found)->state != RefundState::kRefused) {
      auto payment = tx.FindPayment(refund.payment);
      if (!payment.ok()) return Fail{payment.error()};
      if (*payment) {
        (*payment)->refunded_nano_usd -= refund.amount_nano_usd;
        if (auto put = tx.Put(**payment); !put.ok()) return put;
      }
    }
    if (was == after.state) return {};
    return tx.Log("refund/" + refund.id, Name(was), Name(after.state), refund.amount_nano_usd,
                  refund.actor, refund.reason);
  });
  if (!done.ok()) LogError("refund", done.error());
}

// Chargebacks are the provider's word: the ledger takes the credit, and what is not there becomes a
// receivable that freezes the workspace.
bool PaymentEngine::ApplyDispute(const DisputeView& dispute) {
  auto found = store_.FindByProviderId(dispute.charge);
  if (!found.ok()) {
    LogError("dispute", found.error());
    return false;
  }
  if (!*found) {
    log::Error("payments: a dispute names a charge that is no payment of ours",
               {{"dispute", dispute.id}, {"charge", dispute.charge}});
    return true;
  }
  const Payment payment = **found;
  const int64_t amount_nano_usd =
      std::min(dispute.amount_cents * kNanoPerCent, payment.amount_nano_usd);
  if (amount_nano_usd <= 0) return true;
  if (!payment.credited) return false;  // later: first the credit
  const bool inquiry = dispute.state == DisputeView::State::kInquiry;
  if (inquiry && !payment.disputed) return true;
  Correct take;
  take.workspace = payment.workspace;
  take.command_id = "dispute-" + DerivedId("dispute", payment.workspace, dispute.id);
  take.kind = CommandKind::kChargeback;
  take.amount_nano_usd = amount_nano_usd;
  take.actor = kEngineActor;
  take.reason = "dispute " + dispute.id;
  take.reference = payment.id;
  if (auto reply = ledger_.Submit(take); !reply.ok() || !reply->ok) return false;
  const bool won = inquiry || dispute.state == DisputeView::State::kWon;
  if (won) {
    Correct give = take;
    give.kind = CommandKind::kChargebackWon;
    give.command_id = "won-" + take.command_id.substr(8);
    give.reason = "dispute " + dispute.id + " won";
    if (auto reply = ledger_.Submit(give); !reply.ok() || !reply->ok) return false;
  }
  if (!Survives("dispute_posted")) return false;
  auto done = store_.Run(payment.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    auto row = tx.FindPayment(payment.id);
    if (!row.ok()) return Fail{row.error()};
    if (!*row || (*row)->disputed == !won) return {};
    Payment after = **row;
    after.disputed = !won;
    return WriteChange(tx, **row, std::move(after));
  });
  if (!done.ok()) LogError("dispute", done.error());
  return done.ok();
}

}  // namespace tollgate::billing::payments
