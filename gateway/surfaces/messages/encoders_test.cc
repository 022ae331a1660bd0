// Exact bytes of Messages responses. See docs/design/wire.md 6.2, 6.3, 7.2, 7.4, decisions 4, 8,
// 23, 28, 30, 33.
#include "gateway/surfaces/messages/encoders.h"

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

const ResponseStamp kStamp{"ID", 1700000000};

CanonicalRequest Request(std::vector<std::string> stops = {}) {
  CanonicalRequest request;
  request.model = "ns/model";
  request.stream = true;
  request.max_tokens = 100;
  if (!stops.empty()) {
    auto state = std::make_shared<MessagesState>();
    state->stop_sequences = std::move(stops);
    request.state = std::move(state);
  }
  return request;
}

pb::Delta Text(std::string escaped) {
  pb::Delta delta;
  delta.set_content_json(std::move(escaped));
  return delta;
}
pb::Delta Think(std::string escaped) {
  pb::Delta delta;
  delta.set_reasoning_json(std::move(escaped));
  return delta;
}
pb::Delta Refusal(std::string escaped) {
  pb::Delta delta;
  delta.set_refusal_json(std::move(escaped));
  return delta;
}
pb::Delta Call(int32_t index, std::string id, std::string name, std::string arguments) {
  pb::Delta delta;
  pb::ToolCallDelta& call = *delta.add_tool_calls();
  call.set_index(index);
  call.set_id_json(std::move(id));
  call.set_name_json(std::move(name));
  call.set_arguments_json(std::move(arguments));
  return delta;
}
pb::Delta Finish(pb::FinishReason reason, std::string stop = "") {
  pb::Delta delta;
  delta.set_finish_reason(reason);
  delta.set_stop_sequence_json(std::move(stop));
  return delta;
}
pb::End End(int64_t prompt, int64_t completion, int64_t cached = 0, int64_t written = 0,
            int64_t reasoning = 0) {
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(prompt);
  end.mutable_usage()->set_completion_tokens(completion);
  end.mutable_usage()->set_cached_tokens(cached);
  end.mutable_usage()->set_cache_write_tokens(written);
  end.mutable_usage()->set_reasoning_tokens(reasoning);
  return end;
}

std::string EncodeStream(const std::vector<pb::Delta>& deltas, const pb::End& end,
                         const CanonicalRequest& request = Request(),
                         const pb::Started& started = {}) {
  const auto encoder = MakeMessagesStreamEncoder(request, kStamp);
  std::string out;
  encoder->OnStarted(started, out);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta, out);
  encoder->OnEnd(end, out);
  return out;
}

std::string EncodeBody(const std::vector<pb::Delta>& deltas, const pb::End& end,
                       const CanonicalRequest& request = Request()) {
  const auto encoder = MakeMessagesBodyEncoder(request, kStamp);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  std::string body = encoder->Finish(end);
  EXPECT_TRUE(json::Document::ParseView(body).ok()) << body;
  return body;
}

// Builds an event. The data of every event begins with its type.
std::string Event(const std::string& type, const std::string& more) {
  return "event: " + type + "\ndata: {\"type\":\"" + type + "\"" + more + "}\n\n";
}
std::string Usage(int64_t input, int64_t output, int64_t written = 0, int64_t read = 0) {
  return R"({"input_tokens":)" + std::to_string(input) + R"(,"cache_creation_input_tokens":)" +
         std::to_string(written) + R"(,"cache_read_input_tokens":)" + std::to_string(read) +
         R"(,"output_tokens":)" + std::to_string(output) + "}";
}
std::string Begin(const std::string& usage = Usage(0, 0)) {
  return Event("message_start",
               R"(,"message":{"id":"msg_ID","type":"message","role":"assistant",)"
               R"("model":"ns/model","content":[],"stop_reason":null,"stop_sequence":null,)"
               R"("usage":)" +
                   usage + "}");
}
std::string Start(int index, const std::string& block) {
  return Event("content_block_start",
               ",\"index\":" + std::to_string(index) + ",\"content_block\":" + block);
}
std::string Piece(int index, const std::string& delta) {
  return Event("content_block_delta",
               ",\"index\":" + std::to_string(index) + ",\"delta\":" + delta);
}
std::string Stop(int index) {
  return Event("content_block_stop", ",\"index\":" + std::to_string(index));
}
std::string Done(const std::string& reason, const std::string& usage,
                 const std::string& stop = "null") {
  return Event("message_delta", R"(,"delta":{"stop_reason":")" + reason + R"(","stop_sequence":)" +
                                    stop + R"(},"usage":)" + usage) +
         Event("message_stop", "");
}
const std::string kText = R"({"type":"text","text":""})";
const std::string kThinking = R"({"type":"thinking","thinking":"","signature":""})";

