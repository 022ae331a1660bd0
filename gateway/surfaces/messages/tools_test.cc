// See docs/design/wire.md 6.1, 7.1, decision 33.
#include "gateway/surfaces/messages/tools.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

Result<MessagesTools> Tools(const std::string& tools, const std::string& choice) {
  const std::string body = R"({"tools":)" + tools + R"(,"tool_choice":)" + choice + "}";
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ReadMessagesTools(document->root().Find("tools"), document->root().Find("tool_choice"));
}

struct Row {
  const char* tools;
  const char* choice;
  const char* expected;  // tools and choice for the engine, or the param of the refusal
};
class MessagesToolsTest : public ::testing::TestWithParam<Row> {};
TEST_P(MessagesToolsTest, AreTranslatedOrRefused) {
  const auto read = Tools(GetParam().tools, GetParam().choice);
  const std::string got = read.ok() ? read->tools + " " + read->tool_choice +
                                          (read->disable_parallel_calls ? " one" : "")
                                    : read.error().param;
  EXPECT_EQ(got, GetParam().expected) << GetParam().tools << " " << GetParam().choice
                                      << (read.ok() ? "" : ": " + read.error().message);
}
#define F R"([{"name":"f","input_schema":{}}])"
#define ENGINE_F R"([{"type":"function","function":{"name":"f","parameters":{}}}])"
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesToolsTest,
    ::testing::Values(
        Row{"null", "null", " "}, Row{"[]", "null", " "}, Row{F, "null", ENGINE_F " "},
        Row{R"([{"type":"custom","name":"f","description":"d\n","input_schema":{"b":1, "a":2e0},"strict":true,"eager_input_streaming":true}])",
            "null",
            R"([{"type":"function","function":{"name":"f","description":"d\n","parameters":{"b":1, "a":2e0},"strict":true}}] )"},
        Row{R"([{"type":null,"name":"f","description":null,"input_schema":{},"strict":null}])",
            "null", ENGINE_F " "},
        // Tools hosted by the vendor are omitted, and so is a tool_choice that names one (decision
        // 33).
        Row{R"([{"type":"web_search_20250305","name":"web_search","max_uses":5}])", "null", " "},
        Row{R"([{"type":"code_execution_20250825","name":"code_execution"},{"name":"f","input_schema":{}},{"type":"mcp_toolset","mcp_server_name":"x"}])",
            "null", ENGINE_F " "},
        Row{R"([{"type":"web_search_20250305","name":"web_search"}])",
            R"({"type":"tool","name":"web_search"})", " "},
        Row{R"([{"type":"web_search_20250305","name":"web_search"}])", R"({"type":"any"})", " "},
        Row{R"([{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{}}])",
            R"({"type":"tool","name":"web_search"})", ENGINE_F " "},
        // Vendor-defined tools that the client runs are refused.
        Row{R"([{"type":"bash_20250124","name":"bash"}])", "null", "tools"},
        Row{R"([{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}])", "null",
            "tools"},
        Row{R"([{"type":"computer_20250124","name":"computer","display_width_px":1}])", "null",
            "tools"},
        Row{R"([{"type":"memory_20250818","name":"memory"}])", "null", "tools"},
        Row{R"([{"type":"browser_toolset_20260801"}])", "null", "tools"},
        // Malformed.
        Row{"{}", "null", "tools"}, Row{"[5]", "null", "tools"},
        Row{R"([{"name":"f"}])", "null", "tools"},
        Row{R"([{"type":"custom","name":"f"}])", "null", "tools"},
        Row{R"([{"type":"function","function":{"name":"f"}}])", "null", "tools"},
        Row{R"([{"type":5,"name":"f","input_schema":{}}])", "null", "tools"},
        Row{R"([{"name":"f","input_schema":[]}])", "null", "tools"},
        Row{R"([{"name":"","input_schema":{}}])", "null", "tools"},
        Row{R"([{"input_schema":{}}])", "null", "tools"},
        Row{R"([{"name":"f","description":5,"input_schema":{}}])", "null", "tools"},
        Row{R"([{"name":"f","strict":"yes","input_schema":{}}])", "null", "tools"},
        // tool_choice.
        Row{F, R"({"type":"auto"})", ENGINE_F R"( "auto")"},
        Row{F, R"({"type":"any"})", ENGINE_F R"( "required")"},
        Row{F, R"({"type":"none"})", ENGINE_F R"( "none")"},
        Row{F, R"({"type":"tool","name":"f"})",
            ENGINE_F R"( {"type":"function","function":{"name":"f"}})"},
        Row{F, R"({"type":"auto","disable_parallel_tool_use":true})", ENGINE_F R"( "auto" one)"},
        Row{F, R"({"type":"auto","disable_parallel_tool_use":false})", ENGINE_F R"( "auto")"},
        Row{"null", R"({"type":"auto"})", " "}, Row{"[]", R"({"type":"none"})", " "},
        Row{"null", R"({"type":"any"})", "tool_choice"},
        Row{"null", R"({"type":"tool","name":"f"})", "tool_choice"},
        Row{F, R"({"type":"tool","name":"g"})", "tool_choice"},
        Row{F, R"({"type":"tool"})", "tool_choice"},
        Row{F, R"({"type":"required"})", "tool_choice"}, Row{F, "{}", "tool_choice"},
        Row{F, R"({"type":"auto","disable_parallel_tool_use":1})", "tool_choice"}),
    [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace tollgate::gateway
