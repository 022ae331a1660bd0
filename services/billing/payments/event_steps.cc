// Part of the engine: processes webhooks. An event only says which object to ask the provider
// about, so that lost, repeated and reordered events do no harm.
#include <algorithm>
#include <utility>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/base/workspace_id.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/webhook.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

constexpr int64_t kGiveUpEventUs = 72 * 3600 * kSecondUs;

int64_t RetryEventUs(int64_t attempts) {
  return std::min<int64_t>(900, 5LL << std::min<int64_t>(attempts, 8)) * kSecondUs;
}

}  // namespace

// Claims the event first, since several replicas see the same due event.
void PaymentEngine::StepEvent(const ProviderEvent& event) {
  if (!Survives("before_event")) return;
  const int64_t claimed_until_us = NowUs() + options_.lease_us;
  auto claimed = store_.ClaimEvent(event, claimed_until_us);
  if (!claimed.ok()) return LogError("event", claimed.error());
  if (!*claimed || !Survives("event_claimed")) return;
  const bool finished = RunEvent(event);
  if (!Survives("after_event")) return;
  ProviderEvent after = event;
  after.check_us = finished ? 0 : NowUs() + RetryEventUs(after.attempts++);
  if (!finished && NowUs() - event.received_us > kGiveUpEventUs) {
    after.check_us = 0;
    // Many customers leave the page for saving a card without using it.
    if (event.type != kSetupEvent)
      log::Error("payments: an event of the provider could not be processed for three days",
                 {{"event", event.id}, {"type", event.type}, {"object", event.object}});
  }
  if (auto put = store_.FinishEvent(after, claimed_until_us); !put.ok()) {
    LogError("event", put.error());
  }
}

// Returns whether the event needs no further work.
bool PaymentEngine::RunEvent(const ProviderEvent& event) {
  if (provider_.manual()) return true;
  if (event.type == kSetupEvent) return StoreMethod(event);
  if (event.type.starts_with("charge.dispute.") || IsFraudWarning(event.type)) {
    auto dispute = IsFraudWarning(event.type) ? provider_.GetFraudWarning(event.object)
                                              : provider_.GetDispute(event.object);
    if (dispute.ok()) return ApplyDispute(*dispute);
    metrics_.OnProviderError(dispute.error());
    return dispute.error().kind == ProviderError::Kind::kRefused;
  }
  if (IsRefundEvent(event.type)) return RunRefundEvent(event);
  if (event.payment.empty() || event.workspace.empty()) return true;
  auto found = store_.FindPayment(event.workspace, event.payment);
  if (!found.ok()) return false;
  if (!*found) return AdoptFromEvent(event);
  if ((*found)->provider != provider_.name()) return true;
  const Payment& payment = **found;
  // Another key may have made a second charge.
  if (payment.state == PaymentState::kSucceeded && payment.credited && payment.keys == 1) {
    return true;
  }
  // The running first call will bring its own answer.
  if (payment.state == PaymentState::kRequested) return false;
  auto view = provider_.Find(payment.ref());
  if (!Survives("event_found")) return false;
  if (!view.ok()) {
    metrics_.OnProviderError(view.error());
    return false;
  }
  if (view->state == ChargeView::State::kNone) return false;
  if (auto applied = Apply(payment, view); !applied.ok()) {
    LogError("event", applied.error());
    return false;
  }
  if (view->state == ChargeView::State::kSucceeded) StepPayment(payment.workspace, payment.id);
  return true;
}

// Handles events of refunds, also of those accepted before.
bool PaymentEngine::RunRefundEvent(const ProviderEvent& event) {
  auto view = provider_.GetRefund(event.object);
  if (!view.ok()) {
    metrics_.OnProviderError(view.error());
    return view.error().kind == ProviderError::Kind::kRefused;
  }
  // The reconciliation finds refunds made in the provider's dashboard.
  if (!view->failed || view->refund_id.empty() || !IsWorkspaceId(view->workspace)) return true;
  if (!FailRefund(view->workspace, view->refund_id)) return false;
  StepRefund(view->workspace, view->refund_id);
  return true;
}

// Handles a visited page for saving a card.
bool PaymentEngine::StoreMethod(const ProviderEvent& event) {
  auto setup = provider_.GetSetup(event.object);
  if (!setup.ok()) {
    metrics_.OnProviderError(setup.error());
    return setup.error().kind == ProviderError::Kind::kRefused;
  }
  if (!IsWorkspaceId(setup->workspace)) return true;
  if (!setup->method) return false;
  auto done = store_.Run(setup->workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto customer, tx.FindCustomer(provider_.name()));
    // Stores a card only if it belongs to this workspace's customer.
    if (customer.empty() || customer != setup->method->customer) return {};
    // A deleted card is not stored again: events may come late or repeated.
    TRY(auto known, tx.KnowsMethod(setup->method->id));
    if (known) return {};
    const MethodView& view = *setup->method;
    TRY(tx.Put(PaymentMethod{setup->workspace, view.id, provider_.name(), view.brand, view.last4,
                             view.expiry, tx.now_us()}));
    return tx.Log("method/" + view.id, "", "saved", 0, kEngineActor, "");
  });
  if (!done.ok()) LogError("method", done.error());
  return done.ok();
}

}  // namespace tollgate::billing::payments
