// The conversation of a responses request: items become the engine's messages.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct ReadInput {
  // JSON array for the engine.
  std::string messages;
  PromptSize size;
};

// `instructions` may be absent, `input` may not. Errors name the param "input" or "instructions".
// spec: wire.md 5.1, 7.3. What one turn of the assistant left behind (reasoning, a message, calls)
// becomes one message; items that are not understood are skipped.
Result<ReadInput> ReadResponsesInput(json::Value instructions, json::Value input);

}  // namespace tollgate::gateway
