#include "gateway/pipeline/move.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/authorize.h"

namespace tollgate::gateway {

Task<bool> MoveToAnotherRouter(RequestContext& context) {
  // Nothing of a request that was not sent can run, and another router was waited for.
  if (!context.movable || !context.generation->sent()) co_return false;
  const auto request = std::move(context.movable);
  const int32_t attempt = request->attempt() + 1;
  auto item = MakeAuthorizeItem(context);
  item.set_attempt(attempt);
  const auto answer = co_await context.worker.clients.billing->Authorize(std::move(item));
  const bool granted = answer && answer->granted();
  context.worker.metrics.CountMove(granted);
  if (!granted) {
    log::Warn("a request whose inference router was lost could not be moved to another one",
              {{"x_request_id", context.exchange.request().x_request_id},
               {"reason", answer ? billing::v1::DenyReason_Name(answer->denied_by())
                                 : answer.error().ToString()}});
    co_return false;
  }
  if (context.exchange.disconnected()) co_return false;
  request->set_attempt(attempt);
  request->mutable_hold()->set_authorized_nano_usd(answer->authorized_nano_usd());
  request->mutable_hold()->set_slice_nano_usd(answer->slice_nano_usd());
  context.generation = context.worker.clients.inference->Start(std::move(*request));
  co_return true;
}

}  // namespace tollgate::gateway
