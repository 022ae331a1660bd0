// Conversations and tools, exactly as the engine gets them. spec: wire.md 6.1, 7.1, decisions.md
// 28, 33.
#include <gtest/gtest.h>

#include "gateway/surfaces/messages/tools.h"
#include "gateway/surfaces/messages/turns.h"

namespace tollgate::gateway {
namespace {

// {"system":…,"messages":…}
Result<ReadTurns> Read(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ReadMessagesTurns(document->root().Find("system"), document->root().Find("messages"));
}

struct Row {
  const char* what;
  const char* body;      // without the braces
  const char* expected;  // the engine's messages, without the brackets
};
class MessagesTurns : public ::testing::TestWithParam<Row> {};
TEST_P(MessagesTurns, BecomeTheEnginesMessages) {
  const auto read = Read("{" + std::string(GetParam().body) + "}");
  ASSERT_TRUE(read.ok()) << GetParam().what << ": " << read.error().ToString();
  EXPECT_EQ(read->messages, "[" + std::string(GetParam().expected) + "]") << GetParam().what;
  EXPECT_TRUE(json::Document::ParseView(read->messages).ok());
}
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesTurns,
    ::testing::
        Values(
            Row{"texts as they came, escapes and all",
                R"("messages":[{"role":"user","content":"a\u00e9\n\"é"}])",
                R"({"role":"user","content":"a\u00e9\n\"é"})"},
            Row{"a single block is a plain string",
                R"("messages":[{"role":"user","content":[{"type":"text","text":"a"}]}])",
                R"({"role":"user","content":"a"})"},
            Row{"several blocks stay parts",
                R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])",
                R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})"},
            Row{"system text", R"("system":"s","messages":[{"role":"user","content":"a"}])",
                R"({"role":"system","content":"s"},{"role":"user","content":"a"})"},
            Row{"system blocks are joined by a blank line",
                R"("system":[{"type":"text","text":"s"},{"type":"text","text":""},{"type":"text","text":"t","citations":null}],"messages":[{"role":"user","content":"a"}])",
                R"({"role":"system","content":"s\n\nt"},{"role":"user","content":"a"})"},
            Row{"an empty system says nothing",
                R"("system":"","messages":[{"role":"user","content":"a"}])",
                R"({"role":"user","content":"a"})"},
            Row{"a leading system turn joins the system",
                R"("system":"s","messages":[{"role":"system","content":"t"},{"role":"user","content":"a"}])",
                R"({"role":"system","content":"s\n\nt"},{"role":"user","content":"a"})"},
            Row{"a system turn inside stays at its place",
                R"("messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"t"}]},{"role":"user","content":"b"}])",
                R"({"role":"user","content":"a"},{"role":"system","content":"t"},{"role":"user","content":"b"})"},
            Row{"turns of one role in a row are one turn",
                R"("messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":[{"type":"text","text":"d"}]}])",
                R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":"cd"})"},
            Row{"images by value and by address",
                R"("messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"text","text":"?"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}])",
                R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"?"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]})"},
            Row{"documents of text and search results are text",
                R"("messages":[{"role":"user","content":[{"type":"document","title":"T","context":null,"source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"search_result","source":"https://s","title":"R","content":[{"type":"text","text":"r"}]}]}])",
                R"({"role":"user","content":[{"type":"text","text":"T"},{"type":"text","text":"d"},{"type":"text","text":"R"},{"type":"text","text":"https://s"},{"type":"text","text":"r"}]})"},
            Row{"thinking goes back under both names, signature and redacted blocks do not",
                R"("messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"any"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]}])",
                R"({"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"hm"})"},
            Row{"a round trip of tools",
                R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t1","name":"f","input":{"n": 12345678901234567890, "s":"\"é"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"four"}]}])",
                R"({"role":"user","content":"q"},{"role":"assistant","content":"let me see","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"n\": 12345678901234567890, \"s\":\"\\\"é\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"four"})"},
            Row{"parallel calls, results in another order and after text, then what the user says", R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g"}]},{"role":"user","content":[{"type":"text","text":"before"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"tool_result","tool_use_id":"t1"},{"type":"text","text":"after"}]}])", R"({"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t2","content":"a\nb"},{"role":"tool","tool_call_id":"t1","content":""},{"role":"user","content":[{"type":"text","text":"before"},{"type":"text","text":"after"}]})"},
            Row{"results spread over turns come before what these turns say",
                R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"},{"type":"text","text":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"}]},{"role":"user","content":"y"}])",
                R"({"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"1"},{"role":"tool","tool_call_id":"t2","content":"2"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]})"},
            Row{"failed calls are marked in the text",
                R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no such file"},{"type":"tool_result","tool_use_id":"t","is_error":true},{"type":"tool_result","tool_use_id":"t","is_error":false,"content":"ok"}]}])", R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"Error: no such file"},{"role":"tool","tool_call_id":"t","content":"Error"},{"role":"tool","tool_call_id":"t","content":"ok"})"},
            Row{"a picture in a result is shown by the user",
                R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"see"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"shot"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]}])",
                R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"shot"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"see"}]})"},
            Row{"references to the caller's tools are their names",
                R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"search","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"f"},{"type":"tool_reference","tool_name":"g"}]}]}])",
                R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"search","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"f\ng"})"},
            Row{"what the vendor's servers did is left out",
                R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"mcp_tool_use","id":"m"},{"type":"mcp_tool_result","tool_use_id":"m"},{"type":"mcp_tool_listing","mcp_server_name":"n","tools":[]},{"type":"fallback","from":{},"to":{}},{"type":"text","text":"a","citations":[{}]}]},{"role":"user","content":[{"type":"text","text":"b"}]}])",
                R"({"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"b"})"},
            Row{"an empty turn is none",
                R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[]}])",
                R"({"role":"user","content":"q"})"}),
    [](const auto& info) { return std::to_string(info.index); });

