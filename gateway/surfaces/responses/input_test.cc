// Input items and the resulting engine messages, byte for byte. See docs/design/wire.md 5.1, 7.3.
#include "gateway/surfaces/responses/input.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

constexpr int64_t kNow = 1'800'000'000;

std::shared_ptr<const ReasoningKeys> TestKeys() {
  static const auto keys =
      std::make_shared<const ReasoningKeys>(ReasoningKeys{{std::string(32, 'k')}});
  return keys;
}

const ReasoningSeal kSeal(TestKeys(), "acme", "ns/m");

Result<ResponsesInput> Read(const std::string& input, const std::string& instructions = "null") {
  const std::string text = R"({"input":)" + input + R"(,"instructions":)" + instructions + "}";
  const auto document = json::Document::ParseView(text);
  EXPECT_TRUE(document.ok()) << text;
  return ReadResponsesInput(document->root().Find("instructions"), document->root().Find("input"),
                            {.seal = &kSeal, .now_s = kNow});
}

std::string Messages(const std::string& input, const std::string& instructions = "null") {
  const auto read = Read(input, instructions);
  if (!read.ok()) return read.error().param + ": " + read.error().message;
  EXPECT_TRUE(json::Document::ParseView(read->messages).ok()) << read->messages;
  return read->messages;
}

std::string User(const std::string& text) { return R"({"role":"user","content":")" + text + "\"}"; }
std::string System(const std::string& text) {
  return R"({"role":"system","content":")" + text + "\"}";
}
std::string Assistant(const std::string& text) {
  return R"({"role":"assistant","content":")" + text + "\"}";
}
const std::string kAsk = R"({"role":"user","content":"ask"})";
std::string Call(const std::string& id, const std::string& arguments = "{}") {
  return R"({"type":"function_call","call_id":")" + id + R"(","name":"f","arguments":")" +
         arguments + "\"}";
}
std::string EngineCall(const std::string& id, const std::string& arguments = "{}") {
  return R"({"id":")" + id + R"(","type":"function","function":{"name":"f","arguments":")" +
         arguments + "\"}}";
}
std::string Output(const std::string& id, const std::string& output) {
  return R"({"type":"function_call_output","call_id":")" + id + R"(","output":)" + output + "}";
}
std::string ToolMessage(const std::string& id, const std::string& text) {
  return R"({"role":"tool","tool_call_id":")" + id + R"(","content":")" + text + "\"}";
}
std::string ReasoningItem(const std::string& text) {
  return R"({"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":")" + text +
         "\"}]}";
}

TEST(ResponsesInput, StringsAndInstructions) {
  EXPECT_EQ(Messages(R"("say \"hi\"\n")"), "[" + User(R"(say \"hi\"\n)") + "]");
  EXPECT_EQ(Messages("\"hi\"", "\"be kind\""), "[" + System("be kind") + "," + User("hi") + "]");
  EXPECT_EQ(Messages("\"hi\"", "[]"), "instructions: 'instructions' must be a string.");
}

TEST(ResponsesInput, MessagesOfEachRole) {
  EXPECT_EQ(Messages(R"([{"role":"user","content":"a"},
                         {"type":"message","role":"assistant","content":"b","id":"m","phase":"x"},
                         {"role":"user","content":"d"}])"),
            "[" + User("a") + "," + Assistant("b") + "," + User("d") + "]");
  // Two assistant messages stay separate.
  EXPECT_EQ(Messages("[" + Assistant("a") + "," + Assistant("b") + "]"),
            "[" + Assistant("a") + "," + Assistant("b") + "]");
}

