// Part of the calls of people: refunds.
#include <algorithm>
#include <utility>

#include "common/base/try.h"
#include "services/billing/payments/admin_results.h"
#include "services/billing/payments/payment_admin.h"
#include "services/billing/payments/provider_failed.h"

namespace tollgate::billing::payments {
namespace {

using admin::Failure;
using admin::InvalidField;
using admin::NotFound;
using admin::Precondition;
using sql::SqlResult;

constexpr size_t kMaxProviderId = 255;

std::string UsdOf(int64_t cents) { return admin::FormatUsd(cents * kNanoPerCent) + " USD"; }

Fail<Failure> RefundedElsewhere(const std::vector<RefundView>& refunds) {
  std::string list;
  for (const RefundView& one : refunds) {
    list += (list.empty() ? "" : ", ") + one.id + " of " + UsdOf(one.amount_cents);
  }
  return Precondition("REFUNDED_ELSEWHERE",
                      "the provider has refunds of this payment whose credit was not taken: " +
                          list + ". Adopt them first, else the customer is paid twice");
}

// The refund that has or may have adopted this one of the provider.
SqlResult<std::optional<Refund>> FindAdopted(WorkspaceTx& tx, const Refund& wanted) {
  TRY(auto refunds, tx.RefundsOf(wanted.payment));
  std::optional<Refund> waiting;
  for (Refund& one : refunds) {
    if (one.provider_id == wanted.provider_id && one.state != RefundState::kRefused) {
      return std::optional<Refund>(std::move(one));
    }
    // Its credit is taken, and it was not sent since the provider's refund was found.
    if (one.state == RefundState::kTaken && one.provider_id.empty() &&
        one.amount_nano_usd == wanted.amount_nano_usd) {
      waiting = std::move(one);
    }
  }
  return waiting;
}

// Why the refund must not be stored.
std::optional<Failure> WhyNotRefund(const std::optional<Payment>& payment, const Refund& refund) {
  if (!payment) return NotFound("there is no such payment in this workspace").error;
  if (payment->state != PaymentState::kSucceeded || !payment->credited) {
    return WrongState(*payment).error;
  }
  // What the provider has refunded already is taken all the same.
  if (payment->disputed && refund.provider_id.empty()) {
    return Precondition("PAYMENT_DISPUTED", "the customer disputes this payment").error;
  }
  if (refund.amount_nano_usd > payment->amount_nano_usd - payment->refunded_nano_usd) {
    return InvalidField("amount_usd", "more than the part of the payment that is not refunded")
        .error;
  }
  return std::nullopt;
}

SqlResult<void> Adopt(WorkspaceTx& tx, const audit::Origin& by, Refund adopted,
                      const Refund& wanted) {
  adopted.provider_id = wanted.provider_id;
  adopted.check_us = adopted.updated_us = tx.now_us();
  TRY(tx.Put(adopted));
  return tx.LogCall(by, "payment.refund", "refund/" + adopted.id, Name(adopted.state),
                    Name(adopted.state), adopted.amount_nano_usd, "adopted " + wanted.provider_id);
}

// Stores the refund once. Sets its id to that of the row, or the failure.
SqlResult<void> StoreRefund(WorkspaceTx& tx, const audit::Origin& by, Refund& refund,
                            std::optional<Failure>& failure) {
  TRY(auto known, tx.FindRefund(refund.id));
  if (known) {
    if (known->amount_nano_usd != refund.amount_nano_usd || known->payment != refund.payment) {
      failure = admin::RequestIdReused().error;
    }
    return {};
  }
  if (!refund.provider_id.empty()) {
    TRY(auto adopted, FindAdopted(tx, refund));
    if (adopted) {
      refund.id = adopted->id;
      if (adopted->provider_id == refund.provider_id) return {};
      return Adopt(tx, by, *adopted, refund);
    }
  }
  TRY(auto payment, tx.FindPayment(refund.payment));
  failure = WhyNotRefund(payment, refund);
  if (failure) return {};
  payment->refunded_nano_usd += refund.amount_nano_usd;
  payment->updated_us = tx.now_us();
  TRY(tx.Put(*payment));
  refund.created_us = refund.updated_us = refund.check_us = tx.now_us();
  TRY(tx.Put(refund));
  const std::string adopts =
      refund.provider_id.empty() ? "" : "adopted " + refund.provider_id + ": ";
  return tx.LogCall(by, "payment.refund", "refund/" + refund.id, "", Name(refund.state),
                    refund.amount_nano_usd, adopts + refund.reason);
}

}  // namespace

// Asks the provider, before a refund is stored, what it has refunded already. Returns the refund
// with what it adopts.
AdminResult<Refund> PaymentAdmin::CheckRefund(Refund refund, const std::string& adopt) {
  auto payment = store_.FindPayment(refund.workspace, refund.payment);
  if (!payment.ok()) return SqlFailure(payment.error());
  PaymentProvider& provider = engine_.provider();
  const bool asks = *payment && (*payment)->state == PaymentState::kSucceeded &&
                    (*payment)->provider == provider.name() && !provider.manual();
  if (adopt.empty()) {
    if (!asks) return refund;
    auto elsewhere = engine_.RefundsElsewhere(**payment);
    // Without an answer the refund waits: the engine asks again before it sends it.
    if (elsewhere.ok() && !elsewhere->empty()) return RefundedElsewhere(*elsewhere);
    return refund;
  }
  if (!asks) return InvalidField("adopt", "the payment has no charge at the configured provider");
  auto view = provider.GetRefund(adopt);
  if (!view.ok() && view.error().kind != ProviderError::Kind::kRefused) {
    return ProviderFailed(view.error());
  }
  if (!view.ok() || view->charge != (*payment)->provider_id || view->failed) {
    return InvalidField("adopt", "the provider has no such refund of this payment");
  }
  if (view->amount_cents * kNanoPerCent != refund.amount_nano_usd) {
    return InvalidField("amount_usd", "the provider has refunded " + UsdOf(view->amount_cents));
  }
  // A refund of ours whose row was lost keeps its id, by which the provider's events name it,
  // unless its credit could not be taken before.
  if (!view->refund_id.empty()) {
    auto known = store_.FindRefund(refund.workspace, view->refund_id);
    if (!known.ok()) return SqlFailure(known.error());
    if (!*known || (*known)->state != RefundState::kRefused) refund.id = view->refund_id;
  }
  refund.provider_id = adopt;
  TRY(MakeRoom(**payment, refund));
  return refund;
}

// Gives up refunds of ours that wait since the provider has made the adopted one, and that it has
// no room for any more: else none of them could end.
AdminResult<void> PaymentAdmin::MakeRoom(const Payment& payment, const Refund& adopted) {
  if (adopted.amount_nano_usd <= payment.amount_nano_usd - payment.refunded_nano_usd) return {};
  auto made = engine_.provider().ListRefunds(payment.provider_id);
  if (!made.ok()) return ProviderFailed(made.error());
  auto refunds = store_.RefundsOf(payment.workspace);
  if (!refunds.ok()) return SqlFailure(refunds.error());
  for (const Refund& one : *refunds) {
    const bool waits = one.payment == payment.id && one.state == RefundState::kTaken &&
                       one.provider_id.empty() && one.extra_charge.empty();
    // StoreRefund lets one of the same amount become the adopted one.
    if (!waits || one.amount_nano_usd == adopted.amount_nano_usd) continue;
    if (std::ranges::any_of(*made, [&](const auto& view) { return view.refund_id == one.id; })) {
      continue;
    }
    if (engine_.FailRefund(one.workspace, one.id)) engine_.StepRefund(one.workspace, one.id);
  }
  return {};
}

AdminResult<Refund> PaymentAdmin::RefundPayment(const std::string& workspace, const std::string& id,
                                                int64_t amount_nano_usd, const std::string& reason,
                                                const std::string& request_id,
                                                const audit::Origin& by, const std::string& adopt) {
  if (amount_nano_usd <= 0 || amount_nano_usd % kNanoPerCent != 0) {
    return InvalidField("amount_usd", "a positive amount of whole cents is required");
  }
  if (reason.empty() || reason.size() > 500) {
    return InvalidField("reason", "a reason of at most 500 bytes is required");
  }
  if (adopt.size() > kMaxProviderId) return InvalidField("adopt", "at most 255 bytes");
  Refund refund;
  refund.workspace = workspace;
  refund.id = DerivedId("refund", workspace, request_id);
  refund.payment = id;
  refund.amount_nano_usd = amount_nano_usd;
  refund.reason = reason;
  refund.actor = by.actor;
  auto known = store_.FindRefund(workspace, refund.id);
  if (!known.ok()) return SqlFailure(known.error());
  if (!*known) {
    TRY(auto checked, CheckRefund(std::move(refund), adopt));
    refund = std::move(checked);
  }
  std::optional<Failure> failure;
  Refund stored;
  auto done = store_.Run(workspace, engine_.NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    stored = refund;
    failure.reset();
    return StoreRefund(tx, by, stored, failure);
  });
  TRY(FinishChange(done, failure, 0));
  engine_.StepRefund(workspace, stored.id);
  known = store_.FindRefund(workspace, stored.id);
  if (!known.ok()) return SqlFailure(known.error());
  if (!*known) return NotFound("the refund was not stored");
  if ((*known)->state == RefundState::kRefused) {
    return Precondition("NOT_REFUNDABLE", "a refund must not exceed the unspent paid credit");
  }
  return **known;
}

}  // namespace tollgate::billing::payments
