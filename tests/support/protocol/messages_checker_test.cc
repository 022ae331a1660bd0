// Messages: each rule has a stream that breaks it.
#include "tests/support/protocol/messages_checker.h"

#include "tests/support/protocol/broken_streams.h"

namespace tollgate::test {
namespace {

std::string BlockStart(int index, const std::string& block) {
  return Named(R"({"type":"content_block_start","index":)" + std::to_string(index) +
               R"(,"content_block":)" + block + "}");
}
std::string BlockDelta(int index, const std::string& type, const std::string& member,
                       const std::string& text) {
  return Named(R"({"type":"content_block_delta","index":)" + std::to_string(index) +
               R"(,"delta":{"type":")" + type + R"(",")" + member + R"(":")" + text + "\"}}");
}
std::string BlockStop(int index) {
  return Named(R"({"type":"content_block_stop","index":)" + std::to_string(index) + "}");
}
const char kPing[] = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

Events MessagesStream() {
  return {
      Named(
          R"({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":2}}})"),  // 0
      kPing,                                                                         // 1
      BlockStart(0, R"({"type":"thinking","thinking":"","signature":""})"),          // 2
      BlockDelta(0, "thinking_delta", "thinking", "hm"),                             // 3
      BlockDelta(0, "signature_delta", "signature", "s"),                            // 4
      BlockStop(0),                                                                  // 5
      BlockStart(1, R"({"type":"text","text":""})"),                                 // 6
      BlockDelta(1, "text_delta", "text", "hello"),                                  // 7
      BlockStop(1),                                                                  // 8
      BlockStart(2, R"({"type":"tool_use","id":"toolu_1","name":"f","input":{}})"),  // 9
      BlockDelta(2, "input_json_delta", "partial_json", "{\\\"x\\\""),               // 10
      BlockDelta(2, "input_json_delta", "partial_json", ":1}"),                      // 11
      BlockStop(2),                                                                  // 12
      Named(
          R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}})"),  // 13
      Named(R"({"type":"message_stop"})"),  // 14
  };
}

TEST(MessagesChecker, AssemblesAsAClient) {
  const Checked checked = CheckMessagesStream(Join(MessagesStream()));
  EXPECT_EQ(Violations(checked), "");
  const AssembledChoice expected{"hello",    "hm", "", {{"toolu_1", "f", "{\"x\":1}"}},
                                 "tool_use", "",   {}};
  EXPECT_EQ(checked.choices.at(0), expected);
  EXPECT_EQ(checked.usage, (AssembledUsage{5, 9, 2, 0, 0}));
}

