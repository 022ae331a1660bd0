// The conversation of a Messages request, as the `messages` of an engine request.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct ReadTurns {
  std::string messages;  // the JSON array
  PromptSize size;
};

// `system` may be absent. Errors name the param "system" or "messages". spec: wire.md 6.1, 7.1.
//  - Turns of one role in a row are one turn: chat templates want them to alternate.
//  - A user turn's tool results come first, a message each, then everything else that it says.
//    Pictures in a result go there too: engines take only text from tools.
//  - Signatures, redacted thinking, citations, cache_control and what the vendor's servers have put
//    in are left out.
Result<ReadTurns> ReadMessagesTurns(json::Value system, json::Value messages);

}  // namespace tollgate::gateway
