// Part of the engine: makes the payments that a restored database lacks.
#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/base/workspace_id.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

constexpr size_t kMaxPaymentId = 64;

Payment PaymentOf(const ChargeView& charge, const std::string& provider) {
  Payment payment;
  payment.workspace = charge.workspace;
  payment.id = charge.payment_id;
  payment.provider = provider;
  payment.provider_id = charge.provider_id;
  payment.state = PaymentState::kSubmitted;
  payment.reload = charge.reload;
  payment.amount_nano_usd = charge.received_cents * kNanoPerCent;
  payment.customer = charge.customer;
  payment.actor = kEngineActor;
  payment.created_us = charge.created_us;
  if (charge.reload) {
    payment.method = charge.method;
    payment.sent_us = payment.last_sent_us = charge.created_us;
  }
  return payment;
}

}  // namespace

bool PaymentEngine::IsOurs(const ChargeView& charge) {
  return charge.state == ChargeView::State::kSucceeded && charge.received_cents > 0 &&
         !charge.provider_id.empty() && IsWorkspaceId(charge.workspace) &&
         !charge.payment_id.empty() && charge.payment_id.size() <= kMaxPaymentId;
}

// Stores the row unless there is one, or the charge belongs to another installation's customer.
SqlResult<void> PaymentEngine::StoreAdopted(WorkspaceTx& tx, const ChargeView& charge,
                                            const Payment& payment, bool& made) {
  made = false;
  TRY(auto found, tx.FindPayment(payment.id));
  if (found) return {};
  TRY(auto customer, tx.FindCustomer(provider_.name()));
  if (!customer.empty() && customer != charge.customer) {
    log::Error("payments: a paid charge names a workspace of ours, but another customer",
               {{"workspace", charge.workspace}, {"provider_id", charge.provider_id}});
    return {};
  }
  if (customer.empty() && !charge.customer.empty()) {
    TRY(tx.PutCustomer(provider_.name(), charge.customer));
  }
  made = true;
  Payment row = payment;
  row.updated_us = row.check_us = tx.now_us();
  TRY(tx.Put(row));
  auto logged = tx.Log("payment/" + row.id, "", Name(row.state), row.amount_nano_usd, kEngineActor,
                       "found at the provider");
  if (!logged.ok() || !row.reload) return logged;
  TRY(auto reload, tx.FindReload());
  if (!reload || UtcMonth(row.created_us) != UtcMonth(tx.now_us())) return {};
  RollMonth(*reload, tx.now_us());
  reload->month_charged_nano_usd += row.amount_nano_usd;
  reload->updated_us = tx.now_us();
  return tx.Put(*reload);
}

PaymentEngine::Adopted PaymentEngine::AdoptCharge(const ChargeView& charge) {
  if (!IsOurs(charge)) return Adopted::kNo;
  auto wallet = ledger_.HasWallet(charge.workspace);
  if (!wallet.ok()) return Adopted::kRetry;
  if (!*wallet) {
    log::Error("payments: a paid charge names a workspace that has no wallet; create it again",
               {{"workspace", charge.workspace}, {"provider_id", charge.provider_id}});
    return Adopted::kRetry;
  }
  const Payment payment = PaymentOf(charge, provider_.name());
  bool made = false;
  auto done = store_.Run(payment.workspace, NowUs(),
                         [&](WorkspaceTx& tx) { return StoreAdopted(tx, charge, payment, made); });
  if (!done.ok()) {
    LogError("adopt", done.error());
    return Adopted::kRetry;
  }
  if (!made) return Adopted::kNo;
  metrics_.OnPaymentAdopted();
  log::Warn("payments: a paid charge had no payment here; it was made from the provider's answer",
            {{"payment", payment.id}, {"workspace", payment.workspace}});
  if (auto applied = Apply(payment, charge); !applied.ok()) LogError("adopt", applied.error());
  StepPayment(payment.workspace, payment.id);
  return Adopted::kYes;
}

// An event of a payment that has no row: the database was restored to a time before it.
bool PaymentEngine::AdoptFromEvent(const ProviderEvent& event) {
  PaymentRef ref;
  ref.workspace = event.workspace;
  ref.id = event.payment;
  (event.type.starts_with("checkout.session.") ? ref.checkout_id : ref.provider_id) = event.object;
  auto view = provider_.Find(ref);
  if (!view.ok()) {
    metrics_.OnProviderError(view.error());
    return view.error().kind == ProviderError::Kind::kRefused;
  }
  return view->workspace != event.workspace || AdoptCharge(*view) != Adopted::kRetry;
}

}  // namespace tollgate::billing::payments
