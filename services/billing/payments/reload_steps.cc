// Part of the engine: starts and ends the charges of auto-reload.
#include <utility>

#include "common/base/clock.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

bool Ended(PaymentState state) {
  return state == PaymentState::kDeclined || state == PaymentState::kCancelled;
}

}  // namespace

// Updates the workspace's auto-reload after a change of a payment, in the same transaction.
SqlResult<void> PaymentEngine::FollowPayment(WorkspaceTx& tx, const Payment& before,
                                             const Payment& after) {
  const bool credited = after.credited && !before.credited;
  if (!credited && (!after.reload || before.state == after.state)) return {};
  auto found = tx.FindReload();
  if (!found.ok()) return Fail{found.error()};
  if (!*found) return {};
  AutoReload reload = **found;
  const ReloadState was = reload.state;
  const bool own = reload.reload_id == after.id;
  bool paused = false;
  if (own && reload.running()) {
    if (credited) {
      Succeed(reload);
    } else if (Ended(after.state)) {
      paused = Decline(reload, after, tx.now_us());
    } else if (after.state == PaymentState::kUnknown) {
      reload.state = ReloadState::kUnknown;
    } else if (after.state == PaymentState::kSubmitted) {
      reload.state = ReloadState::kSubmitted;
    }
  } else if (after.reload && Ended(before.state) && after.state == PaymentState::kSucceeded) {
    // The provider reported the charge as not paid before.
    log::Warn("payments: a charge that was declined has been paid after all",
              {{"payment", after.id}, {"workspace", after.workspace}});
    reload.month_charged_nano_usd += after.amount_nano_usd;
    if (own) Resume(reload);
  }
  // Written even if only the balance changed: the new version stops engines that have read the old
  // balance from triggering.
  reload.updated_us = tx.now_us();
  if (reload.state != was) {
    auto logged = tx.Log("reload", Name(was), Name(reload.state), after.amount_nano_usd,
                         kEngineActor, reload.pause_reason);
    if (!logged.ok()) return logged;
  }
  if (paused) {
    metrics_.OnReloadPaused();
    log::Warn("auto-reload is paused: the charges were declined",
              {{"workspace", reload.workspace}, {"reason", reload.pause_reason}});
  }
  return tx.Put(std::move(reload));
}

void PaymentEngine::Trigger(const AutoReload& seen) {
  // Reads the balance after the row, and changes the row only if its version is still the same. A
  // credit posted in between has changed the version.
  auto balance = ledger_.ReadBalance(seen.workspace);
  if (!balance.ok() || !Survives("before_trigger")) return;
  const int64_t available_nano_usd =
      balance->paid_nano_usd + balance->granted_nano_usd - balance->held_nano_usd;
  // Does not charge a frozen workspace, or one in debt after a chargeback: the credit would only
  // pay the receivable.
  if (balance->frozen != Freeze::kNone || balance->receivable_nano_usd > 0) return;
  const bool low = available_nano_usd < seen.threshold_nano_usd;
  if (!low && seen.state == ReloadState::kIdle) return;
  bool paused = false;
  auto done = store_.Run(seen.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    paused = false;
    auto found = tx.FindReload();
    if (!found.ok()) return Fail{found.error()};
    if (!*found || (*found)->version != seen.version || !(*found)->enabled) return {};
    AutoReload reload = **found;
    if (reload.running()) return {};
    if (!low) {
      // There is enough credit again, so the backoff or the pause until next month ends.
      const ReloadState was = reload.state;
      Resume(reload);
      reload.updated_us = tx.now_us();
      auto logged = tx.Log("reload", Name(was), Name(reload.state), 0, kEngineActor, "");
      if (!logged.ok()) return logged;
      return tx.Put(std::move(reload));
    }
    auto pending = tx.PaidNotCredited();
    if (!pending.ok()) return Fail{pending.error()};
    if (available_nano_usd + *pending >= reload.threshold_nano_usd) return {};
    return StartReload(tx, std::move(reload), paused);
  });
  if (!done.ok()) return LogError("trigger", done.error());
  if (paused) metrics_.OnReloadPaused();
}

SqlResult<void> PaymentEngine::StartReload(WorkspaceTx& tx, AutoReload reload, bool& paused) {
  const ReloadState was = reload.state;
  RollMonth(reload, tx.now_us());
  reload.updated_us = tx.now_us();
  auto methods = tx.Methods();
  if (!methods.ok()) return Fail{methods.error()};
  auto customer = tx.FindCustomer(provider_.name());
  if (!customer.ok()) return Fail{customer.error()};
  std::string method;
  for (const PaymentMethod& one : *methods) {
    if (one.provider == provider_.name() && method.empty()) method = one.id;
  }
  if (method.empty() || customer->empty()) {
    Pause(reload, kPausedWithoutMethod, 0);
  } else if (reload.month_charged_nano_usd > reload.ceiling_nano_usd - reload.amount_nano_usd) {
    Pause(reload, kPausedByCeiling, UtcMonthStartUs(NextMonth(reload.month)));
  } else {
    Payment payment;
    payment.workspace = reload.workspace;
    // The id depends on the version of the row, so a transaction that runs twice makes one payment.
    payment.id = DerivedId("reload", reload.workspace, std::to_string(reload.version));
    payment.provider = provider_.name();
    payment.reload = true;
    payment.amount_nano_usd = reload.amount_nano_usd;
    payment.customer = *customer;
    payment.method = method;
    payment.actor = kEngineActor;
    payment.created_us = payment.updated_us = payment.check_us = tx.now_us();
    if (auto put = tx.Put(payment); !put.ok()) return put;
    auto logged = tx.Log("payment/" + payment.id, "", Name(payment.state), payment.amount_nano_usd,
                         kEngineActor, "auto-reload");
    if (!logged.ok()) return logged;
    reload.state = ReloadState::kRequested;
    reload.reload_id = payment.id;
    reload.next_us = 0;
    reload.pause_reason.clear();
    reload.month_charged_nano_usd += reload.amount_nano_usd;
  }
  paused = reload.state == ReloadState::kPaused;
  if (paused) {
    log::Warn("auto-reload is paused",
              {{"workspace", reload.workspace}, {"reason", reload.pause_reason}});
  }
  auto logged = tx.Log("reload", Name(was), Name(reload.state), reload.amount_nano_usd,
                       kEngineActor, reload.pause_reason);
  if (!logged.ok()) return logged;
  return tx.Put(std::move(reload));
}

}  // namespace tollgate::billing::payments