std::string TextPiece(int index, const std::string& text) {
  return Piece(index, R"({"type":"text_delta","text":")" + text + "\"}");
}

TEST(MessagesStream, ThinkingThenText) {
  EXPECT_EQ(EncodeStream({Think("h"), Think("m"), Text("Hel"), Text(R"(lo \"you\"\n)"),
                          Finish(pb::FINISH_REASON_STOP)},
                         End(5, 4)),
            Begin() + Start(0, kThinking) +
                Piece(0, R"({"type":"thinking_delta","thinking":"h"})") +
                Piece(0, R"({"type":"thinking_delta","thinking":"m"})") +
                Piece(0, R"({"type":"signature_delta","signature":"sig_ID_0"})") + Stop(0) +
                Start(1, kText) + TextPiece(1, "Hel") + TextPiece(1, R"(lo \"you\"\n)") + Stop(1) +
                Done("end_turn", Usage(5, 4)));
}

TEST(MessagesStream, ParallelCallsAreSeparateBlocks) {
  EXPECT_EQ(EncodeStream({Text("x"), Call(0, "call_a", "f", ""), Call(0, "", "", R"({\"x\":)"),
                          Call(1, "call_b", "g", "{"), Call(0, "", "", "1}"), Call(1, "", "", "}"),
                          Call(2, "call_c", "h", ""), Finish(pb::FINISH_REASON_TOOL_CALLS)},
                         End(1, 2)),
            Begin() + Start(0, kText) + TextPiece(0, "x") + Stop(0) +
                Start(1, R"({"type":"tool_use","id":"call_a","name":"f","input":{}})") +
                Piece(1, R"({"type":"input_json_delta","partial_json":"{\"x\":"})") +
                Piece(1, R"({"type":"input_json_delta","partial_json":"1}"})") + Stop(1) +
                Start(2, R"({"type":"tool_use","id":"call_b","name":"g","input":{}})") +
                Piece(2, R"({"type":"input_json_delta","partial_json":"{"})") +
                Piece(2, R"({"type":"input_json_delta","partial_json":"}"})") + Stop(2) +
                // Clients read {} from a block without deltas.
                Start(3, R"({"type":"tool_use","id":"call_c","name":"h","input":{}})") + Stop(3) +
                Done("tool_use", Usage(1, 2)));
}

TEST(MessagesStream, MessageStartExcludesCachedPromptTokens) {  // decision 8
  pb::Started started;
  started.set_prompt_tokens(100);
  started.set_cached_tokens(64);
  started.set_cache_write_tokens(16);
  EXPECT_EQ(EncodeStream({Text("a"), Finish(pb::FINISH_REASON_STOP)}, End(100, 1, 64, 16),
                         Request(), started),
            Begin(Usage(20, 0, 16, 64)) + Start(0, kText) + TextPiece(0, "a") + Stop(0) +
                Done("end_turn", Usage(20, 1, 16, 64)));
}

TEST(MessagesStream, ThinkingTokensAreReported) {
  const std::string out =
      EncodeStream({Think("a"), Text("b"), Finish(pb::FINISH_REASON_STOP)}, End(3, 9, 0, 0, 7));
  EXPECT_NE(out.find(R"("output_tokens":9,"output_tokens_details":{"thinking_tokens":7}}})"),
            std::string::npos)
      << out;
}