TEST(ResponsesInput, LateSystemItemsAreFoldedUnlessTheModelTakesThem) {  // decision 39
  const std::string items = "[" + kAsk + R"(,{"role":"developer","content":"b"},)" +
                            Assistant("c") + R"(,{"role":"system","content":"d"},)" + User("e") +
                            "]";
  EXPECT_EQ(Messages(items), R"([{"role":"user","content":[{"type":"text","text":"ask"},)"
                             R"({"type":"text","text":"b"}]},)" +
                                 Assistant("c") +
                                 R"(,{"role":"user","content":[{"type":"text","text":"d"},)"
                                 R"({"type":"text","text":"e"}]}])");
  const auto document = json::Document::ParseView(items);
  const auto kept = ReadResponsesInput({}, document->root(), {.keeps_system_messages = true});
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->messages, "[" + kAsk + "," + System("b") + "," + Assistant("c") + "," +
                                System("d") + "," + User("e") + "]");
}

TEST(ResponsesInput, SystemTextsInARowBecomeOne) {
  EXPECT_EQ(Messages(R"([{"role":"developer","content":"b"},{"role":"system","content":"c"},)" +
                         kAsk + "]",
                     "\"a\""),
            "[" + System(R"(a\n\nb\n\nc)") + "," + kAsk + "]");
}

TEST(ResponsesInput, PartsOfEachKind) {
  EXPECT_EQ(Messages(R"([{"role":"user","content":[{"type":"input_text","text":"a"}]}])"),
            "[" + User("a") + "]");
  EXPECT_EQ(
      Messages(R"([{"role":"user","content":[{"type":"input_text","text":"a"},
                                                   {"type":"text","text":"b"}]}])"),
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(Messages(R"([{"role":"assistant","content":[
                {"type":"output_text","text":"a","annotations":[],"logprobs":[]},
                {"type":"refusal","refusal":"no"}]}])"),
            "[" + Assistant("ano") + "]");
}

TEST(ResponsesInput, ImagesCountAsMedia) {
  const auto read = Read(R"([{"role":"user","content":[{"type":"input_text","text":"a"},
      {"type":"input_image","image_url":"https://x/y.png","detail":"high"},
      {"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"auto"}]}])");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->messages,
            R"([{"role":"user","content":[{"type":"text","text":"a"},)"
            R"({"type":"image_url","image_url":{"url":"https://x/y.png","detail":"high"}},)"
            R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}])");
  EXPECT_EQ(read->size.media_parts, 2);
  EXPECT_EQ(read->size.messages, 1);
}

TEST(ResponsesInput, AnAssistantTurnIsOneMessage) {
  // Reasoning, message and calls in a row.
  EXPECT_EQ(Messages("[" + kAsk + "," + ReasoningItem("hm") + "," + Assistant("let me see") + "," +
                     Call("c1", R"({\"x\":1})") + "," + Call("c2") + "," + Output("c1", "\"1\"") +
                     "," + Output("c2", "\"2\"") + "]"),
            "[" + kAsk +
                R"(,{"role":"assistant","content":"let me see","reasoning_content":"hm",)"
                R"("reasoning":"hm","tool_calls":[)" +
                EngineCall("c1", R"({\"x\":1})") + "," + EngineCall("c2") + "]}," +
                ToolMessage("c1", "1") + "," + ToolMessage("c2", "2") + "]");
  // Reasoning between parallel calls.
  EXPECT_EQ(Messages("[" + ReasoningItem("a") + "," + Call("c1") + "," + ReasoningItem("b") + "," +
                     Call("c2") + "]"),
            R"([{"role":"assistant","content":null,"reasoning_content":"ab","reasoning":"ab",)"
            R"("tool_calls":[)" +
                EngineCall("c1") + "," + EngineCall("c2") + "]}]");
  // The next round is a new turn.
  EXPECT_EQ(Messages("[" + Call("c1") + "," + Output("c1", "\"1\"") + "," + Call("c2") + "," +
                     Output("c2", "\"2\"") + "," + Assistant("done") + "]"),
            R"([{"role":"assistant","content":null,"tool_calls":[)" + EngineCall("c1") + "]}," +
                ToolMessage("c1", "1") + R"(,{"role":"assistant","content":null,"tool_calls":[)" +
                EngineCall("c2") + "]}," + ToolMessage("c2", "2") + "," + Assistant("done") + "]");
}

