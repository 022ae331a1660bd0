// The exact size of a prompt, by the tokenizer of one of the model's engines.
#pragma once

#include <cstdint>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

struct PromptCount {
  int64_t tokens = 0;
  bool estimated = true;
  // Of the longest of several prompts; 0: not known.
  int64_t longest = 0;
  // The prompt has at least so many: only its texts were counted, or none could be.
  bool is_lower_bound = false;
};

// The prompt_tokens that the engine would bill; EstimatePromptTokens when no engine can count it.
Task<PromptCount> CountPrompt(RequestContext& context);

// Counts the prompt and fails with 400 context_length_exceeded when it does not fit the window,
// alone or beside max_tokens. For TokenBounds::needs_count. Of a prompt with images its texts
// decide. Where no engine can count, only what no known tokenizer could fit fails.
Task<Result<void>> CheckCountedPrompt(RequestContext& context);

}  // namespace tollgate::gateway
