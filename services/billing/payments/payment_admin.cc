#include "services/billing/payments/payment_admin.h"

#include <algorithm>
#include <utility>

#include "common/admin/values.h"
#include "common/base/try.h"
#include "services/billing/payments/admin_results.h"
#include "services/billing/payments/provider_failed.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {

using admin::Failure;
using admin::InvalidField;
using admin::NotFound;
using admin::Precondition;
using sql::SqlResult;

AdminResult<void> PaymentAdmin::NeedsProvider() const {
  if (!engine_.provider().manual()) return {};
  return Precondition("NO_PAYMENT_PROVIDER",
                      "no payment provider is configured: payments are bank transfers");
}

AdminResult<Payment> PaymentAdmin::Create(const std::string& workspace, int64_t amount_nano_usd,
                                          const std::string& request_id, const audit::Origin& by) {
  TRY(CheckAmount(amount_nano_usd, "payment.amount_usd"));
  const std::string id = DerivedId("payment", workspace, request_id);
  const bool manual = engine_.provider().manual();
  std::optional<Failure> failure;
  Payment payment;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    failure.reset();
    TRY(auto found, tx.FindPayment(id));
    if (found) {
      payment = *found;
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
    TRY(tx.Put(payment));
    return tx.LogCall(by, "payment.create", "payment/" + id, "", Name(payment.state),
                      amount_nano_usd, "");
  });
  auto made = FinishChange(done, failure, payment);
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
  if (!found.ok()) return SqlFailure(found.error());
  if (!*found) return NotFound("there is no such payment in this workspace");
  return **found;
}

AdminResult<std::vector<Payment>> PaymentAdmin::List(const std::string& workspace, int limit,
                                                     const PaymentStore::Position& before) {
  auto found = store_.ListPayments(workspace, limit, before);
  if (!found.ok()) return SqlFailure(found.error());
  return *std::move(found);
}

AdminResult<Payment> PaymentAdmin::Confirm(const std::string& workspace, const std::string& id,
                                           const std::string& reference, const audit::Origin& by,
                                           const admin::Person& person) {
  std::optional<Failure> failure;
  Payment payment;
  const PaymentStore::Call call = {by, "confirm " + id + "\n" + reference, &failure};
  auto done = store_.Run(call, workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(id));
    if (!found) {
      failure = NotFound("there is no such payment in this workspace").error;
      return {};
    }
    payment = *found;
    if (payment.provider == "manual" && payment.state == PaymentState::kSucceeded) return {};
    if (payment.state != PaymentState::kAwaitingTransfer) {
      failure = WrongState(payment).error;
      return {};
    }
    if (payment.confirmed_by == person.actor) return {};
    TRY(auto complete, ConfirmBy(tx, payment, reference, person));
    if (!complete.ok()) {
      failure = complete.error();
      return {};
    }
    payment.reference = reference;
    payment.updated_us = tx.now_us();
    if (*complete) {
      payment.state = PaymentState::kSucceeded;
      payment.provider_id = "manual-" + id;
      payment.check_us = tx.now_us();
    }
    TRY(tx.Put(payment));
    return tx.LogCall(by, "payment.confirm", "payment/" + id, Name(PaymentState::kAwaitingTransfer),
                      *complete ? Name(payment.state) : "confirmed_by_one", payment.amount_nano_usd,
                      reference);
  });
  auto confirmed = FinishChange(done, failure, payment);
  if (!confirmed.ok() || confirmed->credited ||
      confirmed->state == PaymentState::kAwaitingTransfer) {
    return confirmed;
  }
  engine_.metrics().OnPayment(payment);
  engine_.StepPayment(workspace, id);  // posts the credit
  return Get(workspace, id);
}

SqlResult<AdminResult<bool>> PaymentAdmin::ConfirmBy(WorkspaceTx& tx, Payment& payment,
                                                     const std::string& reference,
                                                     const admin::Person& person) const {
  using Outcome = AdminResult<bool>;
  if (!payment.confirmed_by.empty()) {
    auto second = admin::RequireSecondPerson(person, payment.confirmed_by);
    if (!second.ok()) return Outcome(Fail{second.error()});
    if (reference == payment.reference) return Outcome(true);
    return Outcome(InvalidField("reference",
                                "the first operator confirmed the transfer with the "
                                "reference \"" +
                                    payment.reference + "\""));
  }
  TRY(auto alone,
      tx.CountCreditByHand(person.account, payment, engine_.second_person_above_nano_usd()));
  if (alone) return Outcome(true);
  if (auto proved = admin::RequireProved(person); !proved.ok()) {
    return Outcome(Fail{proved.error()});
  }
  payment.confirmed_by = person.actor;
  return Outcome(false);
}

