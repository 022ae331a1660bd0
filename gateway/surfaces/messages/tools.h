// Tool definitions of a Messages request and the choice among them.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct MessagesTools {
  // JSON for the engine; empty: the member is left out.
  std::string tools;
  std::string tool_choice;
  // At most one call an answer.
  bool one_at_a_time = false;
};

// Both values may be absent. spec: wire.md 6.1, 7.1, decisions.md 33. Tools that the vendor would
// run are left out, and a choice that asks for one of them with them; tools that the caller would
// run but that engines cannot be told of are a 400.
Result<MessagesTools> ReadMessagesTools(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
