#include "gateway/pipeline/answer/refuse.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/admission/limit_headers.h"
#include "gateway/pipeline/admission/refusals.h"
#include "gateway/pipeline/answer/debug_header.h"

namespace tollgate::gateway {

HttpResponse MakeRefusal(Worker& worker, HttpRequest& request, const Endpoint& endpoint,
                         const Error& error) {
  const ErrorRow& row = error.row();
  if (row.http_status >= 500) {
    log::Warn("request failed", {{"x_request_id", request.x_request_id},
                                 {"endpoint", endpoint.name},
                                 {"error", error.ToString()},
                                 TraceField(request)});
  }
  NoteFailure(request, error);
  worker.metrics.CountRequest(endpoint.name, row.http_status, row.code);
  return RenderError(endpoint.family, error, request);
}

Task<void> RefuseRequest(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error,
                         Headers limit_headers) {
  HttpResponse response = MakeRefusal(worker, exchange.mutable_request(), endpoint, error);
  if (response.status == 429) AppendHeaders(limit_headers, response.headers);
  (void)co_await exchange.Send(std::move(response));
}

Task<void> Refuse(RequestContext& context, const Error& error) {
  HttpRequest& request = context.exchange.mutable_request();
  if (context.key) {
    context.worker.key_use->CountRefusal(context.key->key_id(), error);
    NoteCaller(request, context.key->key_id(), context.key->workspace_id());
  }
  HttpResponse response = MakeRefusal(context.worker, request, context.endpoint, error);
  if (response.status == 429) AppendHeaders(context.limit_headers, response.headers);
  if (!context.choice.empty()) response.headers.emplace_back(kDebugHeader, context.choice);
  (void)co_await context.exchange.Send(std::move(response));
}

Task<void> ReleaseAndRefuse(RequestContext& context, Error error) {
  CountRefusal(context, error);
  context.hold = HoldGuard();
  // The rate-limit headers count this request, and the refund makes them wrong.
  if (context.slot.held()) context.limit_headers.clear();
  co_await context.slot.Refund();
  context.local_slot = LocalSlot();
  co_await Refuse(context, error);
}

Task<bool> ContinueOrRefuse(RequestContext& context, const Result<void>& stage) {
  Worker& worker = context.worker;
  worker.metrics.UpdateKeyCache(worker.keys->counters());
  if (context.exchange.disconnected()) {
    worker.metrics.CountClientDisconnect();
    CountLeave(context, false);
    co_return false;
  }
  if (!stage) co_await ReleaseAndRefuse(context, stage.error());
  co_return stage.ok();
}

}  // namespace tollgate::gateway