AdminResult<Payment> PaymentAdmin::Cancel(const std::string& workspace, const std::string& id,
                                          const std::string& reason, const audit::Origin& by,
                                          bool give_up) {
  if (give_up && reason.empty()) return InvalidField("reason", "say why the payment is given up");
  std::optional<Failure> failure;
  Payment payment;
  const PaymentStore::Call call = {by, (give_up ? "give_up " : "cancel ") + id + "\n" + reason,
                                   &failure};
  auto done = store_.Run(call, workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindPayment(id));
    if (!found) {
      failure = NotFound("there is no such payment in this workspace").error;
      return {};
    }
    payment = *found;
    if (payment.state == PaymentState::kCancelled) return {};
    if (payment.ended() || payment.state == PaymentState::kSucceeded ||
        (give_up && payment.state != PaymentState::kUnknown)) {
      failure = WrongState(payment).error;
      return {};
    }
    const PaymentState was = payment.state;
    // Without a page the customer cannot pay. If one was created after all, the provider reports
    // it.
    const bool at_once = give_up || was == PaymentState::kAwaitingTransfer ||
                         (was == PaymentState::kRequested && payment.checkout_id.empty());
    if (!at_once && payment.reload) {
      payment.cancel_us = tx.now_us();
      TRY(tx.Put(payment));
    }
    if (!at_once) {
      return tx.LogCall(by, "payment.cancel", "payment/" + id, Name(was), "cancel_requested",
                        payment.amount_nano_usd, reason);
    }
    const Payment before = payment;
    payment.state = PaymentState::kCancelled;
    payment.reason = give_up ? kGivenUp + reason : payment.reload ? kWithdrawn + reason : reason;
    payment.check_us = 0;
    if (give_up && before.reason != kAmountMismatch) {
      payment.check_us = tx.now_us() + kHourUs;
      payment.watch_us = tx.now_us() + kDayUs;
    }
    payment.updated_us = tx.now_us();
    TRY(tx.Put(payment));
    TRY(engine_.FollowPayment(tx, before, payment));
    return tx.LogCall(by, "payment.cancel", "payment/" + id, Name(was), Name(payment.state),
                      payment.amount_nano_usd, reason);
  });
  auto cancelled = FinishChange(done, failure, payment);
  if (!cancelled.ok() || cancelled->state == PaymentState::kCancelled) return cancelled;
  // The provider decides, since the customer may have paid a moment ago.
  auto view = engine_.provider().Cancel(payment.ref());
  if (!view.ok()) return ProviderFailed(view.error());
  if (auto applied = engine_.Apply(payment, view); !applied.ok())
    return SqlFailure(applied.error());
  engine_.StepPayment(workspace, id);
  auto now = Get(workspace, id);
  if (now.ok() && now->state != PaymentState::kCancelled) return WrongState(*now);
  return now;
}

AdminResult<std::vector<PaymentMethod>> PaymentAdmin::Methods(const std::string& workspace) {
  auto methods = store_.Methods(workspace);
  if (!methods.ok()) return SqlFailure(methods.error());
  return *std::move(methods);
}

AdminResult<PaymentMethod> PaymentAdmin::ChooseMethod(const std::string& workspace,
                                                      const std::string& id,
                                                      const audit::Origin& by) {
  std::optional<Failure> failure;
  PaymentMethod chosen;
  const PaymentStore::Call call = {by, "default " + id, &failure};
  auto done = store_.Run(call, workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto methods, tx.Methods());
    const auto found = std::ranges::find(methods, id, &PaymentMethod::id);
    if (found == methods.end()) {
      failure = NotFound("there is no such payment method in this workspace").error;
      return {};
    }
    chosen = *found;
    if (found == methods.begin() && found->chosen_us > 0) return {};
    TRY(tx.ChooseMethod(id));
    return tx.LogCall(by, "payment_method.set_default", "method/" + id, "saved", "default", 0, "");
  });
  return FinishChange(done, failure, chosen);
}

AdminResult<void> PaymentAdmin::DeleteMethod(const std::string& workspace, const std::string& id,
                                             const audit::Origin& by) {
  auto methods = store_.Methods(workspace);
  if (!methods.ok()) return SqlFailure(methods.error());
  bool known = false;
  for (const PaymentMethod& method : *methods) known = known || method.id == id;
  if (!known) return NotFound("there is no such payment method in this workspace");
  if (!engine_.provider().manual()) {
    if (auto detached = engine_.provider().DetachMethod(id); !detached.ok()) {
      return ProviderFailed(detached.error());
    }
  }
  return RemoveMethod(workspace, id, "", by);
}

AdminResult<void> PaymentAdmin::RemoveMethod(const std::string& workspace, const std::string& id,
                                             const std::string& reason, const audit::Origin& by) {
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto removed, tx.RemoveMethod(id));
    if (!removed) return {};
    return tx.LogCall(by, "payment_method.delete", "method/" + id, "saved", "deleted", 0, reason);
  });
  if (!done.ok()) return SqlFailure(done.error());
  return {};
}

AdminResult<std::string> PaymentAdmin::SetupMethod(const std::string& workspace,
                                                   const std::string& request_id,
                                                   const audit::Origin& by) {
  TRY(NeedsProvider());
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
  if (auto added = store_.AddEvent(event, &record); !added.ok()) return SqlFailure(added.error());
  return page->url;
}

}  // namespace tollgate::billing::payments
