#include "gateway/pipeline/move.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/await_ledger.h"
#include "gateway/pipeline/dispatch.h"

namespace tollgate::gateway {

namespace {

using Answer = Result<billing::v1::AuthorizeResult>;

// Whether the lost router had ended the request, so that its answer is lost. The ledger ends a
// request only once.
bool HadEnded(const RequestContext& context, const Answer& answer) {
  // The caller of a stream may have seen the id, and an idempotency key stays with its request.
  return !context.canonical.stream && context.idempotency_key_digest.empty() && answer &&
         answer->denied_by() == billing::v1::DENY_REASON_CLOSED;
}

// Refunds the charge and starts again as a new request.
Task<Answer> AuthorizeAgain(RequestContext& context) {
  context.hold.Refuse("the answer was lost with its inference router");
  context.id = Id::New();
  context.attempt = 0;
  context.hold =
      HoldGuard(*context.worker.clients.billing, context.id, context.key->workspace_id());
  co_return co_await AuthorizeOrWait(context);
}

}  // namespace

Task<bool> MoveToAnotherRouter(RequestContext& context) {
  // A request that was not sent cannot be running, and the client has already waited for another
  // router.
  if (context.moved || !context.movable || !context.generation->sent()) co_return false;
  context.moved = true;
  ++context.attempt;
  Answer answer = co_await AuthorizeOrWait(context);
  if (HadEnded(context, answer)) answer = co_await AuthorizeAgain(context);
  const bool granted = answer && answer->granted();
  context.worker.metrics.CountMove(granted);
  if (!granted) {
    log::Warn("a request whose inference router was lost could not be moved to another one",
              {{"x_request_id", context.exchange.request().x_request_id},
               {"reason", answer ? billing::v1::DenyReason_Name(answer->denied_by())
                                 : answer.error().ToString()},
               TraceField(context.exchange.request())});
    co_return false;
  }
  if (context.exchange.disconnected()) co_return false;
  context.authorization = std::move(*answer);
  context.admitted_by_router = false;
  SendAgain(context);
  co_return true;
}

}  // namespace tollgate::gateway
