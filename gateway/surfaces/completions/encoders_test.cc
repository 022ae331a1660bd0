// Exact bytes of completions responses. See docs/design/wire.md 3, decisions 4, 23, 24.
#include "gateway/surfaces/completions/encoders.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

const ResponseStamp kStamp{"ID", 1700000000};

CanonicalRequest Request(bool include_usage = false, int32_t choices = 1) {
  CanonicalRequest request;
  request.kind = pb::REQUEST_KIND_COMPLETION;
  request.model = "ns/\"model\"";
  request.include_usage = include_usage;
  request.choices = choices;
  return request;
}

pb::Delta Text(std::string escaped, int32_t choice = 0, std::string logprobs = "") {
  pb::Delta delta;
  delta.set_choice(choice);
  delta.set_content_json(std::move(escaped));
  delta.set_logprobs_json(std::move(logprobs));
  return delta;
}

pb::Delta Finish(pb::FinishReason reason, int32_t choice = 0) {
  pb::Delta delta;
  delta.set_choice(choice);
  delta.set_finish_reason(reason);
  return delta;
}

pb::End End(int64_t prompt, int64_t completion) {
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(prompt);
  end.mutable_usage()->set_completion_tokens(completion);
  end.mutable_usage()->set_cached_tokens(1);
  return end;
}

std::string EncodeStream(const CanonicalRequest& request, const std::vector<pb::Delta>& deltas,
                         const pb::End& end) {
  const auto encoder = MakeCompletionStreamEncoder(request, kStamp);
  std::string out;
  encoder->OnStarted({}, out);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta, out);
  encoder->OnEnd(end, out);
  return out;
}

std::string EncodeBody(const CanonicalRequest& request, const std::vector<pb::Delta>& deltas,
                       const pb::End& end) {
  const auto encoder = MakeCompletionBodyEncoder(request, kStamp);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  return encoder->Finish(end);
}

const std::string kHead = R"({"id":"cmpl-ID","object":"text_completion","created":1700000000,)"
                          R"("model":"ns/\"model\"","choices":[)";

std::string Chunk(const std::string& text, const std::string& finish = "null", int choice = 0,
                  const std::string& logprobs = "null") {
  return "data: " + kHead + "{\"index\":" + std::to_string(choice) + ",\"text\":\"" + text +
         "\",\"logprobs\":" + logprobs + ",\"finish_reason\":" + finish + "}]}\n\n";
}

TEST(CompletionStream, TextFinishAndEnd) {
  EXPECT_EQ(EncodeStream(Request(), {Text("Hel"), Text("lo\\n"), Finish(pb::FINISH_REASON_STOP)},
                         End(5, 2)),
            Chunk("Hel") + Chunk("lo\\n") + Chunk("", "\"stop\"") + "data: [DONE]\n\n");
}

TEST(CompletionStream, UsageChunkWhenRequested) {
  std::string expected;
  for (std::string chunk : {Chunk("a"), Chunk("", "\"length\"")}) {
    chunk.erase(chunk.size() - 4);
    expected += chunk + "],\"usage\":null}\n\n";
  }
  expected += "data: " + kHead +
              R"(],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}})"
              "\n\ndata: [DONE]\n\n";
  pb::Delta last = Text("a");
  last.set_finish_reason(pb::FINISH_REASON_LENGTH);
  EXPECT_EQ(EncodeStream(Request(true), {last}, End(5, 2)), expected);
}

TEST(CompletionStream, ChoicesAreNumberedAndEachEndsOnce) {
  EXPECT_EQ(EncodeStream(Request(false, 2),
                         {Text("b", 1), Text("a"), Finish(pb::FINISH_REASON_CONTENT_FILTER, 1),
                          Text("late", 1), Text("not asked for", 2), Text("nor this", -1)},
                         End(1, 2)),
            Chunk("b", "null", 1) + Chunk("a") + Chunk("", "\"content_filter\"", 1) +
                Chunk("", "\"stop\"") + "data: [DONE]\n\n");
}

TEST(CompletionStream, CutByCreditEndsWithLength) {  // decision 4
  pb::End end = End(1, 1);
  end.set_cut_by_credit(true);
  EXPECT_EQ(EncodeStream(Request(), {Text("a")}, end),
            Chunk("a") + Chunk("", "\"length\"") + "data: [DONE]\n\n");
}

