// Translates the conversation of a Responses request from input items to engine messages.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/responses/sealed_reasoning.h"

namespace tollgate::gateway {

struct ResponsesInput {
  // JSON array for the engine.
  std::string messages;
  PromptSize size;
  std::set<std::string> media_hosts;  // CanonicalRequest::media_hosts
};

struct ResponsesInputOptions {
  // True: system and developer items that are not first stay in place. False: they are folded into
  // user messages (ConversationWriter).
  bool keeps_system_messages = false;
  // Unseals reasoning. Sealed reasoning is ignored if it cannot be unsealed, or if this is null.
  const ReasoningSeal* seal = nullptr;
  // Unix time in seconds.
  int64_t now_s = 0;
};

// `instructions` may be absent, `input` may not. Errors name the param "input" or "instructions".
// See docs/design/wire.md 5.1, 7.3. The items of one assistant turn (reasoning, message, calls)
// become one message; unknown items are skipped.
Result<ResponsesInput> ReadResponsesInput(json::Value instructions, json::Value input,
                                          const ResponsesInputOptions& options = {});

}  // namespace tollgate::gateway
