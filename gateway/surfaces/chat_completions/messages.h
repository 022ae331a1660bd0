// The messages of a chat request: validated, measured, and rewritten where engines need another
// form.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct ChatMessages {
  // The JSON array for the engine; empty when the client's bytes are sent unchanged.
  std::string rewritten;
  PromptSize size;
  std::set<std::string> media_hosts;  // CanonicalRequest::media_hosts
};

// See docs/design/wire.md 2.1. Errors name the param "messages".
//  - The role developer becomes system: chat templates of open models do not support it.
//  - A system message that is not first is folded as in ConversationWriter, unless
//    keeps_system_messages. Several at the start are joined.
//  - The reasoning of an assistant turn is sent under both of its names (docs/design/wire.md 2.4).
Result<ChatMessages> ReadChatMessages(const json::Document& document, json::Value messages,
                                      bool keeps_system_messages = false);

}  // namespace tollgate::gateway
