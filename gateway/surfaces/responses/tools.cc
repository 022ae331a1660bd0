#include "gateway/surfaces/responses/tools.h"

#include <unordered_set>
#include <vector>

#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace {

Fail<Error> WrongTool(std::string message) { return BadRequest(std::move(message), "tools"); }
Fail<Error> WrongChoice(std::string message) {
  return BadRequest(std::move(message), "tool_choice");
}

using Names = std::unordered_set<std::string>;

class Reader {
 public:
  Result<ReadResponsesTools> Read(json::Value tools, json::Value choice);

 private:
  struct Function {
    std::string name;
    json::Value tool;
  };

  Result<void> ReadTool(json::Value tool, const std::string& where, json::Value name_space);
  Result<void> ReadChoice(json::Value choice);
  Result<void> ReadAllowed(json::Value choice);
  // Whether the choice may name this tool: false for one that was left out.
  Result<bool> Offered(json::Value name) const;
  void Write();

  std::vector<Function> functions_;
  Names names_;
  Names left_out_;
  bool left_any_out_ = false;
  Names wanted_;  // empty: all
  ReadResponsesTools read_;
};

Result<void> Reader::ReadTool(json::Value tool, const std::string& where, json::Value name_space) {
  const json::Value type = tool.Find("type");
  if (!type.is_string()) return WrongTool(where + " must be an object with a string 'type'.");
  if (type.StringEquals("namespace") && !name_space) {
    size_t index = 0;
    for (const json::Value inner : tool.Find("tools")) {
      const std::string at = where + ".tools[" + std::to_string(index++) + "]";
      if (auto read = ReadTool(inner, at, tool.Find("name")); !read) return read;
    }
    return {};
  }
  if (type.StringEquals("function")) {
    if (auto checked = CheckFunction(tool, where); !checked) return checked;
    std::string name = tool.Find("name").string();
    // A model tells functions by nothing but their name: the first one has it.
    if (names_.insert(name).second) {
      if (name_space.is_string()) read_.namespaces[name] = name_space.raw();
      functions_.push_back({std::move(name), tool});
      return {};
    }
  }
  left_any_out_ = true;
  if (tool.Find("name").is_string()) left_out_.insert(tool.Find("name").string());
  return {};
}

Result<bool> Reader::Offered(json::Value name) const {
  if (!name.is_string()) return WrongChoice("'tool_choice' must name a function.");
  if (names_.contains(name.string())) return true;
  if (left_out_.contains(name.string())) return false;
  return WrongChoice("'tool_choice' names a tool that is not in 'tools'.");
}

Result<void> Reader::ReadAllowed(json::Value choice) {
  const json::Value mode = choice.Find("mode");
  if (!mode.StringEquals("auto") && !mode.StringEquals("required")) {
    return WrongChoice("The mode of 'allowed_tools' must be 'auto' or 'required'.");
  }
  const json::Value tools = choice.Find("tools");
  if (!tools.is_array() || tools.size() == 0) {
    return WrongChoice("'allowed_tools' must name at least one tool.");
  }
  for (const json::Value tool : tools) {
    if (!tool.Find("type").StringEquals("function")) continue;
    auto offered = Offered(tool.Find("name"));
    if (!offered) return Fail{offered.error()};
    if (*offered) wanted_.insert(tool.Find("name").string());
  }
  read_.echoed_choice = choice.raw();
  if (wanted_.empty()) {
    functions_.clear();  // nothing of what is allowed can be called
  } else {
    read_.tool_choice = mode.raw();
  }
  return {};
}

Result<void> Reader::ReadChoice(json::Value choice) {
  if (choice.is_null()) return {};
  if (choice.is_object()) {
    const json::Value type = choice.Find("type");
    if (!type.is_string()) return WrongChoice("'tool_choice' must have a string 'type'.");
    if (type.StringEquals("allowed_tools")) return ReadAllowed(choice);
    if (!type.StringEquals("function")) return {};
    const json::Value name = choice.Find("name");
    auto offered = Offered(name);
    if (!offered) return Fail{offered.error()};
    if (!*offered) return {};
    read_.tool_choice =
        R"({"type":"function","function":{"name":)" + std::string(name.raw()) + "}}";
    read_.echoed_choice = choice.raw();
    return {};
  }
  const bool required = choice.StringEquals("required");
  if (!required && !choice.StringEquals("none") && !choice.StringEquals("auto")) {
    return WrongChoice("'tool_choice' must be 'none', 'auto', 'required' or an object.");
  }
  if (required && functions_.empty()) {
    if (left_any_out_) return {};
    return WrongChoice("'tool_choice' needs 'tools'.");
  }
  read_.echoed_choice = choice.raw();
  if (!functions_.empty()) read_.tool_choice = choice.raw();
  return {};
}

void Reader::Write() {
  std::string& echo = read_.echoed_tools;
  for (const Function& function : functions_) {
    const bool sent = wanted_.empty() || wanted_.contains(function.name);
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
    if (!sent) continue;
    read_.tools += read_.tools.empty() ? "[" : ",";
    read_.tools += R"({"type":"function","function":{)" + nested + "}}";
  }
  echo += echo.empty() ? "[]" : "]";
  if (!read_.tools.empty()) read_.tools += "]";
}

Result<ReadResponsesTools> Reader::Read(json::Value tools, json::Value choice) {
  if (auto list = CheckToolList(tools); !list) return Fail{list.error()};
  size_t index = 0;
  for (const json::Value tool : tools) {
    const std::string where = "tools[" + std::to_string(index++) + "]";
    if (auto read = ReadTool(tool, where, {}); !read) return Fail{read.error()};
  }
  if (functions_.size() > kMaxTools) {
    return WrongTool("'tools' may hold at most " + std::to_string(kMaxTools) + " functions.");
  }
  read_.echoed_choice = R"("auto")";
  if (auto read = ReadChoice(choice); !read) return Fail{read.error()};
  Write();
  return std::move(read_);
}

}  // namespace

Result<ReadResponsesTools> ReadResponsesToolsOf(json::Value tools, json::Value tool_choice) {
  return Reader().Read(tools, tool_choice);
}

}  // namespace tollgate::gateway