struct Wrong {
  const char* body;
  const char* message;  // of the error, or its beginning
};
class MessagesTurnsRefused : public ::testing::TestWithParam<Wrong> {};
TEST_P(MessagesTurnsRefused, NameThePlace) {
  const auto read = Read("{" + std::string(GetParam().body) + "}");
  ASSERT_FALSE(read.ok()) << GetParam().body;
  EXPECT_EQ(read.error().id, ErrorId::kBadRequest);
  EXPECT_EQ(read.error().message.rfind(GetParam().message, 0), 0u) << read.error().message;
  const std::string param =
      std::string(GetParam().body).find("\"system\":") == 0 ? "system" : "messages";
  EXPECT_EQ(read.error().param, param);
}
// A user turn with this block.
#define USER(block) R"("messages":[{"role":"user","content":[)" block "]}]"
#define ASSISTANT(block) R"("messages":[{"role":"assistant","content":[)" block "]}]"
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesTurnsRefused,
    ::testing::Values(
        Wrong{R"("messages":[])", "'messages' must be a non-empty array."},
        Wrong{R"("messages":{})", "'messages' must be a non-empty array."},
        Wrong{R"("messages":["hi"])", "messages[0] must be an object."},
        Wrong{R"("messages":[{"role":"user","content":"a"},{"role":"tool","content":"b"}])",
              "messages[1].role must be user, assistant or system."},
        Wrong{R"("messages":[{"content":"a"}])", "messages[0].role must be"},
        Wrong{R"("messages":[{"role":"user"}])", "messages[0].content must be"},
        Wrong{R"("messages":[{"role":"user","content":null}])", "messages[0].content must be"},
        Wrong{R"("messages":[{"role":"user","content":{}}])", "messages[0].content must be"},
        Wrong{R"("messages":[{"role":"user","content":[]}])", "'messages' says nothing."},
        Wrong{R"("messages":[{"role":"user","content":[]}],"system":"s")",
              "'messages' says nothing."},
        Wrong{USER(R"("a")"), "messages[0].content[0] must be an object with a string 'type'."},
        Wrong{USER(R"({"text":"a"})"), "messages[0].content[0] must be an object with"},
        Wrong{USER(R"({"type":"text"})"), "messages[0].content[0].text must be a string."},
        Wrong{USER(R"({"type":"text","text":"a"},{"type":"audio"})"),
              "messages[0].content[1].type 'audio' is not supported here."},
        Wrong{USER(R"({"type":"thinking","thinking":"x"})"),
              "messages[0].content[0].type 'thinking'"},
        Wrong{USER(R"({"type":"tool_use","id":"a","name":"f","input":{}})"),
              "messages[0].content[0].type 'tool_use'"},
        Wrong{USER(R"({"type":"image"})"), "messages[0].content[0].source must be"},
        Wrong{USER(R"({"type":"image","source":{"type":"file","file_id":"f"}})"),
              "messages[0].content[0].source must be"},
        Wrong{
            USER(
                R"({"type":"image","source":{"type":"base64","media_type":"text/html","data":"x"}})"),
            "messages[0].content[0].source.media_type"},
        Wrong{USER(R"({"type":"image","source":{"type":"base64","media_type":"image/png"}})"),
              "messages[0].content[0].source.data"},
        Wrong{USER(R"({"type":"image","source":{"type":"url","url":"file:///etc/passwd"}})"),
              "messages[0].content[0].source.url"},
        Wrong{
            USER(
                R"({"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}})"),
            "messages[0].content[0].source must be of type 'text'"},
        Wrong{USER(R"({"type":"document","source":{"type":"url","url":"https://x"}})"),
              "messages[0].content[0].source must be of type 'text'"},
        Wrong{USER(R"({"type":"search_result","source":"s","content":[]})"),
              "messages[0].content[0] must have a string 'title'."},
        Wrong{USER(R"({"type":"tool_reference"})"), "messages[0].content[0].tool_name must be"},
        Wrong{USER(R"({"type":"tool_result"})"), "messages[0].content[0].tool_use_id must be"},
        Wrong{USER(R"({"type":"tool_result","tool_use_id":"t"})"),
              "messages[0].content[0].tool_use_id 't' is that of no tool_use before it."},
        // A call that comes only later is not before it.
        Wrong{
            R"("messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}])",
            "messages[0].content[0].tool_use_id 't' is that of no tool_use before it."},
        Wrong{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":5}]}])",
            "messages[1].content[0].content must be"},
        Wrong{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":["x"]}]}])",
            "messages[1].content[0].type '' is not supported here."},
        Wrong{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":"x"}]}])",
            "messages[1].content[0].is_error must be"},
        Wrong{ASSISTANT(R"({"type":"tool_use","name":"f","input":{}})"),
              "messages[0].content[0].id"},
        Wrong{ASSISTANT(R"({"type":"tool_use","id":"t","input":{}})"),
              "messages[0].content[0].name"},
        Wrong{ASSISTANT(R"({"type":"tool_use","id":"t","name":"f","input":"{}"})"),
              "messages[0].content[0].input must be an object."},
        Wrong{ASSISTANT(R"({"type":"thinking"})"), "messages[0].content[0].thinking"},
        Wrong{ASSISTANT(R"({"type":"image","source":{"type":"url","url":"https://x"}})"),
              "messages[0].content[0].type 'image' is not supported in an assistant turn."},
        Wrong{R"("messages":[{"role":"system","content":[{"type":"image"}]}])",
              "messages[0].content[0] must be a text block."},
        Wrong{R"("system":5,"messages":[{"role":"user","content":"a"}])",
              "system must be a string or an array of text blocks."},
        Wrong{
            R"("system":[{"type":"text","text":"a"},{"type":"image"}],"messages":[{"role":"user","content":"a"}])",
            "system[1] must be a text block."}),
    [](const auto& info) { return std::to_string(info.index); });

