#include "gateway/pipeline/move.h"

#include "common/observability/log.h"
#include "gateway/pipeline/await_ledger.h"
#include "gateway/pipeline/dispatch.h"

namespace tollgate::gateway {

Task<bool> MoveToAnotherRouter(RequestContext& context) {
  // Nothing of a request that was not sent can run, and another router was waited for.
  if (context.moved || !context.movable || !context.generation->sent()) co_return false;
  context.moved = true;
  ++context.attempt;
  const auto answer = co_await AuthorizeOrWait(context);
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
  context.authorization = *answer;
  SendAgain(context);
  co_return true;
}

}  // namespace tollgate::gateway
