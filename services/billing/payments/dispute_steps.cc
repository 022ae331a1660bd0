// Part of the engine: follows disputes. A chargeback is decided by the provider: the ledger takes
// the credit, and the part that is missing becomes a receivable that freezes the workspace.
//
// The engine asks the provider about each event, but answers may be applied in another order than
// they were given. So the state of a dispute only moves forward (DisputeView::State), under the
// workspace's lock, and the operations for the ledger follow from the stored state alone.
#include <algorithm>
#include <utility>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/base/workspace_id.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {

using sql::SqlResult;

// How old a dispute may be that is still asked about: most end within four months.
constexpr int64_t kPollUs = 180 * kDayUs;

SqlResult<std::optional<Payment>> PaymentEngine::FindDisputed(const DisputeView& view) {
  // Our id also finds a payment whose charge id is not stored yet.
  if (IsWorkspaceId(view.workspace) && !view.payment_id.empty()) {
    auto found = store_.FindPayment(view.workspace, view.payment_id);
    if (!found.ok() || *found) return found;
  }
  return store_.FindByProviderId(view.charge);
}

SqlResult<Dispute> PaymentEngine::StoreDispute(const DisputeView& view, const Payment& payment) {
  using State = DisputeView::State;
  Dispute dispute;
  bool changed = false;
  auto done = store_.Run(payment.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto known, tx.FindDispute(view.id));
    changed = false;
    dispute = {};
    dispute.workspace = payment.workspace;
    dispute.id = view.id;
    dispute.payment = payment.id;
    dispute.state = view.state;
    dispute.fraud_warning = view.fraud_warning;
    if (known) dispute = *known;
    dispute.state = std::max(dispute.state, view.state);
    if (dispute.state == view.state) dispute.due_us = view.due_us;
    TRY(auto row, tx.FindPayment(payment.id));
    const bool holds = dispute.state == State::kOpen || dispute.state == State::kLost;
    // An older version took the credit without storing the dispute; only the payment's flag shows
    // it. Taking it again has the same command id and changes nothing.
    const bool taken_before = !known && row && row->disputed && dispute.state == State::kWon;
    if ((holds || taken_before) && !dispute.taken) {
      dispute.taken = true;
      if (holds) dispute.opened_us = tx.now_us();
      dispute.amount_nano_usd = std::min(view.amount_cents * kNanoPerCent, payment.amount_nano_usd);
    }
    if (known && known->state == dispute.state) {
      if (known->due_us == dispute.due_us) return {};
      return tx.Put(dispute);
    }
    changed = true;
    if (dispute.state > State::kOpen) dispute.closed_us = tx.now_us();
    TRY(tx.Put(dispute));
    if (dispute.state != State::kWon) {
      const char* reason = view.fraud_warning ? kPausedByFraudWarning : kPausedByDispute;
      TRY(PauseReload(tx, reason));
    }
    TRY(tx.Log("dispute/" + view.id, known ? Name(known->state) : "", Name(dispute.state),
               dispute.amount_nano_usd, kEngineActor, payment.id));
    TRY(auto disputed, tx.IsDisputed(payment.id));
    if (!row || row->disputed == disputed) return {};
    Payment after = *row;
    after.disputed = disputed;
    return WriteChange(tx, *row, std::move(after));
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  if (changed) metrics_.OnDispute(dispute);
  return dispute;
}

bool PaymentEngine::ApplyDispute(const DisputeView& view) {
  auto found = FindDisputed(view);
  if (!found.ok()) {
    LogError("dispute", found.error());
    return false;
  }
  if (!*found) {
    log::Error("payments: a dispute concerns a charge that belongs to none of our payments",
               {{"dispute", view.id}, {"charge", view.charge}});
    return true;
  }
  const Payment& payment = **found;
  auto dispute = StoreDispute(view, payment);
  if (!dispute.ok()) {
    LogError("dispute", dispute.error());
    return false;
  }
  // Nothing was taken: the dispute is an inquiry, or was won before.
  if (!dispute->taken || dispute->amount_nano_usd <= 0) return true;
  if (!payment.credited) return false;  // retried after the credit is posted
  Correct take;
  take.workspace = payment.workspace;
  take.command_id = "dispute-" + DerivedId("dispute", payment.workspace, view.id);
  take.kind = CommandKind::kChargeback;
  take.amount_nano_usd = dispute->amount_nano_usd;
  take.actor = kEngineActor;
  take.reason = "dispute " + view.id;
  take.reference = payment.id;
  if (auto reply = ledger_.Submit(take); !reply.ok() || !reply->ok) return false;
  if (dispute->state == DisputeView::State::kWon) {
    Correct give = take;
    give.kind = CommandKind::kChargebackWon;
    give.command_id = "won-" + take.command_id.substr(8);
    give.reason = "dispute " + view.id + " won";
    if (auto reply = ledger_.Submit(give); !reply.ok() || !reply->ok) return false;
  }
  return Survives("dispute_posted");
}

void PaymentEngine::PollDisputes() {
  if (provider_.manual()) return;
  const int64_t now_us = NowUs();
  auto listed = provider_.ListDisputes(now_us - kPollUs, now_us + kDayUs);
  if (!listed.ok()) return metrics_.OnProviderError(listed.error());
  for (const DisputeView& view : *listed) {
    if (stopping_) return;
    auto payment = FindDisputed(view);
    if (!payment.ok()) return LogError("disputes", payment.error());
    // A charge that is not ours is the reconciliation's: it lists each.
    if (*payment) ApplyDispute(view);
  }
}

}  // namespace tollgate::billing::payments
