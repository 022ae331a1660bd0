#include "gateway/handlers/count_tokens.h"

#include "common/json/writer.h"
#include "gateway/pipeline/admission/admit.h"
#include "gateway/pipeline/admission/count_prompt.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/answer/respond.h"
#include "gateway/pipeline/run.h"

namespace tollgate::gateway {

Task<void> CountTokens(Worker& worker, const Surface& surface, Exchange& exchange,
                       const Endpoint& endpoint) {
  RequestContext context(worker, exchange, endpoint, surface);
  Result<void> stage = co_await Validate(context);
  // Takes no credit and no tokens but counts as a request, because tokenizers also have a limited
  // throughput.
  if (stage && !exchange.disconnected()) stage = co_await Admit(context, 0);
  if (!co_await ContinueOrRefuse(context, stage)) co_return;
  const PromptCount count = co_await CountPrompt(context);
  co_await context.slot.Finish(0);
  context.local_slot = LocalSlot();
  json::Writer body;
  if (endpoint.family == Family::kOpenAi) body.Text("object", "response.input_tokens");
  co_await SendJson(context, body.Number("input_tokens", count.tokens).Done());
}

}  // namespace tollgate::gateway