TEST(MessagesTurns, ImagesCountAsMediaForTheCapabilityCheck) {
  const auto read = Read(
      R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}},
      {"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}]})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->size.media_parts, 2);
}

Result<MessagesTools> Tools(const std::string& tools, const std::string& choice) {
  const std::string body = R"({"tools":)" + tools + R"(,"tool_choice":)" + choice + "}";
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ReadMessagesTools(document->root().Find("tools"), document->root().Find("tool_choice"));
}

struct ToolsRow {
  const char* tools;
  const char* choice;
  const char* expected;  // tools and choice for the engine, or the param of the refusal
};
class MessagesToolsTest : public ::testing::TestWithParam<ToolsRow> {};
TEST_P(MessagesToolsTest, AreWhatTheEngineKnowsOrRefused) {
  const auto read = Tools(GetParam().tools, GetParam().choice);
  const std::string got =
      read.ok() ? read->tools + " " + read->tool_choice + (read->one_at_a_time ? " one" : "")
                : read.error().param;
  EXPECT_EQ(got, GetParam().expected) << GetParam().tools << " " << GetParam().choice
                                      << (read.ok() ? "" : ": " + read.error().message);
}
#define F R"([{"name":"f","input_schema":{}}])"
#define ENGINE_F R"([{"type":"function","function":{"name":"f","parameters":{}}}])"
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesToolsTest,
    ::testing::Values(
        ToolsRow{"null", "null", " "}, ToolsRow{"[]", "null", " "},
        ToolsRow{F, "null", ENGINE_F " "},
        ToolsRow{
            R"([{"type":"custom","name":"f","description":"d\n","input_schema":{"b":1, "a":2e0},"strict":true,"eager_input_streaming":true}])",
            "null",
            R"([{"type":"function","function":{"name":"f","description":"d\n","parameters":{"b":1, "a":2e0},"strict":true}}] )"},
        ToolsRow{R"([{"type":null,"name":"f","description":null,"input_schema":{},"strict":null}])",
                 "null", ENGINE_F " "},
        // Hosted by the vendor: left out, and a choice of one with it (decisions.md 33).
        ToolsRow{R"([{"type":"web_search_20250305","name":"web_search","max_uses":5}])", "null",
                 " "},
        ToolsRow{
            R"([{"type":"code_execution_20250825","name":"code_execution"},{"name":"f","input_schema":{}},{"type":"mcp_toolset","mcp_server_name":"x"}])",
            "null", ENGINE_F " "},
        ToolsRow{R"([{"type":"web_search_20250305","name":"web_search"}])",
                 R"({"type":"tool","name":"web_search"})", " "},
        ToolsRow{R"([{"type":"web_search_20250305","name":"web_search"}])", R"({"type":"any"})",
                 " "},
        ToolsRow{
            R"([{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{}}])",
            R"({"type":"tool","name":"web_search"})", ENGINE_F " "},
        // Run by the caller, who cannot be told what to do: refused.
        ToolsRow{R"([{"type":"bash_20250124","name":"bash"}])", "null", "tools"},
        ToolsRow{R"([{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}])",
                 "null", "tools"},
        ToolsRow{R"([{"type":"computer_20250124","name":"computer","display_width_px":1}])", "null",
                 "tools"},
        ToolsRow{R"([{"type":"memory_20250818","name":"memory"}])", "null", "tools"},
        ToolsRow{R"([{"type":"browser_toolset_20260801"}])", "null", "tools"},
        // Malformed.
        ToolsRow{"{}", "null", "tools"}, ToolsRow{"[5]", "null", "tools"},
        ToolsRow{R"([{"name":"f"}])", "null", "tools"},
        ToolsRow{R"([{"type":"custom","name":"f"}])", "null", "tools"},
        ToolsRow{R"([{"type":"function","function":{"name":"f"}}])", "null", "tools"},
        ToolsRow{R"([{"type":5,"name":"f","input_schema":{}}])", "null", "tools"},
        ToolsRow{R"([{"name":"f","input_schema":[]}])", "null", "tools"},
        ToolsRow{R"([{"name":"","input_schema":{}}])", "null", "tools"},
        ToolsRow{R"([{"input_schema":{}}])", "null", "tools"},
        ToolsRow{R"([{"name":"f","description":5,"input_schema":{}}])", "null", "tools"},
        ToolsRow{R"([{"name":"f","strict":"yes","input_schema":{}}])", "null", "tools"},
        // The choice.
        ToolsRow{F, R"({"type":"auto"})", ENGINE_F R"( "auto")"},
        ToolsRow{F, R"({"type":"any"})", ENGINE_F R"( "required")"},
        ToolsRow{F, R"({"type":"none"})", ENGINE_F R"( "none")"},
        ToolsRow{F, R"({"type":"tool","name":"f"})",
                 ENGINE_F R"( {"type":"function","function":{"name":"f"}})"},
        ToolsRow{F, R"({"type":"auto","disable_parallel_tool_use":true})",
                 ENGINE_F R"( "auto" one)"},
        ToolsRow{F, R"({"type":"auto","disable_parallel_tool_use":false})", ENGINE_F R"( "auto")"},
        ToolsRow{"null", R"({"type":"auto"})", " "}, ToolsRow{"[]", R"({"type":"none"})", " "},
        ToolsRow{"null", R"({"type":"any"})", "tool_choice"},
        ToolsRow{"null", R"({"type":"tool","name":"f"})", "tool_choice"},
        ToolsRow{F, R"({"type":"tool","name":"g"})", "tool_choice"},
        ToolsRow{F, R"({"type":"tool"})", "tool_choice"},
        ToolsRow{F, R"({"type":"required"})", "tool_choice"}, ToolsRow{F, "{}", "tool_choice"},
        ToolsRow{F, R"({"type":"auto","disable_parallel_tool_use":1})", "tool_choice"}),
    [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace tollgate::gateway
