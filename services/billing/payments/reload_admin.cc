// Part of the calls of people: auto-reload.
#include <algorithm>
#include <utility>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/payments/admin_results.h"
#include "services/billing/payments/payment_admin.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {
namespace {

using admin::Failure;
using admin::InvalidField;
using admin::NotFound;
using sql::SqlResult;

constexpr int64_t kMaxLimitNanoUsd = 1'000'000'000 * kNanoPerUsd;

// A person has seen what lowered the balance until now.
void NoteConfirmed(AutoReload& reload, const std::optional<LedgerPort::Lowering>& lowered) {
  if (lowered) reload.confirmed_us = std::max(reload.confirmed_us, lowered->at_us);
}

SqlResult<void> ResumeAfter(WorkspaceTx& tx, AutoReload& reload) {
  TRY(auto newest, tx.FindPayment(reload.reload_id));
  Resume(reload, newest && newest->in_flight() ? &*newest : nullptr);
  return {};
}

}  // namespace

AdminResult<AutoReload> PaymentAdmin::GetReload(const std::string& workspace) {
  auto found = store_.FindReload(workspace);
  if (!found.ok()) return SqlFailure(found.error());
  AutoReload reload = found->value_or(AutoReload());
  reload.workspace = workspace;
  return reload;
}

AdminResult<AutoReload> PaymentAdmin::UpdateReload(const std::string& workspace,
                                                   const ReloadChange& change,
                                                   const audit::Origin& by) {
  std::optional<Failure> failure;
  AutoReload reload;
  auto lowered = engine_.ledger().NewestLowering(workspace);
  if (!lowered.ok()) return Fail{admin::FromError(lowered.error())};
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    TRY(auto found, tx.FindReload());
    reload = found.value_or(AutoReload());
    reload.workspace = workspace;
    const ReloadState was = reload.state;
    const bool was_enabled = reload.enabled;
    reload.enabled = change.enabled.value_or(reload.enabled);
    reload.threshold_nano_usd = change.threshold_nano_usd.value_or(reload.threshold_nano_usd);
    reload.amount_nano_usd = change.amount_nano_usd.value_or(reload.amount_nano_usd);
    reload.ceiling_nano_usd = change.ceiling_nano_usd.value_or(reload.ceiling_nano_usd);
    if (auto checked = CheckReload(reload); !checked.ok()) {
      failure = checked.error();
      return {};
    }
    TRY(auto seen, tx.See(by, change.Content()));
    if (seen == SeenRequest::kOther) failure = admin::RequestIdReused().error;
    reload = seen == SeenRequest::kFresh ? reload : found.value_or(AutoReload());
    if (seen != SeenRequest::kFresh) return {};
    const bool turned_on = reload.enabled && !was_enabled;
    if (turned_on) NoteConfirmed(reload, *lowered);
    // A higher ceiling ends a pause caused by the old one.
    if (reload.state == ReloadState::kPaused &&
        (turned_on || reload.pause_reason == kPausedByCeiling)) {
      TRY(ResumeAfter(tx, reload));
    }
    RollMonth(reload, tx.now_us());
    reload.actor = by.actor;
    reload.updated_us = tx.now_us();
    TRY(tx.Put(reload));
    const std::string what = (reload.enabled ? "on" : "off") + std::string(" threshold=") +
                             admin::FormatUsd(reload.threshold_nano_usd) +
                             " amount=" + admin::FormatUsd(reload.amount_nano_usd) +
                             " ceiling=" + admin::FormatUsd(reload.ceiling_nano_usd);
    return tx.LogCall(by, "auto_reload.update", "reload", Name(was), Name(reload.state),
                      reload.amount_nano_usd, what);
  });
  return FinishChange(done, failure, reload);
}