TEST(MessagesChecker, EveryViolationIsFound) {
  const std::vector<Broken> table = {
      {"the event line equals the type", Change(7, "event: content_block_delta\n", "")},
      {"the event line equals the type", Change(1, "event: ping", "event: pong")},
      {"message streams have no [DONE]", Insert(15, "data: [DONE]\n\n")},
      {"nothing follows the end", Insert(15, kPing)},
      {"the stream ends in message_stop or an error", Drop(14)},
      {"message_start comes first", Drop(0)},
      {"there is one message_start", [](Events& e) { e.insert(e.begin(), e[0]); }},
      {"message_start has no content", Change(0, "[]", "[1]")},
      {"message_start has no stop_reason", Change(0, "null", "\"end_turn\"")},
      {"the message has stop_sequence", Change(0, "\"stop_sequence\":null,", "")},
      {"usage has cache_creation_input_tokens",
       Change(0, ",\"cache_creation_input_tokens\":0", "")},
      {"no output at the start", Change(0, "\"output_tokens\":1", "\"output_tokens\":2")},
      {"id is msg_", Change(0, "msg_1", "resp_1")},
      {"role is assistant", Change(0, "assistant", "user")},
      {"ping has no x", Change(1, "\"ping\"", "\"ping\",\"x\":1")},
      {"blocks do not overlap", Drop(5)},
      {"block indexes count up from 0", Change(6, "\"index\":1", "\"index\":2")},
      {"a block starts empty", Change(6, "\"text\":\"\"", "\"text\":\"x\"")},
      {"a thinking block has signature", Change(2, ",\"signature\":\"\"", "")},
      {"input starts as {}", Change(9, "\"input\":{}", "\"input\":\"\"")},
      {"a call's id", Change(9, "toolu_1", "")},
      {"a call's name", Change(9, "\"f\"", "\"\"")},
      {"a block is thinking, text or tool_use", Change(6, "\"type\":\"text\"", "\"type\":\"t\"")},
      {"deltas and stops name the open block", Change(7, "\"index\":1", "\"index\":0")},
      {"deltas and stops name the open block", Swap(7, 8)},
      {"a delta is of its block's type",
       [](Events& e) { e[7] = BlockDelta(1, "thinking_delta", "thinking", "x"); }},
      {"the delta's type is a public one", Change(7, "text_delta", "citations_delta")},
      {"the signature is the block's last delta", Swap(3, 4)},
      {"the signature is not empty", Change(4, "\"s\"", "\"\"")},
      {"a thinking block ends with its signature", Drop(4)},
      {"a call's pieces are one JSON object", Drop(11)},
      {"every block has stopped", Drop(12)},
      {"message_delta comes before message_stop", Drop(13)},
      {"only message_stop follows message_delta", Swap(12, 13)},
      {"stop_reason is a public one", Change(13, "\"tool_use\"", "\"stop\"")},
      {"the delta has stop_sequence", Change(13, ",\"stop_sequence\":null", "")},
      {"stop_sequence is set when it is the reason",
       Change(13, "\"stop_sequence\":null", "\"stop_sequence\":\"x\"")},
      {"an answer with calls does not end with end_turn", Change(13, "tool_use", "end_turn")},
      {"usage has output_tokens", Change(13, "\"output_tokens\":9", "\"input_tokens\":9")},
      {"output_tokens grow", Change(13, ":9", ":0")},
      {"the event type is a public one", Insert(6, Named(R"({"type":"content_block"})"))},
  };
  ExpectFound(MessagesStream(), table, CheckMessagesStream);
  Events thinking_only = MessagesStream();
  thinking_only.erase(thinking_only.begin() + 6, thinking_only.begin() + 13);
  EXPECT_NE(Violations(CheckMessagesStream(Join(thinking_only))).find("tool_use needs a call"),
            std::string::npos);
  Change(6, "tool_use", "end_turn")(thinking_only);
  EXPECT_NE(Violations(CheckMessagesStream(Join(thinking_only))).find("an empty text block"),
            std::string::npos);
}

TEST(MessagesChecker, Errors) {
  const Events legal = {
      kPing,
      Named(
          R"({"type":"error","error":{"type":"api_error","code":"server_error","message":"m"}})")};
  const std::vector<Broken> table = {
      {"nothing follows the end", Insert(2, Named(R"({"type":"message_stop"})"))},
      {"the error's type is a public one", Change(1, "api_error", "server_error")},
      {"error has code", Change(1, "\"code\":\"server_error\",", "")},
  };
  ExpectFound(legal, table, CheckMessagesStream);
  EXPECT_EQ(CheckMessagesStream(Join(legal)).error_code, "server_error");
}

TEST(MessagesChecker, Body) {
  const Events legal = {
      R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"t"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}})"};
  const std::vector<Broken> table = {
      {"input is an object", Change(0, R"({"x":1})", R"("{}")")},
      {"the signature is a string", Change(0, "\"s\"", "\"\"")},
      {"usage has cache_read_input_tokens", Change(0, ",\"cache_read_input_tokens\":0", "")},
      {"the message has model", Change(0, "\"model\":\"m\",", "")},
  };
  ExpectFound(legal, table, CheckMessagesBody);
}

}  // namespace
}  // namespace tollgate::test