TEST(MessagesStream, PingAndErrorMayPrecedeTheMessage) {  // decision 23
  const auto encoder = MakeMessagesStreamEncoder(Request(), kStamp);
  std::string out;
  encoder->KeepAlive(out);
  EXPECT_EQ(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  out.clear();
  encoder->OnError(Error{ErrorId::kUpstreamError}, out);
  EXPECT_EQ(out,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
            "\"code\":\"server_error\",\"message\":\"The model backend failed.\"}}\n\n");
}

TEST(MessagesStream, ErrorsLeaveTheBlockOpen) {
  const auto encoder = MakeMessagesStreamEncoder(Request(), kStamp);
  std::string out;
  encoder->OnStarted({}, out);
  encoder->OnDelta(Text("a"), out);
  out.clear();
  encoder->OnError(Error{ErrorId::kServiceUnavailable}, out);
  EXPECT_EQ(out.rfind("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                      "\"overloaded_error\",\"code\":\"service_unavailable\"",
                      0),
            0u);
  EXPECT_EQ(out.find("event:", 1), std::string::npos) << "no other event";
}

// The ends of streams and of single bodies: block types, stop_reason and stop_sequence.
struct Row {
  const char* what;
  std::vector<pb::Delta> deltas;
  bool cut_by_credit;
  int max_tokens;
  const char* expected;
};
class MessagesStopReason : public ::testing::TestWithParam<Row> {};

TEST_P(MessagesStopReason, IsTheSameInStreamAndBody) {
  CanonicalRequest request = Request({"END", "\n\n"});
  request.max_tokens = GetParam().max_tokens;
  pb::End end = End(3, 2);
  end.set_cut_by_credit(GetParam().cut_by_credit);
  const std::string body = EncodeBody(GetParam().deltas, end, request);
  const auto document = json::Document::ParseView(body);
  ASSERT_TRUE(document.ok());
  std::string from_body;
  for (const json::Value block : document->root().Find("content")) {
    from_body += block.Find("type").string() + " ";
  }
  from_body += document->root().Find("stop_reason").string() + " ";
  from_body += document->root().Find("stop_sequence").raw();
  EXPECT_EQ(from_body, GetParam().expected) << GetParam().what << body;

  std::string streamed;
  const std::string out = EncodeStream(GetParam().deltas, end, request);
  size_t from = 0;
  for (size_t to; (to = out.find("\n\n", from)) != std::string::npos; from = to + 2) {
    const size_t data = out.find("data: ", from) + 6;
    const auto event = json::Document::ParseView(std::string_view(out).substr(data, to - data));
    ASSERT_TRUE(event.ok()) << out;
    const json::Value block = event->root().Find("content_block");
    if (block) streamed += block.Find("type").string() + " ";
    const json::Value delta = event->root().Find("delta");
    if (delta.Find("stop_reason")) {
      streamed += delta.Find("stop_reason").string() + " ";
      streamed += delta.Find("stop_sequence").raw();
    }
  }
  EXPECT_EQ(streamed, GetParam().expected) << GetParam().what << out;
}

const pb::FinishReason kStop = pb::FINISH_REASON_STOP;
const pb::FinishReason kLength = pb::FINISH_REASON_LENGTH;
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesStopReason,
    ::testing::Values(
        Row{"text", {Text("a"), Finish(kStop)}, false, 9, "text end_turn null"},
        Row{"no finish reason", {Text("a")}, false, 9, "text end_turn null"},
        Row{"max_tokens", {Text("a"), Finish(kLength)}, false, 9, "text max_tokens null"},
        Row{"the credit ends", {Text("a"), Finish(kLength)}, true, 9, "text max_tokens null"},
        Row{"the credit ends, without a finish reason",
            {Text("a")},
            true,
            9,
            "text max_tokens null"},
        Row{"a stop sequence",
            {Text("a"), Finish(kStop, R"(\u000a\n)")},
            false,
            9,
            R"(text stop_sequence "\u000a\n")"},
        Row{"a stop string that was not requested",
            {Text("a"), Finish(kStop, "<|im_end|>")},
            false,
            9,
            "text end_turn null"},
        Row{"a stop sequence before any text",
            {Finish(kStop, "END")},
            false,
            9,
            R"(text stop_sequence "END")"},
        Row{"the content filter",
            {Text("a"), Finish(pb::FINISH_REASON_CONTENT_FILTER)},
            false,
            9,
            "text refusal null"},
        Row{"a refusal is text", {Refusal("no"), Finish(kStop)}, false, 9, "text refusal null"},
        Row{"a forced call",
            {Call(0, "i", "f", "{}"), Finish(kStop)},
            false,
            9,
            "tool_use tool_use null"},
        Row{"a call cut off by max_tokens",
            {Call(0, "i", "f", R"({\"a)"), Finish(kLength)},
            false,
            9,
            "tool_use max_tokens null"},
        Row{"tool_calls without a call",
            {Text("a"), Finish(pb::FINISH_REASON_TOOL_CALLS)},
            false,
            9,
            "text end_turn null"},
        Row{"thinking alone", {Think("a"), Finish(kStop)}, false, 9, "thinking text end_turn null"},
        Row{"max_tokens ends the thinking",
            {Think("a"), Finish(kLength)},
            false,
            9,
            "thinking max_tokens null"},
        Row{"the credit ends the thinking", {Think("a")}, true, 9, "thinking max_tokens null"},
        Row{"no output", {Finish(kStop)}, false, 9, "text end_turn null"},
        Row{"the credit ends before any output", {}, true, 9, "text max_tokens null"},
        Row{"max_tokens 0", {Finish(kLength)}, false, 0, "max_tokens null"}),
    [](const auto& info) { return std::to_string(info.index); });

