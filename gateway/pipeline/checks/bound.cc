#include "gateway/pipeline/checks/bound.h"

#include <algorithm>
#include <string>

namespace tollgate::gateway {

namespace {

// The most tokens that a chat template adds to a message.
constexpr int64_t kMaxTokensPerMessage = 16;
// The most tokens that an image is converted to; its size in bytes is not a bound.
constexpr int64_t kMaxTokensPerMediaPart = 8192;
// Averages for estimates.
constexpr int64_t kBytesPerToken = 4;
constexpr int64_t kUsualTokensPerMessage = 4;

int64_t MediaTokens(const PromptSize& prompt) {
  return prompt.media_parts * kMaxTokensPerMediaPart;
}

Fail<Error> MaxTokensOverflow(const RequestContext& context, int64_t max_tokens) {
  Error error{ErrorId::kContextLengthExceeded};
  // Agents match the phrase "maximum context length is L tokens" (decision 32).
  error.message = "This model's maximum context length is " +
                  std::to_string(context.model->context_window()) +
                  " tokens. However, you requested " + std::to_string(max_tokens) +
                  " output tokens besides your input. Please reduce '" +
                  std::string(context.canonical.max_tokens_field) + "' or the input.";
  error.param = context.canonical.max_tokens_field;
  error.tokens.limit = context.model->context_window();
  error.tokens.output = max_tokens;
  return Fail{std::move(error)};
}

// The list of token ids is longer than the window, so no tokenizer is needed.
Fail<Error> TokenIdsOverflow(const RequestContext& context) {
  Error error{ErrorId::kContextLengthExceeded};
  const int64_t tokens = context.canonical.prompt.longest_tokens;
  error.tokens = {.limit = context.model->context_window(), .prompt = tokens};
  error.param = context.canonical.prompt_field;
  error.message = "This model's maximum context length is " +
                  std::to_string(context.model->context_window()) +
                  " tokens. However, your input has " + std::to_string(tokens) + " tokens.";
  return Fail{std::move(error)};
}

// The most tokens that one prompt can have.
int64_t LongestPromptBound(const PromptSize& prompt) {
  if (prompt.prompts > 1) {
    return std::max(prompt.longest_text_bytes + kMaxTokensPerMessage, prompt.longest_tokens);
  }
  return prompt.text_bytes + kMaxTokensPerMessage * prompt.messages + prompt.tokens;
}

}  // namespace

int64_t EstimatePromptTokens(const PromptSize& prompt) {
  return std::max<int64_t>(prompt.text_bytes / kBytesPerToken +
                               kUsualTokensPerMessage * prompt.messages + prompt.tokens +
                               MediaTokens(prompt),
                           1);
}

Result<void> BoundTokens(RequestContext& context) {
  const CanonicalRequest& request = context.canonical;
  const PromptSize& prompt = request.prompt;
  const int64_t window = context.model->context_window();
  const int64_t model_cap = context.model->max_output_tokens() > 0
                                ? std::min(context.model->max_output_tokens(), window)
                                : window;
  TokenBounds& bounds = context.bounds;
  const int64_t windows = prompt.prompts * window;
  bounds.prompt_lower = std::clamp<int64_t>(prompt.messages + prompt.tokens, 1, windows);
  // A byte-level tokenizer never produces more tokens than bytes.
  bounds.prompt_upper =
      std::clamp<int64_t>(prompt.text_bytes + kMaxTokensPerMessage * prompt.messages +
                              prompt.tokens + MediaTokens(prompt),
                          bounds.prompt_lower, windows);
  bounds.prompt_estimate =
      std::clamp(EstimatePromptTokens(prompt), bounds.prompt_lower, bounds.prompt_upper);
  if (prompt.longest_tokens > window) return TokenIdsOverflow(context);
  const int64_t asked_output = request.max_tokens.value_or(0);
  // Assumes one token per byte. For prompts with media only the text is counted (decision 44).
  bounds.needs_count = LongestPromptBound(prompt) > window - asked_output;
  if (request.kind == inference::v1::REQUEST_KIND_EMBEDDING) return {};  // no output
  // The least that the prompt uses of one window.
  const int64_t taken = prompt.prompts == 1 ? bounds.prompt_lower
                                            : std::clamp<int64_t>(prompt.longest_tokens, 1, window);
  int64_t output = model_cap;
  if (request.max_tokens) {
    const int64_t asked = *request.max_tokens;
    // Refuse only what cannot fit with any tokenizer; the engine counts the real prompt (decision
    // 18).
    if (asked > window - taken) return MaxTokensOverflow(context, asked);
    if (asked > model_cap && context.worker.options.refuse_large_max_tokens) {
      return BadRequest("'" + std::string(request.max_tokens_field) + "' may be at most " +
                            std::to_string(model_cap) + " for this model.",
                        std::string(request.max_tokens_field));
    }
    output = std::min(asked, model_cap);
    bounds.max_tokens = output;
  } else if (model_cap <= window - bounds.prompt_upper) {
    // The client did not ask for this limit, so it must not make the engine refuse the request.
    // Send the model's cap only if prompt and cap are certain to fit.
    bounds.max_tokens = model_cap;
  }
  bounds.output_upper = request.samples * std::min(output, window - taken);
  return {};
}

}  // namespace tollgate::gateway
