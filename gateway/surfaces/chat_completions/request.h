// POST /v1/chat/completions: the request.
#pragma once

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// See docs/design/wire.md 2.1, decisions 17 and 18.
Result<CanonicalRequest> ParseChatRequest(const json::Document& body,
                                          const ParseContext& context = {});

}  // namespace tollgate::gateway
