#include "gateway/surfaces/responses/tools.h"

#include <unordered_set>
#include <vector>

#include "common/base/try.h"
#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace {

Fail<Error> BadTool(std::string message) { return BadRequest(std::move(message), "tools"); }
using Names = std::unordered_set<std::string>;

class ResponsesToolsReader {
 public:
  Result<ResponsesTools> Read(json::Value tools, json::Value choice);

 private:
  struct Function {
    std::string name;
    json::Value tool;
  };

  Result<void> ReadTool(json::Value tool, const std::string& where, json::Value name_space);
  Result<void> ReadChoice(json::Value choice);
  Result<void> ReadAllowed(json::Value choice);
  // Whether tool_choice may name this tool: false for an omitted tool, an error for an unknown one.
  Result<bool> IsAvailable(json::Value name) const;
  void Write();

  std::vector<Function> functions_;
  Names names_;
  Names omitted_;
  bool omitted_any_ = false;
  Names allowed_;  // empty: all
  ResponsesTools read_;
};

Result<void> ResponsesToolsReader::ReadTool(json::Value tool, const std::string& where,
                                            json::Value name_space) {
  const json::Value type = tool.Find("type");
  if (!type.is_string()) return BadTool(where + " must be an object with a string 'type'.");
  if (type.StringEquals("namespace") && !name_space) {
    size_t index = 0;
    for (const json::Value inner : tool.Find("tools")) {
      const std::string at = where + ".tools[" + std::to_string(index++) + "]";
      TRY(ReadTool(inner, at, tool.Find("name")));
    }
    return {};
  }
  if (type.StringEquals("function")) {
    TRY(CheckFunction(tool, where));
    std::string name = tool.Find("name").string();
    // A model identifies functions by name only, so the first one with a name is used.
    if (names_.insert(name).second) {
      if (name_space.is_string()) read_.namespaces[name] = name_space.raw();
      functions_.push_back({std::move(name), tool});
      return {};
    }
  }
  omitted_any_ = true;
  if (tool.Find("name").is_string()) omitted_.insert(tool.Find("name").string());
  return {};
}

Result<bool> ResponsesToolsReader::IsAvailable(json::Value name) const {
  if (!name.is_string()) return BadToolChoice("'tool_choice' must name a function.");
  if (names_.contains(name.string())) return true;
  if (omitted_.contains(name.string())) return false;
  return BadToolChoice("'tool_choice' names a tool that is not in 'tools'.");
}

Result<void> ResponsesToolsReader::ReadAllowed(json::Value choice) {
  const json::Value mode = choice.Find("mode");
  if (!mode.StringEquals("auto") && !mode.StringEquals("required")) {
    return BadToolChoice("The mode of 'allowed_tools' must be 'auto' or 'required'.");
  }
  const json::Value tools = choice.Find("tools");
  if (!tools.is_array() || tools.size() == 0) {
    return BadToolChoice("'allowed_tools' must name at least one tool.");
  }
  for (const json::Value tool : tools) {
    if (!tool.Find("type").StringEquals("function")) continue;
    TRY(auto available, IsAvailable(tool.Find("name")));
    if (available) allowed_.insert(tool.Find("name").string());
  }
  read_.echoed_choice = choice.raw();
  if (allowed_.empty()) {
    functions_.clear();  // none of the allowed tools is supported
  } else {
    read_.tool_choice = mode.raw();
  }
  return {};
}

Result<void> ResponsesToolsReader::ReadChoice(json::Value choice) {
  if (choice.is_null()) return {};
  if (choice.is_object()) {
    const json::Value type = choice.Find("type");
    if (!type.is_string()) return BadToolChoice("'tool_choice' must have a string 'type'.");
    if (type.StringEquals("allowed_tools")) return ReadAllowed(choice);
    if (!type.StringEquals("function")) return {};
    const json::Value name = choice.Find("name");
    TRY(auto available, IsAvailable(name));
    if (!available) return {};
    read_.tool_choice =
        R"({"type":"function","function":{"name":)" + std::string(name.raw()) + "}}";
    read_.echoed_choice = choice.raw();
    return {};
  }
  const bool required = choice.StringEquals("required");
  if (!required && !choice.StringEquals("none") && !choice.StringEquals("auto")) {
    return BadToolChoice("'tool_choice' must be 'none', 'auto', 'required' or an object.");
  }
  if (required && functions_.empty()) {
    if (omitted_any_) return {};
    return BadToolChoice("'tool_choice' needs 'tools'.");
  }
  read_.echoed_choice = choice.raw();
  if (!functions_.empty()) read_.tool_choice = choice.raw();
  return {};
}

void ResponsesToolsReader::Write() {
  std::string& echo = read_.echoed_tools;
  for (const Function& function : functions_) {
    const bool is_sent = allowed_.empty() || allowed_.contains(function.name);
    std::string nested;
    echo += echo.empty() ? "[" : ",";
    echo += R"({"type":"function")";
    for (const char* member : {"name", "description", "parameters", "strict"}) {
      const json::Value value = function.tool.Find(member);
      const std::string written =
          "\"" + std::string(member) + "\":" + std::string(value ? value.raw() : "null");
      echo += "," + written;
      if (!value.is_null()) nested += (nested.empty() ? "" : ",") + written;
    }
    echo += "}";
    if (!is_sent) continue;
    read_.tools += read_.tools.empty() ? "[" : ",";
    read_.tools += R"({"type":"function","function":{)" + nested + "}}";
  }
  echo += echo.empty() ? "[]" : "]";
  if (!read_.tools.empty()) read_.tools += "]";
}

Result<ResponsesTools> ResponsesToolsReader::Read(json::Value tools, json::Value choice) {
  TRY(CheckToolList(tools));
  size_t index = 0;
  for (const json::Value tool : tools) {
    const std::string where = "tools[" + std::to_string(index++) + "]";
    TRY(ReadTool(tool, where, {}));
  }
  if (functions_.size() > kMaxTools) {
    return BadTool("'tools' may hold at most " + std::to_string(kMaxTools) + " functions.");
  }
  read_.echoed_choice = R"("auto")";
  TRY(ReadChoice(choice));
  Write();
  return std::move(read_);
}

}  // namespace

Result<ResponsesTools> ReadResponsesTools(json::Value tools, json::Value tool_choice) {
  return ResponsesToolsReader().Read(tools, tool_choice);
}

}  // namespace tollgate::gateway
