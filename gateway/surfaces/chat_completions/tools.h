// Tool definitions and the choice among them.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct ReadTools {
  // JSON for the engine; empty: the member is left out.
  std::string tools;
  std::string tool_choice;
};

// Both values may be absent. spec: wire.md 2.1. `allowed_tools`, which no engine knows, becomes the
// list of those tools with the mode as the choice; an empty list and a choice without tools are
// left out.
Result<ReadTools> ReadChatTools(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
