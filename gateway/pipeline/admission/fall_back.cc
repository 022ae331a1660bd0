#include "gateway/pipeline/admission/fall_back.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/admission/admit.h"
#include "gateway/pipeline/admission/authorize.h"
#include "gateway/pipeline/admission/await_ledger.h"
#include "gateway/pipeline/admission/count_prompt.h"
#include "gateway/pipeline/checks/candidates.h"

namespace tollgate::gateway {

namespace {

Task<void> GiveBackLimits(RequestContext& context) {
  co_await context.slot.Refund();
  context.local_slot = LocalSlot();
  context.limit_headers.clear();
}

Task<Result<void>> AdmitCurrent(RequestContext& context) {
  context.model_at_limit = false;
  return Admit(context, EstimateTotalTokens(context.bounds));
}

// Tells the ledger that the current candidate is the next attempt of the same request.
Task<Result<void>> TellLedger(RequestContext& context) {
  ++context.attempt;
  auto answer = co_await AuthorizeOrWait(context);
  if (answer && answer->granted()) {
    context.authorization = std::move(*answer);
    co_return Result<void>();
  }
  co_return Unavailable(
      answer ? Reason::kHoldClosed : Reason::kBillingUnavailable,
      "billing, for another model: " +
          (answer ? billing::v1::DenyReason_Name(answer->denied_by()) : answer.error().ToString()));
}

Task<Result<void>> CheckCurrentFits(RequestContext& context) {
  if (!context.bounds.needs_count) co_return Result<void>();
  co_return co_await CheckCountedPrompt(context);
}

}  // namespace

Task<Result<void>> AdmitAndAuthorize(RequestContext& context) {
  for (;;) {
    Result<void> done = co_await AdmitCurrent(context);
    if (done && !context.exchange.disconnected()) done = co_await AuthorizeSpend(context);
    if (done || !context.model_at_limit || !HasNextCandidate(context) ||
        context.exchange.disconnected()) {
      co_return done;
    }
    co_await GiveBackLimits(context);
    context.worker.metrics.CountFallBack("limits");
    // No hold covers the earlier candidates yet, so the next hold need not cover them.
    context.candidates.erase(context.candidates.begin());
    UseCandidate(context, 0);
  }
}

Task<Result<void>> CheckPromptFits(RequestContext& context) {
  Result<void> fits = co_await CheckCurrentFits(context);
  if (fits || context.exchange.disconnected()) co_return fits;
  Error error = fits.error();
  if (co_await FallBack(context, error)) co_return Result<void>();
  co_return Fail{std::move(error)};
}

Task<bool> FallBack(RequestContext& context, Error& error) {
  while (HasNextCandidate(context)) {
    co_await GiveBackLimits(context);
    UseCandidate(context, context.candidate + 1);
    Result<void> done = co_await AdmitCurrent(context);
    if (context.exchange.disconnected()) co_return false;
    const bool by_caller = !done && !context.model_at_limit;
    if (done) done = co_await CheckCurrentFits(context);
    const bool tell = done && !context.exchange.disconnected();
    if (tell) done = co_await TellLedger(context);
    if (context.exchange.disconnected()) co_return false;
    if (done) {
      context.worker.metrics.CountFallBack("engine");
      co_return true;
    }
    error = done.error();
    // The next model would fail in the same way.
    if (by_caller || tell) co_return false;
  }
  co_return false;
}

}  // namespace tollgate::gateway
