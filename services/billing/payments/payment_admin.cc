#include "services/billing/payments/payment_admin.h"

#include <utility>

#include "common/admin/values.h"
#include "common/money/money.h"
#include "services/billing/payments/provider_failed.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {
namespace {

using admin::Failure;
using admin::InvalidField;
using admin::NotFound;
using admin::Precondition;
using sql::SqlResult;

// One USD to 100,000 USD, in whole cents.
constexpr int64_t kMinNanoUsd = kNanoPerUsd;
constexpr int64_t kMaxNanoUsd = 100'000 * kNanoPerUsd;
constexpr int64_t kMaxLimitNanoUsd = 1'000'000'000 * kNanoPerUsd;

Fail<Failure> Sql(const sql::SqlError& error) {
  return Fail{admin::FromError(sql::ToError(error))};
}

AdminResult<void> CheckAmount(int64_t amount_nano_usd, const std::string& field) {
  if (amount_nano_usd % kNanoPerCent != 0) return InvalidField(field, "whole cents are required");
  if (amount_nano_usd < kMinNanoUsd || amount_nano_usd > kMaxNanoUsd) {
    return InvalidField(field, "an amount from 1 to 100000 USD is required");
  }
  return {};
}

Fail<Failure> WrongState(const Payment& payment) {
  return Precondition("PAYMENT_STATE", "the payment is " + std::string(Name(payment.state)) + " (" +
                                           payment.provider + ")");
}

// Finishes a change that may have found an error of the caller.
template <typename T>
AdminResult<T> Finish(const SqlResult<void>& done, std::optional<Failure>& failure, T value) {
  if (!done.ok()) return Sql(done.error());
  if (failure) return Fail{*std::move(failure)};
  return value;
}

}  // namespace

AdminResult<void> PaymentAdmin::NeedsProvider() const {
  if (!engine_.provider().manual()) return {};
  return Precondition("NO_PAYMENT_PROVIDER",
                      "no payment provider is configured: payments are bank transfers");
}

AdminResult<Payment> PaymentAdmin::Create(const std::string& workspace, int64_t amount_nano_usd,
                                          const std::string& request_id, const audit::Origin& by) {
  if (auto checked = CheckAmount(amount_nano_usd, "payment.amount_usd"); !checked.ok()) {
    return Fail{checked.error()};
  }
  const std::string id = DerivedId("payment", workspace, request_id);
  const bool manual = engine_.provider().manual();
  std::optional<Failure> failure;
  Payment payment;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    auto found = tx.FindPayment(id);
    if (!found.ok()) return Fail{found.error()};
    if (*found) {
      payment = **found;
      if (payment.amount_nano_usd != amount_nano_usd) failure = admin::RequestIdReused().error;
      return {};
    }
    payment = {};
    payment.workspace = workspace;
    payment.id = id;
    payment.provider = engine_.provider().name();
    payment.state = manual ? PaymentState::kAwaitingTransfer : PaymentState::kRequested;
    payment.amount_nano_usd = amount_nano_usd;
    payment.actor = by.actor;
    payment.created_us = payment.updated_us = tx.now_us();
    payment.check_us = manual ? 0 : tx.now_us();
    if (auto put = tx.Put(payment); !put.ok()) return put;
    return tx.LogCall(by, "payment.create", "payment/" + id, "", Name(payment.state),
                      amount_nano_usd, "");
  });
  auto made = Finish(done, failure, payment);
  if (!made.ok() || made->state != PaymentState::kRequested) return made;
  engine_.StepPayment(workspace, id);
  auto now = Get(workspace, id);
  if (now.ok() && now->state == PaymentState::kRequested) {
    return ProviderFailed({ProviderError::Kind::kNotDone, "no_page", ""});
  }
  if (now.ok() && now->state == PaymentState::kCancelled) {
    return Precondition("PROVIDER_REFUSED", "the provider refuses this payment: " + now->reason);
  }
  return now;
}

AdminResult<Payment> PaymentAdmin::Get(const std::string& workspace, const std::string& id) {
  auto found = store_.FindPayment(workspace, id);
  if (!found.ok()) return Sql(found.error());
  if (!*found) return NotFound("there is no such payment in this workspace");
  return **found;
}

AdminResult<std::vector<Payment>> PaymentAdmin::List(const std::string& workspace, int limit,
                                                     const PaymentStore::Position& before) {
  auto found = store_.ListPayments(workspace, limit, before);
  if (!found.ok()) return Sql(found.error());
  return *std::move(found);
}

