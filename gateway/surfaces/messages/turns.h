// Translates the conversation of a Messages request to the `messages` of an engine request.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct MessagesTurns {
  std::string messages;  // the JSON array
  PromptSize size;
  std::set<std::string> media_hosts;  // CanonicalRequest::media_hosts
};

// `system` may be absent. Errors name the param "system" or "messages". See
// docs/design/wire.md 6.1, 7.1.
//  - Consecutive turns of one role are joined: chat templates require alternating roles.
//  - The tool results of a user turn come first, one message each, then its other content. Images
//    in a result move to that content: engines accept only text from tools.
//  - System turns that are not first are folded into user messages unless keeps_system_messages
//    (ConversationWriter).
//  - Signatures, redacted thinking, citations, cache_control and blocks of the vendor's servers are
//    omitted.
Result<MessagesTurns> ReadMessagesTurns(json::Value system, json::Value messages,
                                        bool keeps_system_messages = false);

}  // namespace tollgate::gateway
