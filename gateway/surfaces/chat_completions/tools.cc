#include "gateway/surfaces/chat_completions/tools.h"

#include <unordered_set>

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxTools = 1024;

Fail<Error> WrongTool(size_t index, std::string_view what) {
  return BadRequest("tools[" + std::to_string(index) + "]" + std::string(what), "tools");
}

Fail<Error> WrongChoice(std::string message) {
  return BadRequest(std::move(message), "tool_choice");
}

using Names = std::unordered_set<std::string>;

Result<Names> CheckTools(json::Value tools) {
  Names names;
  if (tools.is_null()) return names;
  if (!tools.is_array()) return BadRequest("'tools' must be an array.", "tools");
  if (tools.size() > kMaxTools) {
    return BadRequest("'tools' may hold at most " + std::to_string(kMaxTools) + " items.", "tools");
  }
  size_t index = 0;
  for (const json::Value tool : tools) {
    if (!tool.is_object()) return WrongTool(index, " must be an object.");
    const json::Value type = tool.Find("type");
    if (!type.is_null() && !type.StringEquals("function")) {
      return WrongTool(index, ".type must be 'function': other kinds of tools are not supported.");
    }
    const json::Value function = tool.Find("function");
    const json::Value name = function.Find("name");
    if (!function.is_object() || !name.is_string() || name.raw_string().empty()) {
      return WrongTool(index, ".function must be an object with a name.");
    }
    const json::Value description = function.Find("description");
    if (!description.is_null() && !description.is_string()) {
      return WrongTool(index, ".function.description must be a string.");
    }
    const json::Value parameters = function.Find("parameters");
    if (!parameters.is_null() && !parameters.is_object()) {
      return WrongTool(index, ".function.parameters must be an object.");
    }
    names.insert(name.string());
    ++index;
  }
  return names;
}

// {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}, each tool as in tool_choice;
// some clients put mode and tools beside the type.
Result<ReadTools> ReadAllowed(json::Value tools, json::Value choice, const Names& names) {
  json::Value allowed = choice.Find("allowed_tools");
  if (!allowed.is_object()) allowed = choice;
  const json::Value mode = allowed.Find("mode");
  if (!mode.StringEquals("auto") && !mode.StringEquals("required")) {
    return WrongChoice("The mode of 'allowed_tools' must be 'auto' or 'required'.");
  }
  Names wanted;
  for (const json::Value tool : allowed.Find("tools")) {
    json::Value name = tool.Find("function").Find("name");
    if (!name.is_string()) name = tool.Find("name");
    if (!name.is_string() || !names.contains(name.string())) {
      return WrongChoice("'allowed_tools' names a tool that is not in 'tools'.");
    }
    wanted.insert(name.string());
  }
  if (wanted.empty()) return WrongChoice("'allowed_tools' must name at least one tool.");
  ReadTools read;
  for (const json::Value tool : tools) {
    if (!wanted.contains(tool.Find("function").Find("name").string())) continue;
    read.tools += (read.tools.empty() ? "[" : ",") + std::string(tool.raw());
  }
  read.tools += "]";
  read.tool_choice = mode.raw();
  return read;
}

}  // namespace

Result<ReadTools> ReadChatTools(json::Value tools, json::Value choice) {
  auto names = CheckTools(tools);
  if (!names) return Fail{names.error()};
  ReadTools read;
  if (!names->empty()) read.tools = tools.raw();
  if (choice.is_null()) return read;
  const bool may_be_idle = choice.StringEquals("none") || choice.StringEquals("auto");
  if (!may_be_idle && !choice.StringEquals("required") && !choice.is_object()) {
    return WrongChoice("'tool_choice' must be 'none', 'auto', 'required' or an object.");
  }
  if (names->empty()) {
    if (may_be_idle) return read;
    return WrongChoice("'tool_choice' needs 'tools'.");
  }
  if (choice.is_object()) {
    const json::Value type = choice.Find("type");
    if (type.StringEquals("allowed_tools")) return ReadAllowed(tools, choice, *names);
    const json::Value name = choice.Find("function").Find("name");
    if (!type.StringEquals("function") || !name.is_string()) {
      return WrongChoice("'tool_choice' must name a function.");
    }
    if (!names->contains(name.string())) {
      return WrongChoice("'tool_choice' names a tool that is not in 'tools'.");
    }
  }
  read.tool_choice = choice.raw();
  return read;
}

}  // namespace tollgate::gateway
