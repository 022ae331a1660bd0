// The order of the stages.
#include "gateway/pipeline/limit_headers.h"
#include "gateway/pipeline/refuse.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

Task<void> Refuse(RequestContext& context, const Error& error) {
  return RefuseRequest(context.worker, context.exchange, context.endpoint, error,
                       context.limit_headers);
}

AnswerStamp MakeStamp(const RequestContext& context) {
  const Clock& clock = context.worker.clock;
  return {RandomBase62(24), clock.WallUs() / 1'000'000, &clock};
}

Task<void> SendJson(RequestContext& context, std::string body) {
  context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
  HttpResponse response;
  response.headers.emplace_back("content-type", "application/json");
  AddHeaders(context.limit_headers, response.headers);
  response.body = std::move(body);
  (void)co_await context.exchange.Send(std::move(response));
}

Task<void> GiveBackAndRefuse(RequestContext& context, Error error) {
  context.hold = HoldGuard();
  // The limits' headers told of a request that counts; it does not.
  if (context.lease.held()) context.limit_headers.clear();
  co_await context.lease.Refund();
  context.local_slot = LocalSlot();
  co_await Refuse(context, error);
}

Task<Result<void>> Understand(RequestContext& context) {
  if (auto done = co_await Authenticate(context); !done) co_return done;
  if (auto done = Parse(context); !done) co_return done;
  if (auto done = ResolveModel(context); !done) co_return done;
  if (auto done = CheckCapability(context); !done) co_return done;
  co_return BoundTokens(context);
}

Task<bool> MayGoOn(RequestContext& context, const Result<void>& prepared) {
  Worker& worker = context.worker;
  worker.metrics.TakeKeyCache(worker.keys->counters());
  if (context.exchange.disconnected()) {  // the guards give back what was taken
    worker.metrics.CountClientGone();
    co_return false;
  }
  if (!prepared) co_await GiveBackAndRefuse(context, prepared.error());
  co_return prepared.ok();
}

namespace {

// Everything up to the money. An error in the result is the caller's; with none, go on.
Task<Result<void>> Prepare(RequestContext& context) {
  if (auto done = co_await Understand(context); !done) co_return done;
  if (context.exchange.disconnected()) co_return Result<void>();
  if (auto done = co_await Admit(context, ExpectedTokens(context.bounds)); !done) co_return done;
  if (context.exchange.disconnected()) co_return Result<void>();
  co_return co_await AuthorizeSpend(context);
}

// As MayGoOn, for max_tokens beside the counted prompt.
Task<bool> Fits(RequestContext& context) {
  auto overflow = FindOverflow(context, co_await CountPrompt(context));
  Result<void> fits;
  if (overflow) fits = Fail{std::move(*overflow)};
  co_return co_await MayGoOn(context, fits);
}

}  // namespace

Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint) {
  RequestContext context(worker, exchange, endpoint, surface);
  const auto prepared = co_await Prepare(context);
  if (!co_await MayGoOn(context, prepared)) co_return;
  if (context.canonical.max_tokens == 0) co_return co_await AnswerWithoutEngine(context);
  if (context.bounds.count_decides && !co_await Fits(context)) co_return;
  Dispatch(context);
  co_await Relay(context);
}

}  // namespace tollgate::gateway
