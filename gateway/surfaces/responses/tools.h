// Tool definitions and the choice among them: flat here, nested for the engine.
#pragma once

#include <map>
#include <string>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

struct ReadResponsesTools {
  // JSON for the engine; empty: the member is left out.
  std::string tools;
  std::string tool_choice;
  // JSON for the response object (wire.md 5.2): the functions that are left, and the choice that
  // is.
  std::string echoed_tools;
  std::string echoed_choice;
  // Of functions that stood in a `namespace`: its name, as a JSON string. Clients that name one
  // find the function of a call by both names.
  std::map<std::string, std::string> namespaces;
};

// Both values may be absent. spec: wire.md 5.1, 7.3, decisions.md 27: tools that nobody here can
// run are left out and those inside a `namespace` are lifted out; a choice of what was left out is
// no choice.
Result<ReadResponsesTools> ReadResponsesToolsOf(json::Value tools, json::Value tool_choice);

}  // namespace tollgate::gateway
