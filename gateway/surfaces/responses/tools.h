// Tool definitions and tool_choice of a Responses request: flat here, nested for the engine.
#pragma once

#include <map>
#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct ResponsesTools {
  // JSON for the engine; empty: the member is omitted.
  std::string tools;
  std::string tool_choice;
  // JSON for the response object (docs/design/wire.md 5.2): the supported functions and the
  // effective choice.
  std::string echoed_tools;
  std::string echoed_choice;
  // Function name → the `namespace` it was defined in, as a JSON string. Clients that use
  // namespaces identify a function by both names.
  std::map<std::string, std::string> namespaces;
};

// Both values may be absent. See docs/design/wire.md 5.1, 7.3, decision 27: unsupported tools are
// omitted, namespaces are flattened, and a tool_choice that names an omitted tool is ignored.
Result<ResponsesTools> ReadResponsesTools(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
