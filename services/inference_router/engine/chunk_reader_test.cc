#include "services/inference_router/engine/chunk_reader.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;
using Status = ChunkReader::Status;

ChunkReader::Options Chat(int choices = 1) {
  ChunkReader::Options options;
  options.choices = choices;
  return options;
}

// Shows the deltas of one chunk in a short form.
std::string Show(const std::vector<Event>& events) {
  std::string out;
  for (const Event& event : events) {
    const auto& delta = event.delta();
    if (delta.choice()) out += "#" + std::to_string(delta.choice());
    if (!delta.content_json().empty()) out += "c(" + delta.content_json() + ")";
    if (!delta.reasoning_json().empty()) out += "r(" + delta.reasoning_json() + ")";
    if (!delta.refusal_json().empty()) out += "f(" + delta.refusal_json() + ")";
    for (const auto& call : delta.tool_calls()) {
      out += "t(" + call.name_json() + ":" + call.arguments_json() + ")";
    }
    if (!delta.logprobs_json().empty()) out += "l(" + delta.logprobs_json() + ")";
    if (delta.finish_reason()) out += "[" + std::to_string(delta.finish_reason()) + "]";
    if (!delta.stop_sequence_json().empty()) out += "s(" + delta.stop_sequence_json() + ")";
    out += ";";
  }
  return out;
}

std::string ReadOne(ChunkReader& reader, std::string_view data, Status want = Status::kMore) {
  std::vector<Event> events;
  EXPECT_EQ(reader.Read(data, events), want) << data;
  return Show(events);
}

std::string Delta(const std::string& delta, const std::string& rest = R"("finish_reason":null)") {
  return R"({"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + delta +
         "," + rest + "}]}";
}

TEST(ChunkReader, CopiesTextAsTheEscapedBytesReceived) {
  ChunkReader reader(Chat());
  EXPECT_EQ(ReadOne(reader, Delta(R"({"role":"assistant","content":""})")), "");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":null})")), "");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"a\n\u00e9é\""})")), "c(a\\n\\u00e9é\\\");");
  EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":"stop")")), "[1];");
  EXPECT_TRUE(reader.finished());
  EXPECT_EQ(ReadOne(reader, "[DONE]", Status::kDone), "");
}

TEST(ChunkReader, TextCannotInjectAnEvent) {
  ChunkReader reader(Chat());
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"\n\ndata: [DONE]\n\n"})")),
            "c(\\n\\ndata: [DONE]\\n\\n);");
}

TEST(ChunkReader, ReadsBothNamesOfReasoning) {
  ChunkReader reader(Chat());
  EXPECT_EQ(ReadOne(reader, Delta(R"({"reasoning_content":"a"})")), "r(a);");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"reasoning":"b"})")), "r(b);");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"reasoning":"b","reasoning_content":"b"})")), "r(b);")
      << "the same text under both names counts once";
  EXPECT_EQ(ReadOne(reader, Delta(R"({"reasoning":{"x":1},"content":"c"})")), "c(c);");
}

TEST(ChunkReader, MapsFinishReasons) {
  const std::pair<const char*, const char*> cases[] = {
      {"stop", "[1];"},           {"length", "[2];"},
      {"content_filter", "[4];"}, {"stop_sequence", "[1];"},
      {"eos_token", "[1];"},      {"tool_calls", "[1];"}};  // without a tool call: stop
  for (const auto& [reason, want] : cases) {
    ChunkReader reader(Chat());
    EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":")" + std::string(reason) + '"')),
              want);
  }
  for (const char* reason : {"abort", "error"}) {
    ChunkReader reader(Chat());
    ReadOne(reader, Delta("{}", R"("finish_reason":")" + std::string(reason) + '"'),
            Status::kError);
    EXPECT_EQ(reader.failure().error.id, ErrorId::kUpstreamError);
  }
}

TEST(ChunkReader, AToolCallTurnsStopIntoToolCallsButNotLength) {
  for (const auto& [reason, want] :
       {std::pair{"stop", "[3];"}, {"tool_calls", "[3];"}, {"length", "[2];"}}) {
    ChunkReader reader(Chat());
    EXPECT_EQ(
        ReadOne(
            reader,
            Delta(
                R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]})")),
        "t(f:{});");
    EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":")" + std::string(reason) + '"')),
              want);
  }
}