AdminResult<Payment> PaymentAdmin::Confirm(const std::string& workspace, const std::string& id,
                                           const std::string& reference, const audit::Origin& by) {
  std::optional<Failure> failure;
  Payment payment;
  const PaymentStore::Call call = {by, "confirm " + id + "\n" + reference, &failure};
  auto done = store_.Run(call, workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    auto found = tx.FindPayment(id);
    if (!found.ok()) return Fail{found.error()};
    if (!*found) {
      failure = NotFound("there is no such payment in this workspace").error;
      return {};
    }
    payment = **found;
    if (payment.provider == "manual" && payment.state == PaymentState::kSucceeded) return {};
    if (payment.state != PaymentState::kAwaitingTransfer) {
      failure = WrongState(payment).error;
      return {};
    }
    payment.state = PaymentState::kSucceeded;
    payment.provider_id = "manual-" + id;
    payment.reference = reference;
    payment.check_us = payment.updated_us = tx.now_us();
    if (auto put = tx.Put(payment); !put.ok()) return put;
    return tx.LogCall(by, "payment.confirm", "payment/" + id, Name(PaymentState::kAwaitingTransfer),
                      Name(payment.state), payment.amount_nano_usd, reference);
  });
  auto confirmed = Finish(done, failure, payment);
  if (!confirmed.ok() || confirmed->credited) return confirmed;
  engine_.metrics().OnPayment(payment);
  engine_.StepPayment(workspace, id);  // posts the credit
  return Get(workspace, id);
}

AdminResult<Payment> PaymentAdmin::Cancel(const std::string& workspace, const std::string& id,
                                          const std::string& reason, const audit::Origin& by) {
  std::optional<Failure> failure;
  Payment payment;
  const PaymentStore::Call call = {by, "cancel " + id + "\n" + reason, &failure};
  auto done = store_.Run(call, workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    auto found = tx.FindPayment(id);
    if (!found.ok()) return Fail{found.error()};
    if (!*found) {
      failure = NotFound("there is no such payment in this workspace").error;
      return {};
    }
    payment = **found;
    if (payment.state == PaymentState::kCancelled) return {};
    if (payment.reload || payment.state == PaymentState::kSucceeded ||
        payment.state == PaymentState::kDeclined) {
      failure = WrongState(payment).error;
      return {};
    }
    const PaymentState was = payment.state;
    // Without a page the customer cannot pay. If one was created after all, the provider reports
    // it.
    const bool at_once = was == PaymentState::kAwaitingTransfer ||
                         (was == PaymentState::kRequested && payment.checkout_id.empty());
    if (!at_once) {
      return tx.LogCall(by, "payment.cancel", "payment/" + id, Name(was), "cancel_requested",
                        payment.amount_nano_usd, reason);
    }
    payment.state = PaymentState::kCancelled;
    payment.reason = reason;
    payment.check_us = 0;
    payment.updated_us = tx.now_us();
    if (auto put = tx.Put(payment); !put.ok()) return put;
    return tx.LogCall(by, "payment.cancel", "payment/" + id, Name(was), Name(payment.state),
                      payment.amount_nano_usd, reason);
  });
  auto cancelled = Finish(done, failure, payment);
  if (!cancelled.ok() || cancelled->state == PaymentState::kCancelled) return cancelled;
  // The provider decides, since the customer may have paid a moment ago.
  auto view = engine_.provider().Cancel(payment.ref());
  if (!view.ok()) return ProviderFailed(view.error());
  if (auto applied = engine_.Apply(payment, view); !applied.ok()) return Sql(applied.error());
  engine_.StepPayment(workspace, id);
  auto now = Get(workspace, id);
  if (now.ok() && now->state != PaymentState::kCancelled) return WrongState(*now);
  return now;
}

