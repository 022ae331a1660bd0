#include "gateway/pipeline/admission/refusals.h"

#include <string>
#include <string_view>
#include <utility>

namespace tollgate::gateway {
namespace {

using Subject = RefusalBudget::Subject;

// Cost of a request whose caller left early: most of them are charged for the prompt, which the
// gateway cannot see.
constexpr int64_t kMayBeChargedUs = RefusalBudget::kIntervalUs / 10;

// A limit in shadow mode does not bound anything.
bool IsEnforced(const auth::v1::Limits& limits) {
  return limits.requests_per_minute() > 0 && !limits.shadow();
}

bool IsBounded(const RequestContext& context) {
  const auth::v1::Key& key = *context.key;
  return IsEnforced(key.key_limits()) || IsEnforced(key.workspace_limits());
}

// Refusals caused by the caller count for its key; a model at capacity counts for key and model.
Subject OfKey(const RequestContext& context) {
  return RefusalBudget::SubjectOf(context.key->key_id());
}
Subject OfModel(const RequestContext& context) {
  // Callers choose the ids of unlisted models, so all of them count as one model.
  const bool listed = context.unlisted == nullptr;
  return RefusalBudget::SubjectOf(context.key->key_id(),
                                  listed ? std::string_view(context.model->id()) : "*");
}

int64_t NowUs(const RequestContext& context) { return context.worker.clock.MonotonicUs(); }

Fail<Error> TooMany(Reason reason, std::string message, int64_t wait_ms) {
  return Fail{Error{.id = ErrorId::kRateLimited,
                    .message = std::move(message),
                    .retry_after_ms = wait_ms,
                    .reason = reason}};
}

}  // namespace

Result<void> CheckRefusals(RequestContext& context) {
  if (IsBounded(context)) return {};
  const RefusalBudget& refusals = *context.worker.refusals;
  const int64_t now_us = NowUs(context);
  if (const int64_t wait_ms = refusals.WaitMs(OfKey(context), now_us); wait_ms > 0) {
    return TooMany(Reason::kRefusals,
                   "Too many requests of this key were refused as invalid or given up.", wait_ms);
  }
  if (const int64_t wait_ms = refusals.WaitMs(OfModel(context), now_us); wait_ms > 0) {
    context.model_at_limit = true;
    return TooMany(Reason::kModelRefusals, "The model is at capacity. Please retry more slowly.",
                   wait_ms);
  }
  return {};
}

void CountRefusal(RequestContext& context, const Error& error) {
  const int status = error.row().http_status;
  if (status >= 500 || !context.hold.held() || IsBounded(context)) return;
  context.worker.refusals->Take(status == 429 ? OfModel(context) : OfKey(context), NowUs(context));
}

void CountLeave(RequestContext& context, bool may_be_charged) {
  if (!context.hold.held() || IsBounded(context)) return;
  context.worker.refusals->Take(OfKey(context), NowUs(context),
                                may_be_charged ? kMayBeChargedUs : RefusalBudget::kIntervalUs);
}

void CountPaid(RequestContext& context) {
  context.worker.refusals->GiveBack(OfKey(context), NowUs(context));
  context.worker.refusals->GiveBack(OfModel(context), NowUs(context));
}

}  // namespace tollgate::gateway