TEST(ChunkReader, ReadsTheStopStringOfVllmAndSglang) {
  for (const char* name : {"stop_reason", "matched_stop"}) {
    ChunkReader reader(Chat());
    EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":"stop",")" + std::string(name) +
                                              R"(":"E\nND")")),
              "[1]s(E\\nND);");
    ChunkReader by_id(Chat());
    EXPECT_EQ(ReadOne(by_id, Delta("{}", R"("finish_reason":"stop",")" + std::string(name) +
                                             R"(":128001)")),
              "[1];")
        << "a token id is not a stop string";
  }
}

TEST(ChunkReader, DropsEngineMembersAndKeepsLogprobsRaw) {
  ChunkReader reader(Chat());
  EXPECT_EQ(
      ReadOne(
          reader,
          Delta(
              R"({"content":"a","token_ids":[1]})",
              R"("logprobs":{"content":[{"token":"a","logprob":-0.10}]},"finish_reason":null,"token_ids":[1])")),
      R"(c(a)l({"content":[{"token":"a","logprob":-0.10}]});)");
}

TEST(ChunkReader, ContentAfterTheFinishIsDropped) {
  ChunkReader reader(Chat());
  ReadOne(reader, Delta("{}", R"("finish_reason":"stop")"));
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"late"})")), "");
  EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":"stop")")), "")
      << "one finish reason per choice";
}

TEST(ChunkReader, SeparatesChoicesAndDropsThoseNotRequested) {
  ChunkReader reader(Chat(2));
  EXPECT_EQ(
      ReadOne(
          reader,
          R"({"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}},
                                           {"index":2,"delta":{"content":"no"}},{"index":-1,"delta":{"content":"no"}},
                                           {"index":99999999999999999999,"delta":{"content":"no"}}]})"),
      "#1c(b);c(a);");
  EXPECT_FALSE(reader.finished());
  ReadOne(reader, R"({"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]})");
  EXPECT_FALSE(reader.finished());
  ReadOne(reader, R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})");
  EXPECT_TRUE(reader.finished());
}

TEST(ChunkReader, AChoiceNotYetSeenIsNotFinished) {
  ChunkReader reader(Chat(2));
  ReadOne(reader, R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})");
  EXPECT_FALSE(reader.finished()) << "an engine may send one choice after the other";
  EXPECT_TRUE(reader.seen_choices_finished()) << "an engine may ignore n";
  ReadOne(reader, R"({"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]})");
  EXPECT_TRUE(reader.finished());
}

TEST(ChunkReader, RefusalsAreText) {
  ChunkReader reader(Chat());
  std::vector<Event> events;
  reader.Read(Delta(R"({"refusal":"no \ud83d"})"), events);
  reader.Read(Delta(R"({"refusal":"\ude00"})"), events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].delta().refusal_json(), "no ");
  EXPECT_EQ(events[1].delta().refusal_json(), "\\ud83d\\ude00");
}

TEST(ChunkReader, ReadsUsageOnAnyChunk) {
  ChunkReader reader(Chat());
  ReadOne(reader, Delta(R"({"content":"a"})"));
  EXPECT_FALSE(reader.usage());
  ReadOne(
      reader,
      R"({"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10,"prompt_tokens_details":null}})");
  ASSERT_TRUE(reader.usage());
  EXPECT_EQ(reader.usage()->prompt_tokens, 9);
  EXPECT_EQ(reader.usage()->choice, 0);
  ReadOne(
      reader,
      R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}})");
  ASSERT_TRUE(reader.usage());
  EXPECT_EQ(reader.usage()->completion_tokens, 5);
  EXPECT_EQ(reader.usage()->cached_tokens, 4);
  EXPECT_EQ(reader.usage()->cache_write_tokens, 2);
  EXPECT_EQ(reader.usage()->reasoning_tokens, 3);
  EXPECT_EQ(reader.usage()->choice, -1);
  ReadOne(reader, R"({"choices":[],"usage":null})");
  EXPECT_FALSE(reader.usage());
  ReadOne(reader, R"({"choices":[],"usage":{"prompt_tokens":1e30,"completion_tokens":-3}})");
  EXPECT_EQ(reader.usage()->prompt_tokens, -1)
      << "a number beyond 64 bits is invalid, like a negative one";
  EXPECT_EQ(reader.usage()->completion_tokens, -3);
}

TEST(ChunkReader, ReadsTheReasoningTokensOfSglang) {
  ChunkReader reader(Chat());
  ReadOne(
      reader,
      R"({"choices":[],"usage":{"prompt_tokens":9,"total_tokens":14,"completion_tokens":5,"prompt_tokens_details":null,"reasoning_tokens":3}})");
  ASSERT_TRUE(reader.usage());
  EXPECT_EQ(reader.usage()->reasoning_tokens, 3);
}

