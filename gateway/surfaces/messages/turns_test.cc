// Conversations exactly as the engine gets them. See docs/design/wire.md 6.1, 7.1, decisions 28,
// 33.
#include "gateway/surfaces/messages/turns.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

// {"system":…,"messages":…}
Result<MessagesTurns> Read(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ReadMessagesTurns(document->root().Find("system"), document->root().Find("messages"));
}

struct Row {
  const char* what;
  const char* body;      // without the braces
  const char* expected;  // the engine's messages, without the brackets
};
class MessagesTurnsTest : public ::testing::TestWithParam<Row> {};
TEST_P(MessagesTurnsTest, BecomeEngineMessages) {
  const auto read = Read("{" + std::string(GetParam().body) + "}");
  ASSERT_TRUE(read.ok()) << GetParam().what << ": " << read.error().ToString();
  EXPECT_EQ(read->messages, "[" + std::string(GetParam().expected) + "]") << GetParam().what;
  EXPECT_TRUE(json::Document::ParseView(read->messages).ok());
}
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesTurnsTest,
    ::testing::
        Values(Row{"texts keep their escapes",
                   R"("messages":[{"role":"user","content":"a\u00e9\n\"é"}])",
                   R"({"role":"user","content":"a\u00e9\n\"é"})"},
               Row{"a single text block becomes a string",
                   R"("messages":[{"role":"user","content":[{"type":"text","text":"a"}]}])",
                   R"({"role":"user","content":"a"})"},
               Row{"several text blocks stay parts",
                   R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])",
                   R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})"},
               Row{"system text", R"("system":"s","messages":[{"role":"user","content":"a"}])",
                   R"({"role":"system","content":"s"},{"role":"user","content":"a"})"},
               Row{"system blocks are joined by a blank line",
                   R"("system":[{"type":"text","text":"s"},{"type":"text","text":""},{"type":"text","text":"t","citations":null}],"messages":[{"role":"user","content":"a"}])",
                   R"({"role":"system","content":"s\n\nt"},{"role":"user","content":"a"})"},
               Row{"an empty system prompt is omitted",
                   R"("system":"","messages":[{"role":"user","content":"a"}])",
                   R"({"role":"user","content":"a"})"},
               Row{"a leading system turn joins the system prompt",
                   R"("system":"s","messages":[{"role":"system","content":"t"},{"role":"user","content":"a"}])",
                   R"({"role":"system","content":"s\n\nt"},{"role":"user","content":"a"})"},
               Row{"a later system turn is folded, and user turns in a row are one",
                   R"("messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"text","text":"t"}]},{"role":"user","content":"b"}])",
                   R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"t"},{"type":"text","text":"b"}]})"},
               Row{"a system turn behind the first user turn joins it",
                   R"("system":"s","messages":[{"role":"user","content":"a"},{"role":"system","content":"t"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])",
                   R"({"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"t"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"})"},
               Row{"a system turn before tool results goes behind them",
                   R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]},{"role":"system","content":"t"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"r"}]}])",
                   R"({"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"i","content":"r"},{"role":"user","content":"t"})"},
               Row{"consecutive turns of one role are joined",
                   R"("messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":[{"type":"text","text":"d"}]}])",
                   R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":"cd"})"},
               Row{"images as data and as URL",
                   R"("messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"text","text":"?"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}])",
                   R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"?"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]})"},
               Row{"text documents and search results become text",
                   R"("messages":[{"role":"user","content":[{"type":"document","title":"T","context":null,"source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"search_result","source":"https://s","title":"R","content":[{"type":"text","text":"r"}]}]}])",
                   R"({"role":"user","content":[{"type":"text","text":"T"},{"type":"text","text":"d"},{"type":"text","text":"R"},{"type":"text","text":"https://s"},{"type":"text","text":"r"}]})"},
               Row{"thinking is sent under both names; signatures and redacted "
                   "blocks are omitted",
                   R"("messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"any"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]}])",
                   R"({"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"hm"})"},
               Row{"a round trip of tools",
                   R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t1","name":"f","input":{"n": 12345678901234567890, "s":"\"é"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"four"}]}])", R"({"role":"user","content":"q"},{"role":"assistant","content":"let me see","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"n\": 12345678901234567890, \"s\":\"\\\"é\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"four"})"},
               Row{"parallel calls; results in another order and after text come first",
                   R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g"}]},{"role":"user","content":[{"type":"text","text":"before"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"tool_result","tool_use_id":"t1"},{"type":"text","text":"after"}]}])",
                   R"({"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t2","content":"a\nb"},{"role":"tool","tool_call_id":"t1","content":""},{"role":"user","content":[{"type":"text","text":"before"},{"type":"text","text":"after"}]})"},
               Row{"results spread over turns come before the other content of these turns",
                   R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"},{"type":"text","text":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"}]},{"role":"user","content":"y"}])", R"({"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"1"},{"role":"tool","tool_call_id":"t2","content":"2"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]})"},
               Row{"failed calls are marked in the text",
                   R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no such file"},{"type":"tool_result","tool_use_id":"t","is_error":true},{"type":"tool_result","tool_use_id":"t","is_error":false,"content":"ok"}]}])",
                   R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"Error: no such file"},{"role":"tool","tool_call_id":"t","content":"Error"},{"role":"tool","tool_call_id":"t","content":"ok"})"},
               Row{"an image in a result moves to the user message", R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"see"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"shot"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]}])", R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"shot"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"see"}]})"}, Row{"references to client tools become their names", R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"search","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"f"},{"type":"tool_reference","tool_name":"g"}]}]}])", R"({"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"search","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"f\ng"})"}, Row{"blocks of the vendor's servers are omitted", R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"mcp_tool_use","id":"m"},{"type":"mcp_tool_result","tool_use_id":"m"},{"type":"mcp_tool_listing","mcp_server_name":"n","tools":[]},{"type":"fallback","from":{},"to":{}},{"type":"text","text":"a","citations":[{}]}]},{"role":"user","content":[{"type":"text","text":"b"}]}])", R"({"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"b"})"},
               Row{"an empty turn is omitted",
                   R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":[]}])",
                   R"({"role":"user","content":"q"})"}),
    [](const auto& info) { return std::to_string(info.index); });