TEST(ResponsesInput, ReasoningJoinsTheNextAssistantItem) {
  EXPECT_EQ(Messages("[" + ReasoningItem("hm") + "," + Assistant("b") + "]"),
            R"([{"role":"assistant","content":"b","reasoning_content":"hm","reasoning":"hm"}])");
  // The text takes precedence over its summary.
  EXPECT_EQ(Messages(R"([{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],
                          "content":[{"type":"reasoning_text","text":"t"},
                                     {"type":"reasoning_text","text":"u"}]},)" +
                     Assistant("b") + "]"),
            R"([{"role":"assistant","content":"b","reasoning_content":"t\n\nu",)"
            R"("reasoning":"t\n\nu"}])");
  // Dropped: no assistant item follows, or the reasoning has no text.
  EXPECT_EQ(Messages("[" + ReasoningItem("hm") + "," + kAsk + "]"), "[" + kAsk + "]");
  EXPECT_EQ(Messages(R"([{"type":"reasoning","summary":[],"encrypted_content":"xyz"},)" +
                     Assistant("b") + "]"),
            "[" + Assistant("b") + "]");
  // A reference to reasoning, which is not stored.
  EXPECT_EQ(Messages("[" + kAsk + R"(,{"type":"item_reference","id":"rs_1"},)" + Call("c1") + "," +
                     Output("c1", "\"1\"") + "]"),
            "[" + kAsk + R"(,{"role":"assistant","content":null,"tool_calls":[)" +
                EngineCall("c1") + "]}," + ToolMessage("c1", "1") + "]");
}

TEST(ResponsesInput, SealedReasoning) {
  const std::string sealed = kSeal.Seal(R"(the \"whole\" thought)", kNow);
  const auto item = [&](const std::string& content, const std::string& summary) {
    return R"({"type":"reasoning","id":"rs_1","encrypted_content":")" + content +
           R"(","summary":[)" + summary + "]},";
  };
  const std::string summary = R"({"type":"summary_text","text":"short"})";
  const std::string whole = R"([{"role":"assistant","content":"b",)"
                            R"("reasoning_content":"the \"whole\" thought",)"
                            R"("reasoning":"the \"whole\" thought"}])";
  EXPECT_EQ(Messages("[" + item(sealed, "") + Assistant("b") + "]"), whole);
  EXPECT_EQ(Messages("[" + item(sealed, summary) + Assistant("b") + "]"), whole);
  std::string escaped;  // escaped as by some JSON writers
  for (const char c : sealed)
    escaped +=
        c == '/' || c == '.' ? "\\u002" + std::string(c == '/' ? "f" : "e") : std::string(1, c);
  ASSERT_NE(escaped, sealed);
  EXPECT_EQ(Messages("[" + item(escaped, "") + Assistant("b") + "]"), whole);
  // Reasoning that cannot be unsealed is ignored.
  const std::string others =
      ReasoningSeal(TestKeys(), "other", "ns/m").Seal("secret of others", kNow);
  const std::string expired = kSeal.Seal("old", kNow - TestKeys()->lifetime_s);
  for (const std::string& unusable : {others, expired, std::string("gAAAA"), std::string()}) {
    EXPECT_EQ(Messages("[" + item(unusable, "") + Assistant("b") + "]"),
              "[" + Assistant("b") + "]");
    EXPECT_EQ(Messages("[" + item(unusable, summary) + Assistant("b") + "]"),
              R"([{"role":"assistant","content":"b","reasoning_content":"short",)"
              R"("reasoning":"short"}])");
  }
}

