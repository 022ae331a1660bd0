#include "gateway/pipeline/admission/authorize.h"

#include <algorithm>
#include <utility>

#include "common/base/try.h"
#include "common/money/money.h"
#include "gateway/pipeline/admission/await_ledger.h"
#include "gateway/pipeline/admission/refusals.h"

namespace tollgate::gateway {

namespace {

namespace billing_pb = billing::v1;

// When to repeat a request that lacked credit while a charge of auto-reload was under way.
constexpr int64_t kReloadRetryMs = 2'000;

Error NotYet(ErrorId id, Reason reason, const billing_pb::AuthorizeResult& result) {
  return {
      .id = id, .retry_after_ms = std::max<int64_t>(result.retry_after_ms(), 1), .reason = reason};
}

Fail<Error> Denied(const RequestContext& context, const billing_pb::AuthorizeResult& result) {
  switch (result.denied_by()) {
    case billing_pb::DENY_REASON_NO_CREDIT:
      if (result.reloading()) {
        return Fail{Error{.id = ErrorId::kRateLimited,
                          .message = "The workspace's credit is being reloaded.",
                          .retry_after_ms = kReloadRetryMs,
                          .reason = Reason::kReloading}};
      }
      return FailWith(ErrorId::kInsufficientCredits, Reason::kBalance,
                      "The workspace does not have enough credit for this request.");
    case billing_pb::DENY_REASON_CAP:
      return FailWith(ErrorId::kInsufficientCredits, Reason::kCap,
                      "The workspace's monthly spend cap is reached.");
    case billing_pb::DENY_REASON_FROZEN:
      return FailWith(ErrorId::kInsufficientCredits, Reason::kFrozen,
                      "The workspace's credit is frozen.");
    case billing_pb::DENY_REASON_QUOTA:
      return FailWith(ErrorId::kInsufficientCredits, Reason::kQuota,
                      "The key's monthly quota of " +
                          NanoToDecimalUsd(context.key->monthly_quota_nano_usd()) +
                          " USD is reached.");
    case billing_pb::DENY_REASON_FROZEN_BY_CHECK:
      return Unavailable(Reason::kFrozenByCheck,
                         "billing: the ledger of this workspace failed a check");
    case billing_pb::DENY_REASON_CLOCK:
      context.worker.clock_check->OnRefused(context.worker.clock.MonotonicUs());
      return Unavailable(Reason::kClock,
                         "billing: the clock of this gateway is far from the ledger's time");
    case billing_pb::DENY_REASON_HELD: {
      Error error = NotYet(ErrorId::kRateLimited, Reason::kHeld, result);
      error.message = "The workspace's credit is held by requests that are still running.";
      return Fail{std::move(error)};
    }
    case billing_pb::DENY_REASON_IDEMPOTENCY_BODY:
      return FailWith(
          ErrorId::kBadRequest, Reason::kIdempotencyBody,
          "The header Idempotency-Key was sent within 24 hours with another request body.");
    case billing_pb::DENY_REASON_IDEMPOTENCY_RUNNING:
      return Fail{NotYet(ErrorId::kIdempotencyInProgress, Reason::kIdempotencyRunning, result)};
    default:
      return Internal("unknown reason for a refused hold: " +
                      billing_pb::DenyReason_Name(result.denied_by()));
  }
}

// Whether the request may go without a hold. Excluded are requests with a key quota or an
// idempotency key, which only the ledger can check, and requests that could not be sent again if
// the router refuses them.
bool MayBeAdmittedByRouter(const RequestContext& context) {
  return context.attempt == 0 && context.candidates.size() <= 1 &&
         !context.key->has_monthly_quota_nano_usd() && context.idempotency_key_digest.empty() &&
         context.canonical.max_tokens != 0 &&
         context.canonical.members_json.size() <= kMaxMovedBytes;
}

// or_by_router: if billing is unreachable, the request goes to a router without a hold.
Task<Result<void>> Authorize(RequestContext& context, bool or_by_router) {
  const StageTimer timer(context.trace, Stage::kAuthorize);
  Worker& worker = context.worker;
  context.admitted_by_router = false;
  CO_TRY(CheckRefusals(context));
  // Armed before the call: billing may place the hold even if its response is lost. Voiding a hold
  // that does not exist is harmless.
  HoldGuard hold(*worker.clients.billing, context.id, context.key->workspace_id());
  if (context.canonical.max_tokens == 0) hold.Disarm();
  auto asked = or_by_router ? AuthorizeOnce(context) : AuthorizeOrWait(context);
  auto answer = co_await std::move(asked);
  if (or_by_router && IsReloading(answer)) answer = co_await AuthorizeOrWait(context);
  if (or_by_router && IsUnreachable(answer)) {
    worker.leased.OnUnreachable(context.key->workspace_id());
    // If billing has placed the hold after all, the ledger merges the router's admission with it.
    context.admitted_by_router = true;
    context.hold = std::move(hold);
    co_return Result<void>();
  }
  if (!answer) {
    // A failure of billing is always a 503, never a 402.
    co_return Unavailable(Reason::kBillingUnavailable, "billing: " + answer.error().ToString(),
                          std::max<int64_t>(answer.error().retry_after_ms, 1000));
  }
  if (!answer->granted()) {
    hold.Disarm();
    if (answer->denied_by() == billing_pb::DENY_REASON_IDEMPOTENCY_DONE) {
      context.repeats_answer = true;
      co_return Result<void>();
    }
    co_return Denied(context, *answer);
  }
  worker.leased.OnAuthorized(context.key->workspace_id(), answer->lease());
  context.authorization = std::move(*answer);
  context.hold = std::move(hold);
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> AuthorizeSpend(RequestContext& context) {
  Worker& worker = context.worker;
  const std::string& workspace = context.key->workspace_id();
  const bool may_be = MayBeAdmittedByRouter(context);
  if (!may_be || !worker.leased.Has(workspace, worker.clock.MonotonicUs())) {
    co_return co_await Authorize(context, may_be && worker.leased.MayHave(workspace));
  }
  CO_TRY(CheckRefusals(context));
  context.admitted_by_router = true;
  context.hold = HoldGuard(*worker.clients.billing, context.id, workspace);
  co_return Result<void>();
}

Task<Result<void>> AuthorizeAtLedger(RequestContext& context) {
  return Authorize(context, /*or_by_router=*/false);
}

}  // namespace tollgate::gateway
