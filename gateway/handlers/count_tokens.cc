#include "gateway/handlers/count_tokens.h"

#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

// It costs no credit and no tokens, but counts as a request: tokenizers have limits, too.
Task<Result<void>> Prepare(RequestContext& context) {
  if (auto done = co_await Understand(context); !done) co_return done;
  if (context.exchange.disconnected()) co_return Result<void>();
  co_return co_await Admit(context, 0);
}

}  // namespace

Task<void> CountTokens(Worker& worker, const Surface& surface, Exchange& exchange,
                       const Endpoint& endpoint) {
  RequestContext context(worker, exchange, endpoint, surface);
  const auto prepared = co_await Prepare(context);
  if (!co_await MayGoOn(context, prepared)) co_return;
  const PromptCount count = co_await CountPrompt(context);
  co_await context.lease.Finish(0);
  context.local_slot = LocalSlot();
  co_await SendJson(context, "{\"input_tokens\":" + std::to_string(count.tokens) + "}");
}

}  // namespace tollgate::gateway
