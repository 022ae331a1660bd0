// Exact bytes of chat-completions responses. See docs/design/wire.md 2.2 to 2.5, decisions 23, 24,
// 30, 31.
#include "gateway/surfaces/chat_completions/encoders.h"

#include <gtest/gtest.h>

#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

const ResponseStamp kStamp{"ID", 1700000000};

CanonicalRequest Request(bool include_usage = false, int32_t choices = 1) {
  CanonicalRequest request;
  request.model = "ns/model";
  request.stream = true;
  request.include_usage = include_usage;
  request.choices = choices;
  return request;
}

pb::Delta Text(std::string escaped, int32_t choice = 0) {
  pb::Delta delta;
  delta.set_choice(choice);
  delta.set_content_json(std::move(escaped));
  return delta;
}

pb::Delta Finish(pb::FinishReason reason, int32_t choice = 0) {
  pb::Delta delta;
  delta.set_choice(choice);
  delta.set_finish_reason(reason);
  return delta;
}

pb::Delta Call(int32_t index, std::string id, std::string name, std::string arguments) {
  pb::Delta delta;
  pb::ToolCallDelta* call = delta.add_tool_calls();
  call->set_index(index);
  call->set_id_json(std::move(id));
  call->set_name_json(std::move(name));
  call->set_arguments_json(std::move(arguments));
  return delta;
}

pb::End End(int64_t prompt, int64_t completion, int64_t cached = 0, int64_t reasoning = 0) {
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(prompt);
  end.mutable_usage()->set_completion_tokens(completion);
  end.mutable_usage()->set_cached_tokens(cached);
  end.mutable_usage()->set_reasoning_tokens(reasoning);
  return end;
}

std::string EncodeStream(const CanonicalRequest& request, const std::vector<pb::Delta>& deltas,
                         const pb::End& end) {
  const auto encoder = MakeChatStreamEncoder(request, kStamp);
  std::string out;
  encoder->OnStarted({}, out);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta, out);
  encoder->OnEnd(end, out);
  return out;
}

std::string EncodeBody(const CanonicalRequest& request, const std::vector<pb::Delta>& deltas,
                       const pb::End& end) {
  const auto encoder = MakeChatBodyEncoder(request, kStamp);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  return encoder->Finish(end);
}

const std::string kStem =
    R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"ns/model","choices":[)";

// One chunk of choice 0 without usage.
std::string Chunk(const std::string& delta, const std::string& finish = "null") {
  return kStem + R"({"index":0,"delta":{)" + delta + R"(},"finish_reason":)" + finish + "}]}\n\n";
}
const std::string kRole = Chunk(R"("role":"assistant","content":"")");

TEST(ChatStream, PlainText) {
  EXPECT_EQ(EncodeStream(Request(),
                         {Text("Hel"), Text(R"(lo \"you\"\n)"), Finish(pb::FINISH_REASON_STOP)},
                         End(5, 2)),
            kRole + Chunk(R"("content":"Hel")") + Chunk(R"("content":"lo \"you\"\n")") +
                Chunk("", "\"stop\"") + "data: [DONE]\n\n");
}

TEST(ChatStream, TextAndFinishInOneDeltaAreTwoChunks) {
  pb::Delta last = Text("x");
  last.set_finish_reason(pb::FINISH_REASON_LENGTH);
  EXPECT_EQ(EncodeStream(Request(), {last}, End(1, 1)),
            kRole + Chunk(R"("content":"x")") + Chunk("", "\"length\"") + "data: [DONE]\n\n");
}

TEST(ChatStream, UsageChunkWhenRequested) {
  std::string expected;
  for (const std::string& chunk : {kRole, Chunk(R"("content":"a")"), Chunk("", "\"stop\"")}) {
    std::string changed = chunk;
    changed.erase(changed.size() - 4);
    expected += changed + "],\"usage\":null}\n\n";
  }
  expected += kStem + R"(],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
                      R"("prompt_tokens_details":{"cached_tokens":4},)"
                      R"("completion_tokens_details":{"reasoning_tokens":2}}})"
                      "\n\ndata: [DONE]\n\n";
  EXPECT_EQ(
      EncodeStream(Request(true), {Text("a"), Finish(pb::FINISH_REASON_STOP)}, End(7, 3, 4, 2)),
      expected);
}

TEST(ChatStream, ReasoningPrecedesContent) {
  pb::Delta thought;
  thought.set_reasoning_json("hm");
  EXPECT_EQ(
      EncodeStream(Request(), {thought, Text("a"), Finish(pb::FINISH_REASON_STOP)}, End(1, 2)),
      kRole + Chunk(R"("reasoning_content":"hm")") + Chunk(R"("content":"a")") +
          Chunk("", "\"stop\"") + "data: [DONE]\n\n");
}

