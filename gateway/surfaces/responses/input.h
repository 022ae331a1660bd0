// The conversation of a Responses request: input items, translated to engine messages.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct ResponsesInput {
  // JSON array for the engine.
  std::string messages;
  PromptSize size;
  std::set<std::string> media_hosts;  // CanonicalRequest::media_hosts
};

// `instructions` may be absent, `input` may not. Errors name the param "input" or "instructions".
// See docs/design/wire.md 5.1, 7.3. The items of one assistant turn (reasoning, a message, calls)
// become one message; unknown items are skipped.
Result<ResponsesInput> ReadResponsesInput(json::Value instructions, json::Value input);

}  // namespace tollgate::gateway
