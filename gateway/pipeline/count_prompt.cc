#include "common/observability/log.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

Task<PromptCount> CountPrompt(RequestContext& context) {
  CanonicalRequest& canonical = context.canonical;
  PromptCount count{LikelyTokens(canonical.prompt), true};
  // Tokenizers see text: what an engine makes of an image, it tells after it has seen it.
  if (canonical.prompt.media_parts > 0) co_return count;
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(context.exchange.request().x_request_id);
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  request.set_members_json(canonical.members_json);
  const auto answer = co_await context.worker.clients.inference->CountTokens(std::move(request));
  if (!answer) {
    log::Debug("tokens are estimated", {{"x_request_id", context.exchange.request().x_request_id},
                                        {"reason", answer.error().ToString()}});
  } else if (answer->counted()) {
    count = {answer->prompt_tokens(), false};
  }
  co_return count;
}

std::optional<Error> FindOverflow(const RequestContext& context, const PromptCount& prompt) {
  const int64_t window = context.model->context_window();
  const int64_t asked = context.canonical.max_tokens.value_or(0);
  // Of prompts side by side only the sum is known.
  const int64_t room = (window - asked) * context.canonical.prompt.prompts;
  if (prompt.estimated || prompt.tokens <= room) return std::nullopt;
  Error error{ErrorId::kContextLengthExceeded};
  error.tokens = {.limit = window, .prompt = prompt.tokens, .output = asked};
  NameFieldAtFault(context.canonical, error);
  error.message = "This model's maximum context length is " + std::to_string(window) + " tokens. ";
  const std::string counted = std::to_string(prompt.tokens);
  if (asked == 0) {
    error.message += "However, your input has " + counted + " tokens.";
  } else {
    error.message += "However, you requested " + std::to_string(prompt.tokens + asked) +
                     " tokens (" + counted + " in the prompt, " + std::to_string(asked) +
                     " for the completion).";
  }
  return error;
}

}  // namespace tollgate::gateway
