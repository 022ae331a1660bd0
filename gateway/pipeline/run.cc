// The order of the stages.
#include "common/observability/log.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/limit_headers.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

Task<void> Refuse(RequestContext& context, const Error& error) {
  const ErrorRow& row = error.row();
  if (row.http_status >= 500) {
    log::Warn("request failed", {{"x_request_id", context.exchange.request().x_request_id},
                                 {"endpoint", context.endpoint.name},
                                 {"error", error.ToString()}});
  }
  context.worker.metrics.CountRequest(context.endpoint.name, row.http_status, row.code);
  HttpResponse response = RenderError(context.endpoint.family, error, context.exchange.request());
  if (row.http_status == 429) AddHeaders(context.limit_headers, response.headers);
  (void)co_await context.exchange.Send(std::move(response));
}

namespace {

// Everything up to the money. An error in `result` is the caller's; with none, go on.
Task<Result<void>> Prepare(RequestContext& context) {
  if (auto done = co_await Authenticate(context); !done) co_return done;
  if (auto done = Parse(context); !done) co_return done;
  if (auto done = ResolveModel(context); !done) co_return done;
  if (auto done = CheckCapability(context); !done) co_return done;
  if (auto done = BoundTokens(context); !done) co_return done;
  if (context.exchange.disconnected()) co_return Result<void>();
  if (auto done = co_await Admit(context); !done) co_return done;
  if (context.exchange.disconnected()) co_return Result<void>();
  co_return co_await AuthorizeSpend(context);
}

}  // namespace

Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint) {
  RequestContext context(worker, exchange, endpoint, surface);
  const auto prepared = co_await Prepare(context);
  worker.metrics.TakeKeyCache(worker.keys->counters());
  if (exchange.disconnected()) {  // the guards give back what was taken
    worker.metrics.CountClientGone();
    co_return;
  }
  if (!prepared) {
    // Given back before the refusal goes out: the caller's next request finds it free.
    const Error error = prepared.error();
    context.hold = HoldGuard();
    context.lease = Lease();
    context.local_slot = LocalSlot();
    co_return co_await Refuse(context, error);
  }
  if (context.canonical.max_tokens == 0) co_return co_await AnswerWithoutEngine(context);
  Dispatch(context);
  co_await Relay(context);
}

}  // namespace tollgate::gateway
