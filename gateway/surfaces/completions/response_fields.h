// Fields that both chunks and single bodies have.
#pragma once

#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/chat_completions/response_fields.h"

namespace tollgate::gateway {

// The start of the object, from {"id":"cmpl-… to "choices":[.
std::string CompletionHead(const CanonicalRequest& request, const ResponseStamp& stamp);

// "stop", "length" or "content_filter".
std::string_view CompletionFinishReason(inference::v1::FinishReason reason);

// Appends {"prompt_tokens":…} with its three counters.
// more: further members (answer_cost.h).
void AppendCompletionUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                           std::string_view more = {});

}  // namespace tollgate::gateway