AdminResult<Refund> PaymentAdmin::RefundPayment(const std::string& workspace, const std::string& id,
                                                int64_t amount_nano_usd, const std::string& reason,
                                                const std::string& request_id,
                                                const audit::Origin& by) {
  if (amount_nano_usd <= 0 || amount_nano_usd % kNanoPerCent != 0) {
    return InvalidField("amount_usd", "a positive amount of whole cents is required");
  }
  if (reason.empty() || reason.size() > 500) {
    return InvalidField("reason", "a reason of at most 500 bytes is required");
  }
  const std::string refund_id = DerivedId("refund", workspace, request_id);
  std::optional<Failure> failure;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    auto known = tx.FindRefund(refund_id);
    if (!known.ok()) return Fail{known.error()};
    if (*known) {
      if ((*known)->amount_nano_usd != amount_nano_usd || (*known)->payment != id) {
        failure = admin::RequestIdReused().error;
      }
      return {};
    }
    auto found = tx.FindPayment(id);
    if (!found.ok()) return Fail{found.error()};
    if (!*found) {
      failure = NotFound("there is no such payment in this workspace").error;
      return {};
    }
    Payment payment = **found;
    if (payment.state != PaymentState::kSucceeded || !payment.credited) {
      failure = WrongState(payment).error;
      return {};
    }
    if (payment.disputed) {
      failure = Precondition("PAYMENT_DISPUTED", "the customer disputes this payment").error;
      return {};
    }
    if (amount_nano_usd > payment.amount_nano_usd - payment.refunded_nano_usd) {
      failure = InvalidField("amount_usd", "more than the part of the payment that is not refunded")
                    .error;
      return {};
    }
    payment.refunded_nano_usd += amount_nano_usd;
    payment.updated_us = tx.now_us();
    if (auto put = tx.Put(payment); !put.ok()) return put;
    Refund refund;
    refund.workspace = workspace;
    refund.id = refund_id;
    refund.payment = id;
    refund.amount_nano_usd = amount_nano_usd;
    refund.reason = reason;
    refund.actor = by.actor;
    refund.created_us = refund.updated_us = refund.check_us = tx.now_us();
    if (auto put = tx.Put(refund); !put.ok()) return put;
    return tx.LogCall(by, "payment.refund", "refund/" + refund_id, "", Name(refund.state),
                      amount_nano_usd, reason);
  });
  if (auto stored = Finish(done, failure, 0); !stored.ok()) return Fail{stored.error()};
  engine_.StepRefund(workspace, refund_id);
  auto refund = store_.FindRefund(workspace, refund_id);
  if (!refund.ok()) return Sql(refund.error());
  if (!*refund) return NotFound("the refund was not stored");
  if ((*refund)->state == RefundState::kRefused) {
    return Precondition("NOT_REFUNDABLE", "a refund must not exceed the unspent paid credit");
  }
  return **refund;
}

AdminResult<std::vector<PaymentMethod>> PaymentAdmin::Methods(const std::string& workspace) {
  auto methods = store_.Methods(workspace);
  if (!methods.ok()) return Sql(methods.error());
  return *std::move(methods);
}

AdminResult<void> PaymentAdmin::DeleteMethod(const std::string& workspace, const std::string& id,
                                             const audit::Origin& by) {
  auto methods = store_.Methods(workspace);
  if (!methods.ok()) return Sql(methods.error());
  bool known = false;
  for (const PaymentMethod& method : *methods) known = known || method.id == id;
  if (!known) return NotFound("there is no such payment method in this workspace");
  if (!engine_.provider().manual()) {
    if (auto detached = engine_.provider().DetachMethod(id); !detached.ok()) {
      return ProviderFailed(detached.error());
    }
  }
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    auto removed = tx.RemoveMethod(id);
    if (!removed.ok()) return Fail{removed.error()};
    if (!*removed) return {};
    return tx.LogCall(by, "payment_method.delete", "method/" + id, "saved", "deleted", 0, "");
  });
  if (!done.ok()) return Sql(done.error());
  return {};
}

AdminResult<std::string> PaymentAdmin::SetupMethod(const std::string& workspace,
                                                   const std::string& request_id,
                                                   const audit::Origin& by) {
  if (auto needs = NeedsProvider(); !needs.ok()) return Fail{needs.error()};
  auto customer = engine_.EnsureCustomer(workspace);
  if (!customer.ok()) return ProviderFailed(customer.error());
  auto page = engine_.provider().CreateSetup(workspace, *customer,
                                             DerivedId("setup", workspace, request_id));
  if (!page.ok()) return ProviderFailed(page.error());
  // Also checked without a webhook.
  ProviderEvent event;
  event.id = "page-" + page->id;
  event.type = kSetupEvent;
  event.object = page->id;
  event.workspace = workspace;
  event.received_us = engine_.NowUs();
  event.check_us = event.received_us + 30'000'000;
  const audit::Record record = audit::RecordOf(by, event.received_us, "payment_method.setup",
                                               workspace, "workspace/" + workspace, page->id);
  if (auto added = store_.AddEvent(event, &record); !added.ok()) return Sql(added.error());
  return page->url;
}

