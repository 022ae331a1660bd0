#include "gateway/pipeline/count_prompt.h"

#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/bound.h"
#include "gateway/pipeline/overflow.h"

namespace tollgate::gateway {

Task<PromptCount> CountPrompt(RequestContext& context) {
  CanonicalRequest& canonical = context.canonical;
  PromptCount count{EstimatePromptTokens(canonical.prompt), true};
  // Tokenizers count text only; how many tokens an image becomes is known after the engine ran.
  if (canonical.prompt.media_parts > 0) co_return count;
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(context.exchange.request().x_request_id);
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  request.set_members_json(canonical.members_json);
  const auto answer = co_await context.worker.clients.inference->CountTokens(std::move(request));
  if (!answer) {
    log::Debug("prompt tokens estimated",
               {{"x_request_id", context.exchange.request().x_request_id},
                {"reason", answer.error().ToString()}});
  } else if (answer->counted()) {
    count = {answer->prompt_tokens(), false};
  }
  co_return count;
}

Task<Result<void>> CheckCountedPrompt(RequestContext& context) {
  auto overflow = FindOverflow(context, co_await CountPrompt(context));
  if (overflow) co_return Fail{std::move(*overflow)};
  co_return Result<void>();
}

}  // namespace tollgate::gateway
