// Tool definitions and tool_choice of a chat request.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct ChatTools {
  // JSON for the engine; empty: the member is omitted.
  std::string tools;
  std::string tool_choice;
};

// Both values may be absent. See docs/design/wire.md 2.1. No engine supports `allowed_tools`, so
// the list is reduced to the allowed tools, and their mode becomes the tool_choice. An empty list
// and a tool_choice without tools are omitted.
Result<ChatTools> ReadChatTools(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