TEST(ResponsesInput, FunctionCallOutputs) {
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[)" + EngineCall("c") + "]},";
  EXPECT_EQ(Messages("[" + Call("c") + "," + Output("c", R"([{"type":"input_text","text":"a"},
                                     {"type":"input_text","text":"b"}])") +
                     "]"),
            "[" + call + ToolMessage("c", R"(a\n\nb)") + "]");
  EXPECT_EQ(Messages("[" + Call("c") + "," + Output("c", "[]") + "]"),
            "[" + call + ToolMessage("c", "") + "]");
  // Tool messages hold only text: images follow in a user message after all outputs.
  const auto read = Read("[" + Call("c") + "," + Call("d") + "," +
                         Output("c", R"([{"type":"input_image","image_url":"https://u"}])") + "," +
                         Output("d", "\"x\"") + "," + kAsk + "]");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(
      read->messages,
      R"([{"role":"assistant","content":null,"tool_calls":[)" + EngineCall("c") + "," +
          EngineCall("d") + "]}," + ToolMessage("c", "") + "," + ToolMessage("d", "x") +
          R"(,{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://u"}}]},)" +
          kAsk + "]");
  EXPECT_EQ(read->size.media_parts, 1);
}

TEST(ResponsesInput, UnknownItemsAreSkipped) {
  EXPECT_EQ(Messages("[" + kAsk +
                     R"(,{"type":"web_search_call","id":"ws","status":"completed"},
                         {"type":"custom_tool_call","call_id":"k","name":"n","input":"i"},
                         {"type":"custom_tool_call_output","call_id":"k","output":"o"},
                         {"type":"compaction","encrypted_content":"x"},)" +
                     Call("c") + R"(,{"type":"local_shell_call","call_id":"l"},)" + Call("d") +
                     "," + Output("l", "\"the output of a call that was skipped\"") + "]"),
            "[" + kAsk + R"(,{"role":"assistant","content":null,"tool_calls":[)" + EngineCall("c") +
                "," + EngineCall("d") + "]}]");
}

TEST(ResponsesInput, InvalidItemsAreRefused) {
  for (const char* wrong : {
           R"([5])",
           R"(["hi"])",
           R"([{}])",
           R"([{"type":5}])",
           R"([{"role":"tool","content":"x"}])",
           R"([{"role":"user"}])",
           R"([{"role":"user","content":5}])",
           R"([{"role":"user","content":["x"]}])",
           R"([{"role":"user","content":[{"text":"x"}]}])",
           R"([{"role":"user","content":[{"type":"input_text"}]}])",
           R"([{"role":"user","content":[{"type":"input_file","file_id":"f"}]}])",
           R"([{"role":"user","content":[{"type":"input_audio"}]}])",
           R"([{"role":"user","content":[{"type":"input_image","file_id":"f"}]}])",
           R"([{"role":"system","content":[{"type":"input_image","image_url":"https://u"}]}])",
           R"([{"role":"user","content":[{"type":"input_image","image_url":"http://u"}]}])",
           R"([{"role":"user","content":[{"type":"input_image","image_url":"file:///u"}]}])",
           R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
               {"type":"function_call_output","call_id":"c",
                "output":[{"type":"input_image","image_url":"http://u"}]}])",
           R"([{"type":"item_reference","id":"msg_1"}])",
           R"([{"type":"item_reference"}])",
           R"([{"type":"function_call","name":"f","arguments":"{}"}])",
           R"([{"type":"function_call","call_id":"c","name":"f","arguments":{}}])",
           R"([{"type":"function_call_output","call_id":"c","output":"x"}])",
           R"([{"type":"function_call_output","output":"x"}])",
       }) {
    const auto read = Read(wrong);
    ASSERT_FALSE(read.ok()) << wrong << read->messages;
    EXPECT_EQ(read.error().id, ErrorId::kBadRequest);
    EXPECT_EQ(read.error().param, "input") << wrong;
  }
  // The output comes before its call.
  EXPECT_FALSE(Read("[" + Output("c", "\"x\"") + "," + Call("c") + "]").ok());
  EXPECT_FALSE(Read("[" + Call("c") + "," + Output("c", "5") + "]").ok());
  EXPECT_FALSE(Read("[" + Call("c") + "," + Output("c", R"([{"type":"input_file"}])") + "]").ok());
}

}  // namespace
}  // namespace tollgate::gateway
