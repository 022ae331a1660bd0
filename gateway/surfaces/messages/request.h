// POST /v1/messages and POST /v1/messages/count_tokens: the request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// Data of the request that the response needs.
struct MessagesState : SurfaceState {
  // Decoded.
  std::vector<std::string> stop_sequences;
};

// max_tokens is required to generate and optional to count.
enum class MessagesPurpose : uint8_t { kGenerate, kCount };

// See docs/design/wire.md 6.1, 6.4 and 7.1, decisions 17, 18 and 33. Members outside the public
// format are forwarded unchanged, as on the OpenAI-style endpoints.
Result<CanonicalRequest> ParseMessagesRequest(const json::Document& body, MessagesPurpose purpose,
                                              const ParseContext& context = {});

}  // namespace tollgate::gateway
