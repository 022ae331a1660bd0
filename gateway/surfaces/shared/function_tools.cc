#include "gateway/surfaces/shared/function_tools.h"

#include <string>

#include "common/base/id.h"

namespace tollgate::gateway {

Result<void> CheckToolList(json::Value tools) {
  if (tools.is_null()) return {};
  if (!tools.is_array()) return BadRequest("'tools' must be an array.", "tools");
  if (tools.size() > kMaxTools) {
    return BadRequest("'tools' may hold at most " + std::to_string(kMaxTools) + " items.", "tools");
  }
  size_t index = 0;
  for (const json::Value tool : tools) {
    if (!tool.is_object()) {
      return BadRequest("tools[" + std::to_string(index) + "] must be an object.", "tools");
    }
    ++index;
  }
  return {};
}

Result<void> CheckFunction(json::Value function, std::string_view path) {
  const auto bad = [path](std::string_view problem) {
    return BadRequest(std::string(path) + std::string(problem), "tools");
  };
  const json::Value name = function.Find("name");
  if (!function.is_object() || !name.is_string() || name.raw_string().empty()) {
    return bad(" must be an object with a name.");
  }
  const json::Value description = function.Find("description");
  if (!description.is_null() && !description.is_string()) {
    return bad(".description must be a string.");
  }
  const json::Value parameters = function.Find("parameters");
  if (!parameters.is_null() && !parameters.is_object()) {
    return bad(".parameters must be an object.");
  }
  return {};
}

std::string MakeToolCallId() { return "call_" + RandomBase62(24); }

Fail<Error> BadToolChoice(std::string message) {
  return BadRequest(std::move(message), "tool_choice");
}

}  // namespace tollgate::gateway