AdminResult<void> PaymentAdmin::CheckReload(const AutoReload& reload) const {
  if (reload.threshold_nano_usd < 0 || reload.threshold_nano_usd > kMaxLimitNanoUsd) {
    return InvalidField("auto_reload.threshold_usd", "an amount of at least 0 USD is required");
  }
  if (reload.ceiling_nano_usd < 0 || reload.ceiling_nano_usd > kMaxLimitNanoUsd) {
    return InvalidField("auto_reload.monthly_ceiling_usd",
                        "an amount of at least 0 USD is required");
  }
  if (!reload.enabled) return {};
  TRY(NeedsProvider());
  TRY(CheckAmount(reload.amount_nano_usd, "auto_reload.amount_usd"));
  if (reload.ceiling_nano_usd < reload.amount_nano_usd) {
    return InvalidField("auto_reload.monthly_ceiling_usd", "at least the amount of one charge");
  }
  // One charge must be enough, whatever is left of the credit.
  if (reload.amount_nano_usd < reload.threshold_nano_usd) {
    return InvalidField("auto_reload.amount_usd",
                        "at least the threshold, so that one charge is enough");
  }
  return {};
}

AdminResult<AutoReload> PaymentAdmin::ResumeReload(const std::string& workspace,
                                                   const audit::Origin& by) {
  std::optional<Failure> failure;
  AutoReload reload;
  auto lowered = engine_.ledger().NewestLowering(workspace);
  if (!lowered.ok()) return Fail{admin::FromError(lowered.error())};
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    TRY(auto found, tx.FindReload());
    if (!found) {
      failure = NotFound("this workspace has no auto-reload").error;
      return {};
    }
    reload = *found;
    TRY(auto seen, tx.See(by, "resume"));
    if (seen == SeenRequest::kOther) failure = admin::RequestIdReused().error;
    const bool stopped =
        reload.state == ReloadState::kPaused || reload.state == ReloadState::kBackoff;
    if (seen != SeenRequest::kFresh || !stopped) return {};  // a later pause stays
    const ReloadState was = reload.state;
    NoteConfirmed(reload, *lowered);
    TRY(ResumeAfter(tx, reload));
    reload.actor = by.actor;
    reload.updated_us = tx.now_us();
    TRY(tx.Put(reload));
    return tx.LogCall(by, "auto_reload.resume", "reload", Name(was), Name(reload.state), 0,
                      "resumed");
  });
  return FinishChange(done, failure, reload);
}

AdminResult<bool> PaymentAdmin::PrepareClose(const std::string& workspace,
                                             const audit::Origin& by) {
  auto balance = engine_.ledger().ReadBalance(workspace);
  if (!balance.ok()) return Fail{admin::FromError(balance.error())};
  if (balance->paid_nano_usd != 0 || balance->granted_nano_usd != 0 ||
      balance->held_nano_usd != 0 || balance->receivable_nano_usd != 0) {
    return false;
  }
  auto off = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindReload());
    if (!found || !found->enabled) return {};
    AutoReload reload = *found;
    reload.enabled = false;
    reload.actor = by.actor;
    reload.updated_us = tx.now_us();
    TRY(tx.Put(reload));
    return tx.LogCall(by, "auto_reload.update", "reload", Name(reload.state), Name(reload.state), 0,
                      "off: the workspace closes");
  });
  if (!off.ok()) return SqlFailure(off.error());
  TRY(DeleteMethods(workspace, by));
  auto payments = store_.ListPayments(workspace, 100, {});
  if (!payments.ok()) return SqlFailure(payments.error());
  for (const Payment& payment : *payments) {
    if (!payment.in_flight()) continue;
    // An open page does not count: if it is paid, its credit puts the closing off.
    if (!payment.reload && payment.state != PaymentState::kSucceeded) continue;
    const bool withdrawn = payment.state == PaymentState::kRequested &&
                           Cancel(workspace, payment.id, "the workspace closes", by).ok();
    if (!withdrawn) return false;
  }
  return true;
}

AdminResult<void> PaymentAdmin::DeleteMethods(const std::string& workspace,
                                              const audit::Origin& by) {
  auto methods = store_.Methods(workspace);
  if (!methods.ok()) return SqlFailure(methods.error());
  for (const PaymentMethod& method : *methods) {
    // Deleted here first: a provider that does not answer must not keep it chargeable.
    TRY(RemoveMethod(workspace, method.id, "the workspace closes", by));
    if (engine_.provider().manual()) continue;
    if (auto detached = engine_.provider().DetachMethod(method.id); !detached.ok()) {
      log::Warn("payments: the card of a closing workspace could not be detached at the provider",
                {{"workspace", workspace}, {"error", detached.error().message}});
    }
  }
  return {};
}

}  // namespace tollgate::billing::payments
