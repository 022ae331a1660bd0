// The exact size of a prompt, counted by the tokenizer of one of the model's engines.
#pragma once

#include <cstdint>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

struct PromptCount {
  int64_t tokens = 0;
  bool estimated = true;
  // Tokens of the longest of several prompts; 0: unknown.
  int64_t longest = 0;
  // `tokens` is a lower bound: only texts were counted, or no engine could count.
  bool is_lower_bound = false;
};

// Returns the prompt_tokens that the engine would report, or EstimatePromptTokens when no engine
// can count it.
Task<PromptCount> CountPrompt(RequestContext& context);

// Counts the prompt and fails with 400 context_length_exceeded when it does not fit the window,
// alone or together with max_tokens. For TokenBounds::needs_count. For a prompt with images only
// its texts are counted. If no engine can count, fails only for a prompt that does not fit with any
// known tokenizer.
Task<Result<void>> CheckCountedPrompt(RequestContext& context);

}  // namespace tollgate::gateway