TEST(CompletionStream, ErrorsEndTheStreamWithoutDone) {  // decision 23
  std::string out;
  MakeCompletionStreamEncoder(Request(), kStamp)->OnError(Error{ErrorId::kUpstreamError}, out);
  EXPECT_EQ(out.find("data: {\"error\":{\"message\":"), 0u) << out;
  EXPECT_EQ(out.find("[DONE]"), std::string::npos);
}

constexpr char kLegacy[] =
    R"({"text_offset":[0,3],"token_logprobs":[null,-0.5],"tokens":["Hel","lo"],)"
    R"("top_logprobs":[null,{"lo":-0.5}],"extra":1})";
constexpr char kLegacyPublic[] =
    R"({"tokens":["Hel","lo"],"token_logprobs":[null,-0.5],"top_logprobs":[null,{"lo":-0.5}],)"
    R"("text_offset":[0,3]})";

TEST(CompletionStream, LogprobsHaveThePublicListsOnly) {
  EXPECT_EQ(EncodeStream(Request(), {Text("Hello", 0, kLegacy)}, End(1, 2)),
            Chunk("Hello", "null", 0, kLegacyPublic) + Chunk("", "\"stop\"") + "data: [DONE]\n\n");
}

TEST(CompletionStream, LogprobsInTheChatFormat) {
  const auto piece = [](const std::string& token) {
    return R"({"content":[{"id":1,"token":")" + token +
           R"(","bytes":[1],"logprob":-0.5,"top_logprobs":[{"token":")" + token +
           R"(","logprob":-0.5},{"token":"x","logprob":-2},{"token":"x","logprob":-3}]}]})";
  };
  const auto legacy = [](const std::string& token, const std::string& offset) {
    return R"({"tokens":[")" + token + R"("],"token_logprobs":[-0.5],"top_logprobs":[{")" + token +
           R"(":-0.5,"x":-2}],"text_offset":[)" + offset + "]}";
  };
  EXPECT_EQ(EncodeStream(Request(), {Text("hé", 0, piece("h\\u00e9")), Text("b", 0, piece("b"))},
                         End(1, 2)),
            Chunk("hé", "null", 0, legacy("h\\u00e9", "0")) +
                Chunk("b", "null", 0, legacy("b", "2")) + Chunk("", "\"stop\"") +
                "data: [DONE]\n\n");
}

TEST(CompletionBody, PlainText) {
  EXPECT_EQ(
      EncodeBody(Request(), {Text("Hel"), Text("lo"), Finish(pb::FINISH_REASON_STOP)}, End(5, 2)),
      kHead + R"({"index":0,"text":"Hello","logprobs":null,"finish_reason":"stop"}],)" +
          R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}})");
}

TEST(CompletionBody, ChoicesAndJoinedLogprobs) {
  EXPECT_EQ(
      EncodeBody(
          Request(false, 2),
          {Text("x", 1), Text("Hello", 0, kLegacy),
           Text("!", 0,
                R"({"text_offset":[5],"token_logprobs":[-1],"tokens":["!"],"top_logprobs":[{}]})"),
           Finish(pb::FINISH_REASON_LENGTH, 1)},
          End(1, 2)),
      kHead + R"({"index":0,"text":"Hello!","logprobs":{"tokens":["Hel","lo","!"],)"
              R"("token_logprobs":[null,-0.5,-1],"top_logprobs":[null,{"lo":-0.5},{}],)"
              R"("text_offset":[0,3,5]},"finish_reason":"stop"},)"
              R"({"index":1,"text":"x","logprobs":null,"finish_reason":"length"}],)"
              R"("usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}})");
}

TEST(CompletionBody, TopLogprobsAreNullWithoutCandidates) {
  EXPECT_EQ(
      EncodeBody(
          Request(),
          {Text("a", 0,
                R"({"text_offset":[0],"token_logprobs":[-1],"tokens":["a"],"top_logprobs":null})")},
          End(1, 1))
              .find(R"("logprobs":{"tokens":["a"],"token_logprobs":[-1],"top_logprobs":null,)"
                    R"("text_offset":[0]})") != std::string::npos,
      true);
}

}  // namespace
}  // namespace tollgate::gateway
