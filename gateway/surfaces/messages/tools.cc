#include "gateway/surfaces/messages/tools.h"

#include <map>

#include "common/base/try.h"
#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace {

// Prefixes of tool types. Only the vendor's models know their names and parameters.
constexpr std::string_view kClientRunTools[] = {"bash_", "text_editor_", "computer_", "memory_",
                                                "browser_"};

Fail<Error> BadTool(size_t index, const std::string& problem) {
  return BadRequest("tools[" + std::to_string(index) + "]" + problem, "tools");
}

class MessagesToolsReader {
 public:
  Result<MessagesTools> Read(json::Value tools, json::Value choice);

 private:
  Result<void> ReadTool(size_t index, json::Value tool);
  Result<void> ReadVendorTool(size_t index, json::Value tool);
  Result<void> ReadChoice(json::Value choice, bool any_tools);

  MessagesTools read_;
  std::map<std::string, bool> names_;  // false: omitted
};

Result<void> MessagesToolsReader::ReadVendorTool(size_t index, json::Value tool) {
  const std::string type = tool.Find("type").string();
  for (const std::string_view start : kClientRunTools) {
    if (type.starts_with(start)) {
      return BadTool(index, ".type '" + type + "' is not supported: define a tool of your own.");
    }
  }
  if (type == "custom" || type == "function") {
    return BadTool(index, ".input_schema must be an object.");
  }
  if (tool.Find("name").is_string()) names_[tool.Find("name").string()] = false;
  return {};
}

Result<void> MessagesToolsReader::ReadTool(size_t index, json::Value tool) {
  const json::Value type = tool.Find("type");
  const json::Value schema = tool.Find("input_schema");
  if (!type.is_null() && !type.is_string()) return BadTool(index, ".type must be a string.");
  if (type.is_string() && schema.is_null()) return ReadVendorTool(index, tool);
  if (!schema.is_object()) return BadTool(index, ".input_schema must be an object.");
  const json::Value name = tool.Find("name");
  if (!name.is_string() || name.raw_string().empty()) {
    return BadTool(index, ".name must be a non-empty string.");
  }
  const json::Value description = tool.Find("description");
  if (!description.is_null() && !description.is_string()) {
    return BadTool(index, ".description must be a string.");
  }
  const json::Value strict = tool.Find("strict");
  if (!strict.is_null() && !strict.is_bool()) {
    return BadTool(index, ".strict must be true or false.");
  }
  std::string& out = read_.tools;
  out += out.empty() ? "[" : ",";
  out += R"({"type":"function","function":{"name":)";
  out += name.raw();
  if (description.is_string()) {
    out += R"(,"description":)";
    out += description.raw();
  }
  out += R"(,"parameters":)";
  out += schema.raw();
  if (strict.is_bool()) {
    out += R"(,"strict":)";
    out += strict.raw();
  }
  out += "}}";
  names_[name.string()] = true;
  return {};
}

Result<void> MessagesToolsReader::ReadChoice(json::Value choice, bool any_tools) {
  const json::Value type = choice.Find("type");
  const json::Value single = choice.Find("disable_parallel_tool_use");
  if (!single.is_null() && !single.is_bool()) {
    return BadToolChoice("'tool_choice.disable_parallel_tool_use' must be true or false.");
  }
  std::string wanted;
  if (type.StringEquals("auto")) {
    wanted = R"("auto")";
  } else if (type.StringEquals("none")) {
    wanted = R"("none")";
  } else if (type.StringEquals("any")) {
    if (!any_tools) return BadToolChoice("'tool_choice' needs 'tools'.");
    wanted = R"("required")";
  } else if (type.StringEquals("tool")) {
    const json::Value name = choice.Find("name");
    const auto found = name.is_string() ? names_.find(name.string()) : names_.end();
    if (found == names_.end()) {
      return BadToolChoice("'tool_choice.name' must name a tool in 'tools'.");
    }
    if (found->second) {
      wanted = R"({"type":"function","function":{"name":)";
      wanted += name.raw();
      wanted += "}}";
    }
  } else {
    return BadToolChoice("'tool_choice.type' must be auto, any, tool or none.");
  }
  if (read_.tools.empty()) return {};
  read_.tool_choice = std::move(wanted);
  read_.disable_parallel_calls = single.boolean();
  return {};
}

Result<MessagesTools> MessagesToolsReader::Read(json::Value tools, json::Value choice) {
  TRY(CheckToolList(tools));
  size_t index = 0;
  for (const json::Value tool : tools) {
    TRY(ReadTool(index++, tool));
  }
  if (!read_.tools.empty()) read_.tools += "]";
  if (!choice.is_null()) {
    TRY(ReadChoice(choice, index > 0));
  }
  return std::move(read_);
}

}  // namespace

Result<MessagesTools> ReadMessagesTools(json::Value tools, json::Value tool_choice) {
  return MessagesToolsReader().Read(tools, tool_choice);
}

}  // namespace tollgate::gateway