AdminResult<AutoReload> PaymentAdmin::GetReload(const std::string& workspace) {
  auto found = store_.FindReload(workspace);
  if (!found.ok()) return Sql(found.error());
  AutoReload reload = found->value_or(AutoReload());
  reload.workspace = workspace;
  return reload;
}

AdminResult<AutoReload> PaymentAdmin::UpdateReload(const std::string& workspace,
                                                   const ReloadChange& change,
                                                   const audit::Origin& by) {
  std::optional<Failure> failure;
  AutoReload reload;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    auto found = tx.FindReload();
    if (!found.ok()) return Fail{found.error()};
    reload = found->value_or(AutoReload());
    reload.workspace = workspace;
    const ReloadState was = reload.state;
    reload.enabled = change.enabled.value_or(reload.enabled);
    reload.threshold_nano_usd = change.threshold_nano_usd.value_or(reload.threshold_nano_usd);
    reload.amount_nano_usd = change.amount_nano_usd.value_or(reload.amount_nano_usd);
    reload.ceiling_nano_usd = change.ceiling_nano_usd.value_or(reload.ceiling_nano_usd);
    if (auto checked = CheckReload(reload); !checked.ok()) {
      failure = checked.error();
      return {};
    }
    auto seen = tx.See(by, change.Content());
    if (!seen.ok()) return Fail{seen.error()};
    if (*seen == SeenRequest::kOther) failure = admin::RequestIdReused().error;
    reload = *seen == SeenRequest::kFresh ? reload : found->value_or(AutoReload());
    if (*seen != SeenRequest::kFresh) return {};
    // A higher ceiling ends a pause caused by the old one.
    if (reload.state == ReloadState::kPaused && reload.pause_reason == kPausedByCeiling) {
      Resume(reload);
    }
    RollMonth(reload, tx.now_us());
    reload.actor = by.actor;
    reload.updated_us = tx.now_us();
    if (auto put = tx.Put(reload); !put.ok()) return put;
    const std::string what = (reload.enabled ? "on" : "off") + std::string(" threshold=") +
                             admin::FormatUsd(reload.threshold_nano_usd) +
                             " amount=" + admin::FormatUsd(reload.amount_nano_usd) +
                             " ceiling=" + admin::FormatUsd(reload.ceiling_nano_usd);
    return tx.LogCall(by, "auto_reload.update", "reload", Name(was), Name(reload.state),
                      reload.amount_nano_usd, what);
  });
  return Finish(done, failure, reload);
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
  if (auto needs = NeedsProvider(); !needs.ok()) return needs;
  if (auto checked = CheckAmount(reload.amount_nano_usd, "auto_reload.amount_usd"); !checked.ok()) {
    return checked;
  }
  if (reload.ceiling_nano_usd < reload.amount_nano_usd) {
    return InvalidField("auto_reload.monthly_ceiling_usd", "at least the amount of one charge");
  }
  return {};
}

AdminResult<AutoReload> PaymentAdmin::ResumeReload(const std::string& workspace,
                                                   const audit::Origin& by) {
  std::optional<Failure> failure;
  AutoReload reload;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    auto found = tx.FindReload();
    if (!found.ok()) return Fail{found.error()};
    if (!*found) {
      failure = NotFound("this workspace has no auto-reload").error;
      return {};
    }
    reload = **found;
    auto seen = tx.See(by, "resume");
    if (!seen.ok()) return Fail{seen.error()};
    if (*seen == SeenRequest::kOther) failure = admin::RequestIdReused().error;
    const bool stopped =
        reload.state == ReloadState::kPaused || reload.state == ReloadState::kBackoff;
    if (*seen != SeenRequest::kFresh || !stopped) return {};  // a later pause stays
    const ReloadState was = reload.state;
    Resume(reload);
    reload.actor = by.actor;
    reload.updated_us = tx.now_us();
    if (auto put = tx.Put(reload); !put.ok()) return put;
    return tx.LogCall(by, "auto_reload.resume", "reload", Name(was), Name(reload.state), 0,
                      "resumed");
  });
  return Finish(done, failure, reload);
}

}  // namespace tollgate::billing::payments
