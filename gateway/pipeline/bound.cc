#include <algorithm>

#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

// What a chat template adds to each message, at most.
constexpr int64_t kTokensPerMessage = 16;
// What an image may become; its bytes say nothing.
constexpr int64_t kTokensPerMedium = 8192;
// A token of text is about four bytes.
constexpr int64_t kBytesPerToken = 4;
constexpr int64_t kUsualTokensPerMessage = 4;

int64_t TokensOfMedia(const PromptSize& prompt) { return prompt.media_parts * kTokensPerMedium; }

Fail<Error> DoesNotFit(const RequestContext& context, int64_t asked) {
  Error error{ErrorId::kContextLengthExceeded};
  // The words "maximum context length is L tokens" are what agents look for (decisions.md 32).
  error.message = "This model's maximum context length is " +
                  std::to_string(context.model->context_window()) +
                  " tokens. However, you requested " + std::to_string(asked) +
                  " output tokens besides your input. Please reduce '" +
                  std::string(context.canonical.max_tokens_field) + "' or the input.";
  error.param = context.canonical.max_tokens_field;
  error.tokens.limit = context.model->context_window();
  error.tokens.output = asked;
  return Fail{std::move(error)};
}

}  // namespace

void NameFieldAtFault(const CanonicalRequest& request, Error& error) {
  const auto [limit, prompt, output, at_least] = error.tokens;
  if (error.id != ErrorId::kContextLengthExceeded || !error.param.empty()) return;
  const bool only_a_prompt = request.kind == inference::v1::REQUEST_KIND_EMBEDDING;
  if (only_a_prompt || (limit > 0 && prompt > limit)) {
    error.param = request.prompt_field;
    return;
  }
  if (!request.max_tokens || limit <= 0 || output <= 0) return;
  const bool alone = output >= limit;
  const bool input_fits = prompt > 0 && !at_least && prompt < limit;
  if (alone || (input_fits && output > limit - prompt)) error.param = request.max_tokens_field;
}

int64_t LikelyTokens(const PromptSize& prompt) {
  return std::max<int64_t>(prompt.text_bytes / kBytesPerToken +
                               kUsualTokensPerMessage * prompt.messages + prompt.tokens +
                               TokensOfMedia(prompt),
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
  // A byte-level tokenizer makes no more tokens than there are bytes.
  bounds.prompt_upper =
      std::clamp<int64_t>(prompt.text_bytes + kTokensPerMessage * prompt.messages + prompt.tokens +
                              TokensOfMedia(prompt),
                          bounds.prompt_lower, windows);
  bounds.prompt_estimate =
      std::clamp(LikelyTokens(prompt), bounds.prompt_lower, bounds.prompt_upper);
  if (request.kind == inference::v1::REQUEST_KIND_EMBEDDING) return {};  // it has no output
  // Of one window, what the prompt leaves at most.
  const int64_t taken = prompt.prompts == 1 ? bounds.prompt_lower
                                            : std::clamp<int64_t>(prompt.longest_tokens, 1, window);
  int64_t output = model_cap;
  if (request.max_tokens) {
    const int64_t asked = *request.max_tokens;
    // Only what is certain is refused here; the engine counts the real prompt (decisions.md 18).
    if (asked > window - taken) return DoesNotFit(context, asked);
    if (asked > model_cap && context.worker.options.refuse_large_max_tokens) {
      return BadRequest("'" + std::string(request.max_tokens_field) + "' may be at most " +
                            std::to_string(model_cap) + " for this model.",
                        std::string(request.max_tokens_field));
    }
    output = std::min(asked, model_cap);
    bounds.max_tokens = output;
    bounds.count_decides =
        asked > model_cap && prompt.prompts == 1 && asked > window - bounds.prompt_upper;
  } else if (model_cap <= window - bounds.prompt_upper) {
    // The cap is the model's own rule, not the caller's wish: an engine that adds it to the prompt
    // may not refuse the request for it, so it is only sent where both surely fit.
    bounds.max_tokens = model_cap;
  }
  bounds.output_upper = request.samples * std::min(output, window - taken);
  return {};
}

}  // namespace tollgate::gateway
