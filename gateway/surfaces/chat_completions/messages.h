// The conversation of a chat request: checked, measured, and rewritten where engines differ.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct ReadMessages {
  // The JSON array for the engine; empty when it is the caller's, byte for byte.
  std::string rewritten;
  PromptSize size;
};

// spec: wire.md 2.1. Errors name the param "messages".
//  - role developer becomes system: chat templates of open models do not know it;
//  - an assistant turn's reasoning goes out under both of its names (wire.md 2.4).
Result<ReadMessages> ReadChatMessages(const json::Document& document, json::Value messages);

}  // namespace tollgate::gateway
