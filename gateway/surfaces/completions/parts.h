// Pieces that the stream and the single body have in common.
#pragma once

#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/chat_completions/parts.h"

namespace tollgate::gateway {

// {"id":"cmpl-…","object":"text_completion",… up to and with "choices":[
std::string CompletionHead(const CanonicalRequest& request, const AnswerStamp& stamp);

// "stop", "length" or "content_filter".
std::string_view CompletionFinishReason(inference::v1::FinishReason reason);

// {"prompt_tokens":…}, three counters.
void AppendCompletionUsage(std::string& out, const tollgate::common::v1::Usage& usage);

}  // namespace tollgate::gateway
