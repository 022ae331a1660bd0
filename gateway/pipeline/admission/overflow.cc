#include "gateway/pipeline/admission/overflow.h"

#include <string>

namespace tollgate::gateway {

std::optional<Error> FindOverflow(const RequestContext& context, const PromptCount& prompt) {
  const int64_t window = context.model->context_window();
  const int64_t max_tokens = context.canonical.max_tokens.value_or(0);
  // Each of several prompts has its own window.
  const bool several = context.canonical.prompt.prompts > 1;
  const int64_t tokens = several ? prompt.longest : prompt.tokens;
  if (prompt.estimated || tokens <= window - max_tokens) return std::nullopt;
  Error error{ErrorId::kContextLengthExceeded};
  error.tokens = {.limit = window,
                  .prompt = tokens,
                  .output = max_tokens,
                  .prompt_is_lower_bound = prompt.is_lower_bound};
  SetOverflowParam(context.canonical, error);
  error.message = "This model's maximum context length is " + std::to_string(window) + " tokens. ";
  const std::string at_least = prompt.is_lower_bound ? "at least " : "";
  const std::string counted = at_least + std::to_string(tokens);
  if (max_tokens == 0) {
    error.message += "However, your input has " + counted + " tokens.";
  } else {
    error.message += "However, you requested " + at_least + std::to_string(tokens + max_tokens) +
                     " tokens (" + counted + " in the prompt, " + std::to_string(max_tokens) +
                     " for the completion).";
  }
  return error;
}

void SetOverflowParam(const CanonicalRequest& request, Error& error) {
  const auto [limit, prompt, output, prompt_is_lower_bound] = error.tokens;
  if (error.id != ErrorId::kContextLengthExceeded || !error.param.empty()) return;
  const bool has_no_output = request.kind == inference::v1::REQUEST_KIND_EMBEDDING;
  if (has_no_output || (limit > 0 && prompt > limit)) {
    error.param = request.prompt_field;
    return;
  }
  if (!request.max_tokens || limit <= 0 || output <= 0) return;
  const bool output_alone_overflows = output >= limit;
  const bool prompt_fits = prompt > 0 && !prompt_is_lower_bound && prompt < limit;
  if (output_alone_overflows || (prompt_fits && output > limit - prompt)) {
    error.param = request.max_tokens_field;
  }
}

}  // namespace tollgate::gateway
