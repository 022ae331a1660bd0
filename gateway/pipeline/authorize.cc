#include "gateway/pipeline/authorize.h"

#include <algorithm>
#include <utility>

#include "common/money/money.h"
#include "gateway/pipeline/await_ledger.h"
#include "gateway/pipeline/dispatch.h"
#include "gateway/pipeline/refusals.h"

namespace tollgate::gateway {

namespace {

namespace billing_pb = billing::v1;

Error NotYet(ErrorId id, Reason reason, const billing_pb::AuthorizeResult& result) {
  return {
      .id = id, .retry_after_ms = std::max<int64_t>(result.retry_after_ms(), 1), .reason = reason};
}

Fail<Error> Denied(const RequestContext& context, const billing_pb::AuthorizeResult& result) {
  switch (result.denied_by()) {
    case billing_pb::DENY_REASON_NO_CREDIT:
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

billing_pb::Surface SurfaceOf(std::string_view endpoint) {
  if (endpoint == "chat_completions") return billing_pb::SURFACE_CHAT_COMPLETIONS;
  if (endpoint == "completions") return billing_pb::SURFACE_COMPLETIONS;
  if (endpoint == "embeddings") return billing_pb::SURFACE_EMBEDDINGS;
  if (endpoint == "messages") return billing_pb::SURFACE_MESSAGES;
  if (endpoint == "responses") return billing_pb::SURFACE_RESPONSES;
  return billing_pb::SURFACE_UNSPECIFIED;
}

// to: an AuthorizeItem or a FallbackModel.
template <typename To>
void SetModel(const RequestContext& context, const catalog::v1::Model& model,
              const TokenBounds& bounds, To& to) {
  to.set_model(model.id());
  *to.mutable_price() = model.price();
  to.set_prompt_tokens_bound(bounds.prompt_upper);
  // The hold of a generation covers at least one output token, that of an embedding only the input.
  const bool generates = context.canonical.kind != inference::v1::REQUEST_KIND_EMBEDDING;
  to.set_output_tokens_bound(std::max<int64_t>(bounds.output_upper, generates ? 1 : 0));
}

}  // namespace

billing_pb::AuthorizeItem MakeAuthorizeItem(const RequestContext& context) {
  const auth::v1::Key& key = *context.key;
  billing_pb::AuthorizeItem item;
  item.set_request_id(context.id.ToBytes());
  item.set_workspace_id(key.workspace_id());
  item.set_key_id(key.key_id());
  item.set_attempt(context.attempt);
  if (context.candidates.empty()) {
    SetModel(context, *context.model, context.bounds, item);
  } else {
    SetModel(context, *context.candidates[0].model, context.candidates[0].bounds, item);
    for (size_t i = 1; i < context.candidates.size(); ++i) {
      SetModel(context, *context.candidates[i].model, context.candidates[i].bounds,
               *item.add_fallbacks());
    }
    item.set_candidate(static_cast<int32_t>(context.candidate));
  }
  const HttpRequest& http = context.exchange.request();
  // An id that the server made is left out, because it contains the request id (decision 65).
  if (!http.x_request_id.ends_with(context.id.ToBase62())) {
    item.set_client_request_id(http.x_request_id);
  }
  item.set_surface(SurfaceOf(context.endpoint.name));
  item.set_streamed(context.canonical.stream);
  if (key.has_monthly_quota_nano_usd()) {
    item.set_key_quota_nano_usd(key.monthly_quota_nano_usd());
  }
  if (!context.idempotency_key_digest.empty()) {
    item.set_idempotency_key_digest(context.idempotency_key_digest);
    item.set_idempotency_body_digest(context.canonical.body_digest);
  }
  // No engine gets the request, so nothing needs to be held or voided (decision 30).
  item.set_check_only(context.canonical.max_tokens == 0);
  item.set_traceparent(TraceparentOf(context.trace, Stage::kAuthorize));
  return item;
}

namespace {

// or_by_router: if billing is unreachable, the request goes to a router without a hold.
Task<Result<void>> Authorize(RequestContext& context, bool or_by_router) {
  const StageTimer timer(context.trace, Stage::kAuthorize);
  Worker& worker = context.worker;
  context.admitted_by_router = false;
  if (auto allowed = CheckRefusals(context); !allowed) co_return allowed;
  // Armed before the call: billing may place the hold even if its response is lost. Voiding a hold
  // that does not exist is harmless.
  HoldGuard hold(*worker.clients.billing, context.id, context.key->workspace_id());
  if (context.canonical.max_tokens == 0) hold.Disarm();
  auto asked = or_by_router ? AuthorizeOnce(context) : AuthorizeOrWait(context);
  auto answer = co_await std::move(asked);
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
  if (auto allowed = CheckRefusals(context); !allowed) co_return allowed;
  context.admitted_by_router = true;
  context.hold = HoldGuard(*worker.clients.billing, context.id, workspace);
  co_return Result<void>();
}

Task<Result<void>> AuthorizeAtLedger(RequestContext& context) {
  return Authorize(context, /*or_by_router=*/false);
}

}  // namespace tollgate::gateway