TEST(ChatStream, ToolCallsAreNamedOnceAndSetTheFinishReason) {
  EXPECT_EQ(EncodeStream(
                Request(),
                {Call(0, "call_a", "f", ""), Call(0, "", "", R"({\"x\":)"), Call(0, "", "", "1}"),
                 Call(1, "call_b", "g", "{}"), Finish(pb::FINISH_REASON_STOP)},
                End(1, 2)),
            kRole +
                Chunk(R"("tool_calls":[{"index":0,"id":"call_a","type":"function",)"
                      R"("function":{"name":"f","arguments":""}}])") +
                Chunk(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}])") +
                Chunk(R"("tool_calls":[{"index":0,"function":{"arguments":"1}"}}])") +
                Chunk(R"("tool_calls":[{"index":1,"id":"call_b","type":"function",)"
                      R"("function":{"name":"g","arguments":"{}"}}])") +
                Chunk("", "\"tool_calls\"") + "data: [DONE]\n\n");
}

TEST(ChatStream, MissingCallIdsAreGenerated) {
  const std::string out = EncodeStream(Request(), {Call(0, "", "f", "{}")}, End(1, 1));
  EXPECT_NE(out.find(R"("id":"call_)"), std::string::npos);
}

TEST(ChatStream, EachChoiceHasARoleAndOneFinish) {
  const std::string out = EncodeStream(
      Request(false, 3),
      {Text("a"), Text("b", 1), Finish(pb::FINISH_REASON_STOP), Finish(pb::FINISH_REASON_LENGTH, 1),
       Text("late", 1), Finish(pb::FINISH_REASON_STOP, 1), Text("not asked for", 3)},
      End(1, 2));
  std::map<int, int> roles, finishes;
  size_t from = 0;
  for (size_t to; (to = out.find("\n\n", from)) != std::string::npos; from = to + 2) {
    const std::string data = out.substr(from + 6, to - from - 6);
    if (data == "[DONE]") break;
    const auto document = json::Document::ParseView(data);
    ASSERT_TRUE(document.ok()) << data;
    for (const json::Value choice : document->root().Find("choices")) {
      const int index = static_cast<int>(*choice.Find("index").Integer());
      ASSERT_LT(index, 3);
      if (choice.Find("delta").Find("role")) ++roles[index];
      if (!choice.Find("finish_reason").is_null()) ++finishes[index];
    }
  }
  EXPECT_EQ(roles, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(finishes, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(out.find("late"), std::string::npos);
}

TEST(ChatStream, CutByCreditEndsWithLength) {  // decision 4
  pb::End end = End(1, 1);
  end.set_cut_by_credit(true);
  EXPECT_EQ(EncodeStream(Request(), {Text("a")}, end),
            kRole + Chunk(R"("content":"a")") + Chunk("", "\"length\"") + "data: [DONE]\n\n");
}

TEST(ChatStream, LogprobsHaveThePublicKeysOnly) {  // decision 31
  pb::Delta delta = Text("a");
  delta.set_logprobs_json(
      R"({"content":[{"id":5,"token":"a","logprob":-0.1,"top_logprobs":)"
      R"([{"id":5,"token":"a","logprob":-0.1,"bytes":[97]}]},{"token":"b","logprob":-2}],"x":1})");
  const std::string out = EncodeStream(Request(), {delta}, End(1, 1));
  EXPECT_NE(out.find(R"("delta":{"content":"a"},"logprobs":{"content":[)"
                     R"({"token":"a","logprob":-0.1,"bytes":null,"top_logprobs":)"
                     R"([{"token":"a","logprob":-0.1,"bytes":[97]}]},)"
                     R"({"token":"b","logprob":-2,"bytes":null,"top_logprobs":[]}],)"
                     R"("refusal":null},"finish_reason":null)"),
            std::string::npos)
      << out;
}

TEST(ChatStream, CallsWithoutArgumentsGetAnEmptyObject) {
  const std::string begin =
      kRole + Chunk(R"("tool_calls":[{"index":0,"id":"call_a","type":"function",)"
                    R"("function":{"name":"f","arguments":""}}])");
  EXPECT_EQ(EncodeStream(Request(), {Call(0, "call_a", "f", ""), Finish(pb::FINISH_REASON_STOP)},
                         End(1, 1)),
            begin + Chunk(R"("tool_calls":[{"index":0,"function":{"arguments":"{}"}}])") +
                Chunk("", "\"tool_calls\"") + "data: [DONE]\n\n");
  EXPECT_EQ(EncodeStream(Request(), {Call(0, "call_a", "f", ""), Finish(pb::FINISH_REASON_LENGTH)},
                         End(1, 1)),
            begin + Chunk("", "\"length\"") + "data: [DONE]\n\n")
      << "truncated arguments are not completed";
}

TEST(ChatStream, ErrorsEndTheStreamWithoutDone) {
  const auto encoder = MakeChatStreamEncoder(Request(), kStamp);
  std::string out;
  encoder->OnError(Error{ErrorId::kUpstreamError}, out);
  EXPECT_EQ(out,
            "data: {\"error\":{\"message\":\"The model backend failed.\","
            "\"type\":\"server_error\",\"code\":\"server_error\"}}\n\n");
  out.clear();
  encoder->KeepAlive(out);
  EXPECT_EQ(out, ": keep-alive\n\n");
}

TEST(ChatStream, ModelIdsAreEscaped) {
  CanonicalRequest request = Request();
  request.model = "a\"b";
  EXPECT_NE(EncodeStream(request, {}, End(1, 1)).find(R"("model":"a\"b")"), std::string::npos);
}

TEST(ChatBody, PlainText) {
  EXPECT_EQ(
      EncodeBody(Request(), {Text("Hel"), Text("lo"), Finish(pb::FINISH_REASON_STOP)}, End(5, 2)),
      R"({"id":"chatcmpl-ID","object":"chat.completion","created":1700000000,)"
      R"("model":"ns/model","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,)"
      R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(ChatBody, ToolCallsWithoutTextHaveNullContent) {
  const std::string body = EncodeBody(Request(),
                                      {Call(0, "call_a", "f", "{"), Call(0, "", "", "}"),
                                       Call(1, "call_b", "g", ""), Finish(pb::FINISH_REASON_STOP)},
                                      End(1, 1));
  EXPECT_NE(body.find(R"("message":{"role":"assistant","content":null,"refusal":null,)"
                      R"("tool_calls":[{"id":"call_a","type":"function",)"
                      R"("function":{"name":"f","arguments":"{}"}},{"id":"call_b",)"
                      R"("type":"function","function":{"name":"g","arguments":"{}"}}]},)"
                      R"("logprobs":null,"finish_reason":"tool_calls")"),
            std::string::npos)
      << body;
}

TEST(ChatBody, TruncatedArgumentsAreKept) {
  const std::string body = EncodeBody(
      Request(), {Call(0, "call_a", "f", ""), Finish(pb::FINISH_REASON_LENGTH)}, End(1, 1));
  EXPECT_NE(body.find(R"("function":{"name":"f","arguments":""}}]})"), std::string::npos) << body;
}

TEST(ChatBody, ContentIsEmptyWhenTheLimitEndsTheReasoning) {
  pb::Delta thought;
  thought.set_reasoning_json("so \\u0041");
  const std::string body =
      EncodeBody(Request(), {thought, Finish(pb::FINISH_REASON_LENGTH)}, End(1, 1, 0, 1));
  EXPECT_NE(body.find(R"("content":"","refusal":null,"reasoning_content":"so \u0041"},)"
                      R"("logprobs":null,"finish_reason":"length")"),
            std::string::npos)
      << body;
}

TEST(ChatBody, SeveralChoicesAndJoinedLogprobs) {
  pb::Delta first = Text("a"), second = Text("b");
  first.set_logprobs_json(R"({"content":[{"token":"a","logprob":-1}]})");
  second.set_logprobs_json(R"({"content":[{"token":"b","logprob":-2}],"refusal":null})");
  const std::string body =
      EncodeBody(Request(false, 2), {first, second, Text("x", 1), Text("dropped", 2)}, End(1, 3));
  EXPECT_NE(body.find(R"("logprobs":{"content":[)"
                      R"({"token":"a","logprob":-1,"bytes":null,"top_logprobs":[]},)"
                      R"({"token":"b","logprob":-2,"bytes":null,"top_logprobs":[]}],)"
                      R"("refusal":null})"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"({"index":1,"message":{"role":"assistant","content":"x")"),
            std::string::npos);
  EXPECT_EQ(body.find("dropped"), std::string::npos);
  EXPECT_TRUE(json::Document::ParseView(body).ok());
}

TEST(ChatEncoders, HiddenReasoningIsCountedAndNotSent) {
  CanonicalRequest request = Request(true);
  request.hides_reasoning = true;
  pb::Delta reasoning;
  reasoning.set_reasoning_json("secret");
  reasoning.set_logprobs_json(R"({"content":[{"token":"secret","logprob":0}]})");
  pb::Delta both = Text("shown");
  both.set_reasoning_json("secret");
  const std::vector<pb::Delta> deltas = {reasoning, both, Finish(pb::FINISH_REASON_STOP)};
  for (const std::string& answer : {EncodeStream(request, deltas, End(5, 9, 0, 7)),
                                    EncodeBody(request, deltas, End(5, 9, 0, 7))}) {
    EXPECT_EQ(answer.find("secret"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("reasoning_content"), std::string::npos) << answer;
    EXPECT_NE(answer.find("shown"), std::string::npos) << answer;
    EXPECT_NE(answer.find(R"("completion_tokens":9)"), std::string::npos) << answer;
    EXPECT_NE(answer.find(R"("reasoning_tokens":7)"), std::string::npos) << answer;
  }
}

}  // namespace
}  // namespace tollgate::gateway