// llama.cpp, with n: 2.
TEST(ChunkReader, AReportAfterTheEndOfAChoiceIsOfThatChoice) {
  const auto report = [](int tokens) {
    return R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":)" +
           std::to_string(tokens) + "}}";
  };
  const auto finish = [](int choice) {
    return R"({"choices":[{"finish_reason":"length","index":)" + std::to_string(choice) +
           R"(,"delta":{}}]})";
  };
  ChunkReader::Options options = Chat(2);
  options.usage_follows_choice = true;
  ChunkReader reader(options);
  ReadOne(reader, finish(1));
  ReadOne(reader, report(5));
  EXPECT_EQ(reader.usage()->choice, 1);
  ReadOne(reader, finish(0));
  ReadOne(reader, report(7));
  EXPECT_EQ(reader.usage()->choice, 0);
  ReadOne(reader, report(12));
  EXPECT_EQ(reader.usage()->choice, -1) << "one for each";

  ChunkReader of_others(Chat(2));
  ReadOne(of_others, finish(1));
  ReadOne(of_others, report(12));
  EXPECT_EQ(of_others.usage()->choice, -1) << "of all choices";
}

TEST(ChunkReader, AnErrorInTheStreamIsClassifiedAndItsTextDropped) {
  const std::pair<const char*, ErrorId> rows[] = {
      {R"({"error":{"message":"CUDA out of memory: secret","type":"InternalServerError","code":500}})",
       ErrorId::kServerError},
      {R"({"object":"error","message":"secret","type":"InternalServerError","code":500})",
       ErrorId::kServerError},
      {R"({"error":"secret","error_type":"generation"})", ErrorId::kUpstreamError}};
  for (const auto& [data, id] : rows) {
    ChunkReader reader(Chat());
    ReadOne(reader, data, Status::kError);
    EXPECT_EQ(reader.failure().error.id, id) << data;
    EXPECT_EQ(reader.failure().error.ToString().find("secret"), std::string::npos);
  }
}

TEST(ChunkReader, ANullErrorMemberIsNotAnError) {
  ChunkReader reader(Chat());
  EXPECT_EQ(ReadOne(reader, R"({"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]})"),
            "c(a);");
}

TEST(ChunkReader, InvalidChunksAreUpstreamErrors) {
  for (const char* data :
       {"{", "[]", "\"x\"", "nonsense", "{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}"}) {
    ChunkReader reader(Chat());
    ReadOne(reader, data, Status::kError);
    EXPECT_EQ(reader.failure().error.id, ErrorId::kUpstreamError) << data;
  }
  ChunkReader reader(Chat());
  ReadOne(reader, "  ");
  ReadOne(reader, "null");  // llama.cpp, before the answers to several prompts
  ReadOne(reader, " [DONE] ", Status::kDone);
}

TEST(ChunkReader, ReadsCompletionText) {
  ChunkReader::Options options = Chat();
  options.kind = inference::v1::REQUEST_KIND_COMPLETION;
  ChunkReader reader(options);
  EXPECT_EQ(
      ReadOne(
          reader,
          R"({"object":"text_completion","choices":[{"index":0,"text":"abc","finish_reason":"length"}]})"),
      "c(abc)[2];");
}

TEST(ChunkReader, AcceptsACompleteResponseFromAnEngineThatDoesNotStream) {
  ChunkReader reader(Chat());
  std::vector<Event> events;
  EXPECT_EQ(
      reader.ReadWhole(
          R"({"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","reasoning":"r","content":"hi",
     "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},
     "finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}})",
          events),
      Status::kDone);
  EXPECT_EQ(Show(events), "c(hi)r(r)t(f:{})t(g:{})[3];");
  EXPECT_EQ(reader.usage()->completion_tokens, 4);
  EXPECT_TRUE(reader.finished());
  for (const char* bad : {"", "<html>", "{}", "[]"}) {
    ChunkReader broken(Chat());
    EXPECT_EQ(broken.ReadWhole(bad, events), Status::kError) << bad;
  }
}

TEST(ChunkReader, JoinsASplitSurrogatePair) {
  ChunkReader reader(Chat());
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"a\uD83D"})")), "c(a);");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"\uDE00b"})")), R"(c(\uD83D\uDE00b);)");
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"\\uD83D"})")), R"(c(\\uD83D);)")
      << "an escaped backslash";
  EXPECT_EQ(ReadOne(reader, Delta(R"({"content":"\ud83d"})")), "");
  EXPECT_EQ(ReadOne(reader, Delta("{}", R"("finish_reason":"stop")")), R"(c(\ufffd)[1];)");
}

}  // namespace
}  // namespace tollgate::inference_router
