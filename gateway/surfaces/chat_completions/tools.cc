#include "gateway/surfaces/chat_completions/tools.h"

#include <unordered_set>

#include "common/base/try.h"
#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace {

using Names = std::unordered_set<std::string>;

Result<Names> CheckTools(json::Value tools) {
  TRY(CheckToolList(tools));
  Names names;
  size_t index = 0;
  for (const json::Value tool : tools) {
    const std::string where = "tools[" + std::to_string(index++) + "]";
    const json::Value type = tool.Find("type");
    if (!type.is_null() && !type.StringEquals("function")) {
      return BadRequest(where + ".type must be 'function': other kinds of tools are not supported.",
                        "tools");
    }
    const json::Value function = tool.Find("function");
    TRY(CheckFunction(function, where + ".function"));
    names.insert(function.Find("name").string());
  }
  return names;
}

// {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}, each tool as in tool_choice.
// Some clients send mode and tools next to the type.
Result<ChatTools> ReadAllowed(json::Value tools, json::Value choice, const Names& names) {
  json::Value allowed = choice.Find("allowed_tools");
  if (!allowed.is_object()) allowed = choice;
  const json::Value mode = allowed.Find("mode");
  if (!mode.StringEquals("auto") && !mode.StringEquals("required")) {
    return BadToolChoice("The mode of 'allowed_tools' must be 'auto' or 'required'.");
  }
  Names wanted;
  for (const json::Value tool : allowed.Find("tools")) {
    json::Value name = tool.Find("function").Find("name");
    if (!name.is_string()) name = tool.Find("name");
    if (!name.is_string() || !names.contains(name.string())) {
      return BadToolChoice("'allowed_tools' names a tool that is not in 'tools'.");
    }
    wanted.insert(name.string());
  }
  if (wanted.empty()) return BadToolChoice("'allowed_tools' must name at least one tool.");
  ChatTools read;
  for (const json::Value tool : tools) {
    if (!wanted.contains(tool.Find("function").Find("name").string())) continue;
    read.tools += (read.tools.empty() ? "[" : ",") + std::string(tool.raw());
  }
  read.tools += "]";
  read.tool_choice = mode.raw();
  return read;
}

}  // namespace

Result<ChatTools> ReadChatTools(json::Value tools, json::Value choice) {
  TRY(auto names, CheckTools(tools));
  ChatTools read;
  if (!names.empty()) read.tools = tools.raw();
  if (choice.is_null()) return read;
  const bool calls_are_optional = choice.StringEquals("none") || choice.StringEquals("auto");
  if (!calls_are_optional && !choice.StringEquals("required") && !choice.is_object()) {
    return BadToolChoice("'tool_choice' must be 'none', 'auto', 'required' or an object.");
  }
  if (names.empty()) {
    if (calls_are_optional) return read;
    return BadToolChoice("'tool_choice' needs 'tools'.");
  }
  if (choice.is_object()) {
    const json::Value type = choice.Find("type");
    if (type.StringEquals("allowed_tools")) return ReadAllowed(tools, choice, names);
    const json::Value name = choice.Find("function").Find("name");
    if (!type.StringEquals("function") || !name.is_string()) {
      return BadToolChoice("'tool_choice' must name a function.");
    }
    if (!names.contains(name.string())) {
      return BadToolChoice("'tool_choice' names a tool that is not in 'tools'.");
    }
  }
  read.tool_choice = choice.raw();
  return read;
}

}  // namespace tollgate::gateway
