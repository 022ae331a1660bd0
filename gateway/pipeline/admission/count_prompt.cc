#include "gateway/pipeline/admission/count_prompt.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/admission/overflow.h"
#include "gateway/pipeline/checks/bound.h"

namespace tollgate::gateway {

namespace {

// request: has the options of this count already set.
Task<PromptCount> Count(RequestContext& context, inference::v1::CountTokensRequest request) {
  const CanonicalRequest& canonical = context.canonical;
  PromptCount count{.tokens = EstimatePromptTokens(canonical.prompt), .estimated = true};
  request.set_x_request_id(context.exchange.request().x_request_id);
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  // If the request was sent to another model before, its members have moved to the kept copy.
  request.set_members_json(context.movable ? context.movable->members_json()
                                           : canonical.members_json);
  if (SaysReasoning(canonical)) *request.mutable_reasoning() = canonical.reasoning;
  const auto answer = co_await context.worker.clients.inference->CountTokens(std::move(request));
  if (!answer) {
    log::Debug("prompt tokens estimated",
               {{"x_request_id", context.exchange.request().x_request_id},
                {"reason", answer.error().ToString()}});
  } else if (answer->counted()) {
    count = {.tokens = answer->prompt_tokens(),
             .estimated = false,
             .longest = answer->longest_prompt_tokens(),
             .is_lower_bound = canonical.prompt.media_parts > 0};
  } else if (answer->least_prompt_tokens() > 0) {
    count = {.tokens = answer->least_prompt_tokens(),
             .estimated = false,
             .longest = answer->least_prompt_tokens(),
             .is_lower_bound = true};
  }
  co_return count;
}

}  // namespace

Task<PromptCount> CountPrompt(RequestContext& context) {
  // Tokenizers count only text. How many tokens an image is converted to is known after the engine
  // has run.
  const PromptSize& size = context.canonical.prompt;
  if (size.media_parts > 0) co_return PromptCount{.tokens = EstimatePromptTokens(size)};
  co_return co_await Count(context, {});
}

Task<Result<void>> CheckCountedPrompt(RequestContext& context) {
  const CanonicalRequest& canonical = context.canonical;
  const bool several = canonical.prompt.prompts > 1;
  const int64_t room = context.model->context_window() - canonical.max_tokens.value_or(0);
  inference::v1::CountTokensRequest request;
  request.set_only_above_tokens(several ? room : 0);
  request.set_text_only(canonical.prompt.media_parts > 0);
  request.set_or_least(true);
  auto overflow = FindOverflow(context, co_await Count(context, std::move(request)));
  if (overflow) co_return Fail{std::move(*overflow)};
  co_return Result<void>();
}

}  // namespace tollgate::gateway
