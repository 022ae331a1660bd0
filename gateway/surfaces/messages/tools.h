// Tool definitions and tool_choice of a Messages request.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct MessagesTools {
  // JSON for the engine; empty: the member is omitted.
  std::string tools;
  std::string tool_choice;
  // The model may make at most one call per response.
  bool disable_parallel_calls = false;
};

// Both values may be absent. See docs/design/wire.md 6.1, 7.1, decision 33. Tools that run on the
// vendor's servers are omitted, and so is a tool_choice that names one of them. Vendor-defined
// tools that the client runs are refused with 400: engines have no definition of them.
Result<MessagesTools> ReadMessagesTools(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