struct InvalidCase {
  const char* body;
  const char* message;  // the error's, or its beginning
};
class MessagesTurnsErrors : public ::testing::TestWithParam<InvalidCase> {};
TEST_P(MessagesTurnsErrors, NameTheBlock) {
  const auto read = Read("{" + std::string(GetParam().body) + "}");
  ASSERT_FALSE(read.ok()) << GetParam().body;
  EXPECT_EQ(read.error().id, ErrorId::kBadRequest);
  EXPECT_EQ(read.error().message.rfind(GetParam().message, 0), 0u) << read.error().message;
  const std::string param =
      std::string(GetParam().body).find("\"system\":") == 0 ? "system" : "messages";
  EXPECT_EQ(read.error().param, param);
}
// A turn with this block.
#define USER(block) R"("messages":[{"role":"user","content":[)" block "]}]"
#define ASSISTANT(block) R"("messages":[{"role":"assistant","content":[)" block "]}]"
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesTurnsErrors,
    ::testing::Values(
        InvalidCase{R"("messages":[])", "'messages' must be a non-empty array."},
        InvalidCase{R"("messages":{})", "'messages' must be a non-empty array."},
        InvalidCase{R"("messages":["hi"])", "messages[0] must be an object."},
        InvalidCase{R"("messages":[{"role":"user","content":"a"},{"role":"tool","content":"b"}])",
                    "messages[1].role must be user, assistant or system."},
        InvalidCase{R"("messages":[{"content":"a"}])", "messages[0].role must be"},
        InvalidCase{R"("messages":[{"role":"user"}])", "messages[0].content must be"},
        InvalidCase{R"("messages":[{"role":"user","content":null}])",
                    "messages[0].content must be"},
        InvalidCase{R"("messages":[{"role":"user","content":{}}])", "messages[0].content must be"},
        InvalidCase{R"("messages":[{"role":"user","content":[]}])", "'messages' has no content."},
        InvalidCase{R"("messages":[{"role":"user","content":[]}],"system":"s")",
                    "'messages' has no content."},
        InvalidCase{USER(R"("a")"),
                    "messages[0].content[0] must be an object with a string 'type'."},
        InvalidCase{USER(R"({"text":"a"})"), "messages[0].content[0] must be an object with"},
        InvalidCase{USER(R"({"type":"text"})"), "messages[0].content[0].text must be a string."},
        InvalidCase{USER(R"({"type":"text","text":"a"},{"type":"audio"})"),
                    "messages[0].content[1].type 'audio' is not supported here."},
        InvalidCase{USER(R"({"type":"thinking","thinking":"x"})"),
                    "messages[0].content[0].type 'thinking'"},
        InvalidCase{USER(R"({"type":"tool_use","id":"a","name":"f","input":{}})"),
                    "messages[0].content[0].type 'tool_use'"},
        InvalidCase{USER(R"({"type":"image"})"), "messages[0].content[0].source must be"},
        InvalidCase{USER(R"({"type":"image","source":{"type":"file","file_id":"f"}})"),
                    "messages[0].content[0].source must be"},
        InvalidCase{
            USER(
                R"({"type":"image","source":{"type":"base64","media_type":"text/html","data":"x"}})"),
            "messages[0].content[0].source.media_type"},
        InvalidCase{USER(R"({"type":"image","source":{"type":"base64","media_type":"image/png"}})"),
                    "messages[0].content[0].source.data"},
        InvalidCase{USER(R"({"type":"image","source":{"type":"url","url":"file:///etc/passwd"}})"),
                    "messages[0].content[0].source.url must be an https: or data: URL."},
        InvalidCase{USER(R"({"type":"image","source":{"type":"url","url":"http://x/y.png"}})"),
                    "messages[0].content[0].source.url must be an https: or data: URL."},
        InvalidCase{
            USER(
                R"({"type":"image","source":{"type":"base64","media_type":"image/p ng","data":"x"}})"),
            "messages[0].content[0].source.media_type"},
        InvalidCase{
            USER(
                R"({"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}})"),
            "messages[0].content[0].source must be of type 'text'"},
        InvalidCase{USER(R"({"type":"document","source":{"type":"url","url":"https://x"}})"),
                    "messages[0].content[0].source must be of type 'text'"},
        InvalidCase{USER(R"({"type":"search_result","source":"s","content":[]})"),
                    "messages[0].content[0] must have a string 'title'."},
        InvalidCase{USER(R"({"type":"tool_reference"})"),
                    "messages[0].content[0].tool_name must be"},
        InvalidCase{USER(R"({"type":"tool_result"})"),
                    "messages[0].content[0].tool_use_id must be"},
        InvalidCase{USER(R"({"type":"tool_result","tool_use_id":"t"})"),
                    "messages[0].content[0].tool_use_id 't' does not match an earlier tool_use."},
        // The call comes after its result.
        InvalidCase{
            R"("messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}])",
            "messages[0].content[0].tool_use_id 't' does not match an earlier tool_use."},
        InvalidCase{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":5}]}])",
            "messages[1].content[0].content must be"},
        InvalidCase{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":["x"]}]}])",
            "messages[1].content[0].type '' is not supported here."},
        InvalidCase{
            R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":"x"}]}])",
            "messages[1].content[0].is_error must be"},
        InvalidCase{ASSISTANT(R"({"type":"tool_use","name":"f","input":{}})"),
                    "messages[0].content[0].id"},
        InvalidCase{ASSISTANT(R"({"type":"tool_use","id":"t","input":{}})"),
                    "messages[0].content[0].name"},
        InvalidCase{ASSISTANT(R"({"type":"tool_use","id":"t","name":"f","input":"{}"})"),
                    "messages[0].content[0].input must be an object."},
        InvalidCase{ASSISTANT(R"({"type":"thinking"})"), "messages[0].content[0].thinking"},
        InvalidCase{ASSISTANT(R"({"type":"image","source":{"type":"url","url":"https://x"}})"),
                    "messages[0].content[0].type 'image' is not supported in an assistant turn."},
        InvalidCase{R"("messages":[{"role":"system","content":[{"type":"image"}]}])",
                    "messages[0].content[0] must be a text block."},
        InvalidCase{R"("system":5,"messages":[{"role":"user","content":"a"}])",
                    "system must be a string or an array of text blocks."},
        InvalidCase{
            R"("system":[{"type":"text","text":"a"},{"type":"image"}],"messages":[{"role":"user","content":"a"}])",
            "system[1] must be a text block."}),
    [](const auto& info) { return std::to_string(info.index); });

TEST(MessagesTurnsSize, ImagesCountAsMedia) {
  const auto read = Read(
      R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}},
      {"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}]})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->size.media_parts, 2);
}

TEST(MessagesTurns, AModelMayTakeSystemTurnsAnywhere) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"a"},{"role":"system","content":"t"},{"role":"user","content":"b"}]})";
  const auto document = json::Document::ParseView(body);
  const auto read = ReadMessagesTurns({}, document->root().Find("messages"), true);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(
      read->messages,
      R"([{"role":"user","content":"a"},{"role":"system","content":"t"},{"role":"user","content":"b"}])");
}

}  // namespace
}  // namespace tollgate::gateway
