// POST /v1/messages and POST /v1/messages/count_tokens: the request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// What the answer is made with besides the events.
struct MessagesState : SurfaceState {
  // Decoded.
  std::vector<std::string> stop_sequences;
};

// What is wanted of a request. An answer needs max_tokens; a count checks its form only.
enum class MessagesPurpose : uint8_t { kAnswer, kCount };

// spec: wire.md 6.1, 6.4 and 7.1, decisions.md 17, 18 and 33. Members that are not of the public
// format go on to the engine as they came, like on the OpenAI-style endpoints.
Result<CanonicalRequest> ParseMessagesRequest(const json::Document& body, MessagesPurpose purpose);

}  // namespace tollgate::gateway
