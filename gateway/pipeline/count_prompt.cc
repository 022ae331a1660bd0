#include "gateway/pipeline/count_prompt.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/bound.h"
#include "gateway/pipeline/overflow.h"

namespace tollgate::gateway {

namespace {

// only_above: as in CountTokensRequest.
Task<PromptCount> Count(RequestContext& context, int64_t only_above) {
  CanonicalRequest& canonical = context.canonical;
  PromptCount count{.tokens = EstimatePromptTokens(canonical.prompt), .estimated = true};
  // Tokenizers count text only; how many tokens an image becomes is known after the engine ran.
  if (canonical.prompt.media_parts > 0) co_return count;
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(context.exchange.request().x_request_id);
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  // Of a request that was sent to another model, what is kept of it.
  request.set_members_json(context.movable ? context.movable->members_json()
                                           : canonical.members_json);
  request.set_only_above_tokens(only_above);
  if (SaysReasoning(canonical)) *request.mutable_reasoning() = canonical.reasoning;
  const auto answer = co_await context.worker.clients.inference->CountTokens(std::move(request));
  if (!answer) {
    log::Debug("prompt tokens estimated",
               {{"x_request_id", context.exchange.request().x_request_id},
                {"reason", answer.error().ToString()}});
  } else if (answer->counted()) {
    count = {.tokens = answer->prompt_tokens(),
             .estimated = false,
             .longest = answer->longest_prompt_tokens()};
  }
  co_return count;
}

}  // namespace

Task<PromptCount> CountPrompt(RequestContext& context) { return Count(context, 0); }

Task<Result<void>> CheckCountedPrompt(RequestContext& context) {
  const CanonicalRequest& canonical = context.canonical;
  const bool several = canonical.prompt.prompts > 1;
  const int64_t room = context.model->context_window() - canonical.max_tokens.value_or(0);
  auto overflow = FindOverflow(context, co_await Count(context, several ? room : 0));
  if (overflow) co_return Fail{std::move(*overflow)};
  co_return Result<void>();
}

}  // namespace tollgate::gateway