TEST(MessagesBody, AllBlockTypes) {
  EXPECT_EQ(EncodeBody({Think(R"(h\n)"), Think("m"), Text("a"), Text(R"(\"b\")"),
                        Call(0, "call_a", "f", R"({\"n\": 12345678901234567890,)"),
                        Call(0, "", "", R"( \"s\":\"\\\"\\u00e9\"})"), Call(1, "call_b", "g", ""),
                        Finish(pb::FINISH_REASON_TOOL_CALLS)},
                       End(20, 9, 8, 4, 2)),
            R"({"id":"msg_ID","type":"message","role":"assistant","model":"ns/model","content":[)"
            R"({"type":"thinking","thinking":"h\nm","signature":"sig_ID_0"},)"
            R"({"type":"text","text":"a\"b\""},)"
            R"({"type":"tool_use","id":"call_a","name":"f",)"
            R"("input":{"n": 12345678901234567890, "s":"\"\u00e9"}},)"
            R"({"type":"tool_use","id":"call_b","name":"g","input":{}}],)"
            R"("stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":8,)"
            R"("cache_creation_input_tokens":4,"cache_read_input_tokens":8,"output_tokens":9,)"
            R"("output_tokens_details":{"thinking_tokens":2}}})");
}

TEST(MessagesBody, MaxTokensZeroHasNoContent) {  // decision 30
  CanonicalRequest request = Request();
  request.max_tokens = 0;
  EXPECT_EQ(EncodeBody({Finish(pb::FINISH_REASON_LENGTH)}, End(7, 0), request),
            R"({"id":"msg_ID","type":"message","role":"assistant","model":"ns/model",)"
            R"("content":[],"stop_reason":"max_tokens","stop_sequence":null,"usage":)" +
                Usage(7, 0) + "}");
}

TEST(MessagesBody, ModelIdsAreEscaped) {
  CanonicalRequest request = Request();
  request.model = "a\"b";
  EXPECT_NE(EncodeBody({Text("x")}, End(1, 1), request).find(R"("model":"a\"b")"),
            std::string::npos);
  EXPECT_NE(EncodeStream({Text("x")}, End(1, 1), request).find(R"("model":"a\"b")"),
            std::string::npos);
}

}  // namespace
}  // namespace tollgate::gateway
