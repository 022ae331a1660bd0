// Engines that never end, drip, or flood: each answer has limits on bytes, items and time, a
// regular end, and one settlement (H75, decisions 7, 22).
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

// One event of a stream with these members of choice 0, as a member of raw_chunks.
std::string Chunk(const std::string& choice) {
  return R"({"choices":[{"index":0,)" + choice + "}]}";
}
std::string Text(const std::string& text) {
  return Chunk(R"("delta":{"content":")" + text + "\"}");
}
std::string Call(const std::string& items) {
  return Chunk(R"("delta":{"tool_calls":[)" + items + "]}");
}

class RequestRunBounds : public RequestRunTest {
 protected:
  RequestRunBounds() {
    options_.run.first_output_timeout_ms = 60'000;
    options_.run.idle_timeout_ms = 60'000;
  }
  // The engine sends these chunks and then repeats the last one forever.
  void Endless(const std::string& chunks, const std::string& more = "") {
    Script(R"("repeat_last":-1,"raw_chunks":[)" + chunks + "]" + more);
  }
  billing::v1::SettleOp OnlySettle() {
    const auto settles = ledger_.Settles();
    EXPECT_EQ(settles.size(), 1u);
    EXPECT_EQ(journal_->in_use(), 0);
    return settles.empty() ? billing::v1::SettleOp() : settles.back().settle();
  }
  // Expects that this limit ended the answer. limit: its name in the metric.
  void ExpectCut(const Outcome& outcome, const std::string& limit) {
    ASSERT_TRUE(outcome.ended());
    EXPECT_EQ(outcome.end().error().error(), "upstream_error");
    EXPECT_TRUE(outcome.end().error().internal().find(limit) != std::string::npos)
        << outcome.end().error().internal();
    EXPECT_TRUE(first_.WaitFor([](const auto& sim) { return sim.running() == 0; }))
        << "the engine's work is aborted";
  }
  void ExpectFree(const Outcome& outcome, const std::string& limit) {
    ExpectCut(outcome, limit);
    EXPECT_FALSE(outcome.started());
    EXPECT_EQ(outcome.end().charged_nano_usd(), 0);
    EXPECT_EQ(OnlySettle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  }
  // tokens: lower bound of the delivered tokens.
  void ExpectCharged(const Outcome& outcome, const std::string& limit, int64_t tokens) {
    ExpectCut(outcome, limit);
    const auto settle = OnlySettle();
    EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_FAILED_MID_STREAM);
    EXPECT_GE(settle.usage().completion_tokens(), tokens);
    EXPECT_GT(outcome.end().charged_nano_usd(), 0);
  }
};

TEST_F(RequestRunBounds, CommentsAreNoFirstOutput) {
  options_.run.first_output_timeout_ms = 200;
  Endless(R"(": keep-alive\n\n")", R"(,"token_ms":20)");
  ExpectFree(Run(), "first_output");
}

TEST_F(RequestRunBounds, EventsWithoutOutputAreNoFirstOutput) {
  options_.run.first_output_timeout_ms = 200;
  Endless(Chunk(R"("delta":{"role":"assistant","content":""})"), R"(,"token_ms":20)");
  ExpectFree(Run(), "first_output");
}

TEST_F(RequestRunBounds, BytesThatCompleteNoEventAreNoOutput) {
  options_.run.idle_timeout_ms = 200;
  Endless(Text("a") + R"(,"data: {\"choices\":["," ")", R"(,"token_ms":20)");
  ExpectCharged(Run(), "silence", 1);
}

TEST_F(RequestRunBounds, CommentsAfterOutputAreSilence) {
  options_.run.idle_timeout_ms = 200;
  Endless(Text("a") + R"(,": keep-alive\n\n")", R"(,"token_ms":20)");
  ExpectCharged(Run(), "silence", 1);
}

TEST_F(RequestRunBounds, AHeadThatDripsIsNoOutput) {
  options_.run.first_output_timeout_ms = 200;
  Endless(R"("{")", R"(,"token_ms":20,"raw_type":"application/json")");
  ExpectFree(Run(), "first_output");
}

// Some engines send events without text while they parse a tool call.
TEST_F(RequestRunBounds, AGrowingCompletionCountIsOutput) {
  options_.run.idle_timeout_ms = 2'000;
  std::string chunks = Text("a");
  for (int i = 2; i < 12; ++i) {
    chunks += R"(,{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":5,)"
              R"("completion_tokens":)" +
              std::to_string(i) + "}}";
  }
  Script(R"("token_ms":350,"raw_chunks":[)" + chunks + "," + Chunk(R"("finish_reason":"stop")") +
         R"(,"data: [DONE]\n\n"])");
  EXPECT_FALSE(Run().end().has_error());
}

TEST_F(RequestRunBounds, AnAnswerHasATimeInAll) {
  options_.run.answer_timeout_ms = 2'000;
  Endless(Text("a"), R"(,"token_ms":20)");
  ExpectCharged(Run(), "answer_time", 2);
}

// The router waits for its client here, not for the engine.
TEST_F(RequestRunBounds, ASlowClientIsNotTheEnginesSilence) {
  options_.run.idle_timeout_ms = 1'000;
  Script(R"("tokens":20)");
  const Outcome outcome = Run([&](Loop& loop, RecordingSink& sink) {
    sink.blocked = true;
    loop.RunAfter(2'500, [&sink] { sink.Unblock(); });
  });
  EXPECT_FALSE(outcome.end().has_error()) << outcome.end().error().internal();
}

TEST_F(RequestRunBounds, AnEndlessStreamIsCutByItsBytes) {
  options_.run.max_answer_bytes = 100'000;
  Endless(Text(std::string(1000, 'x')));
  const Outcome outcome = Run();
  ExpectCharged(outcome, "answer_bytes", 90);
  EXPECT_LE(outcome.text().size(), 100'000u);
}

TEST_F(RequestRunBounds, ReasoningAndLogprobsCountToo) {
  options_.run.max_answer_bytes = 100'000;
  for (const std::string& chunk :
       {Chunk(R"("delta":{"reasoning_content":")" + std::string(1000, 'x') + "\"}"),
        Chunk(R"("delta":{"content":"x"},"logprobs":{"content":[")" + std::string(1000, 'x') +
              "\"]}")}) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Endless(chunk);
    ExpectCharged(Run(), "answer_bytes", 50);
  }
}

TEST_F(RequestRunBounds, AnEndlessAnswerThatIsNotStreamedCostsNothing) {
  options_.run.max_answer_bytes = 1 << 20;
  Endless("\"" + std::string(16'384, ' ') + "\"", R"(,"raw_type":"application/json")");
  ExpectFree(Run(), "answer_bytes");
}

TEST_F(RequestRunBounds, ArgumentsWithoutANameAreBounded) {
  options_.run.max_answer_bytes = 100'000;
  Endless(Call(R"({"index":0,"function":{"arguments":")" + std::string(1000, 'x') + "\"}}"));
  ExpectFree(Run(), "answer_bytes");
}

TEST_F(RequestRunBounds, TheArgumentsOfOneCallAreBounded) {
  Endless(Call(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})") + "," +
          Call(R"({"index":0,"function":{"arguments":")" + std::string(100'000, 'x') + "\"}}"));
  ExpectCharged(Run(), "tool_arguments", 1);
}

TEST_F(RequestRunBounds, InterleavedCallsAreBoundedTogether) {
  options_.run.max_answer_bytes = 100'000;
  const std::string open = R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}},)"
                           R"({"index":1,"id":"b","function":{"name":"g","arguments":"{"}})";
  const std::string more = R"({"index":0,"function":{"arguments":"1"}},)"
                           R"({"index":1,"function":{"arguments":"2"}})";
  Endless(Call(open) + "," + Call(more));
  ExpectCharged(Run(), "answer_bytes", 2);
}

TEST_F(RequestRunBounds, TheNumberOfCallsIsBounded) {
  std::string calls;
  for (int i = 0; i < 300; ++i) {
    calls += std::string(i > 0 ? "," : "") + R"({"index":)" + std::to_string(i) +
             R"(,"id":"a","function":{"name":"f","arguments":"{}"}})";
  }
  Script(R"("raw_chunks":[)" + Call(calls) + "]");
  ExpectFree(Run(), "tool_calls");
}

TEST_F(RequestRunBounds, HugeIndexesAreIgnored) {
  std::string calls = R"({"index":9223372036854775807,"id":"a","function":{"name":"f",)"
                      R"("arguments":"{}"}})";
  Script(R"("raw_chunks":[{"choices":[{"index":9223372036854775807,"delta":{"content":"x"}},)"
         R"({"index":4294967296,"delta":{"content":"x"}},{"index":-1,"delta":{"content":"x"}}]},)" +
         Call(calls) + "," + Chunk(R"("finish_reason":"stop")") + R"(,"data: [DONE]\n\n"])");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.text(), "");
  ASSERT_GE(outcome.deltas(), 1);
  EXPECT_EQ(outcome.events[1].delta().tool_calls(0).index(), 0);
}

TEST_F(RequestRunBounds, AFloodOfEmptyEventsIsCut) {
  std::string events;
  for (int i = 0; i < 1000; ++i) events += R"(data: {\"choices\":[]}\n\n)";
  Endless("\"" + events + "\"");
  ExpectFree(Run(), "silent_events");
}

TEST_F(RequestRunBounds, AFloodOfCommentsIsCut) {
  std::string comments;
  for (int i = 0; i < 1000; ++i) comments += ": " + std::string(60, 'x') + R"(\n\n)";
  Endless("\"" + comments + "\"");
  ExpectFree(Run(), "silent_events");
}

// The engine keeps the connection open, so only the bytes say that no answer follows. A caller who
// streams gets the status of the error only if it comes before the first keep-alive.
TEST_F(RequestRunBounds, WhatCannotBecomeAnAnswerFailsAtOnce) {
  const std::string head = "HTTP/1.1 200 OK\\r\\ncontent-type: ";
  for (const std::string& response :
       {head + "text/html\\r\\n\\r\\n<html>", head + "text/event-stream\\r\\n\\r\\nInternal error",
        head + "text/event-stream\\r\\n\\r\\ndata: not JSON",
        head + "application/json\\r\\n\\r\\nInternal error",
        head + "text/event-stream\\r\\ncontent-length: 0\\r\\n\\r\\n",
        head + "text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n"}) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Script(R"("raw_end":"hang","raw_response":")" + response + "\"");
    const Outcome outcome = Run();
    ASSERT_TRUE(outcome.ended()) << response;
    EXPECT_FALSE(outcome.started()) << response;
    EXPECT_EQ(outcome.end().error().message(), "The model's engine ended its response early.")
        << response << "\n"
        << outcome.end().error().internal();
    EXPECT_EQ(OnlySettle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT) << response;
  }
}

// The status says enough; only the text of the error is missing.
TEST_F(RequestRunBounds, TheTextOfAnErrorIsWaitedForBriefly) {
  Script(
      R"("raw_end":"hang","raw_response":"HTTP/1.1 400 Bad Request\r\ncontent-length: 9\r\n\r\n{")");
  EXPECT_EQ(Run().end().error().error(), "bad_request");
}

TEST_F(RequestRunBounds, AnotherEngineIsTriedBeforeOutput) {
  options_.run.max_answer_bytes = 1 << 20;
  UseEngines(2);
  first_.SetDefaultScript(R"({"repeat_last":-1,"raw_type":"application/json","raw_chunks":[")" +
                          std::string(16'384, ' ') + R"("]})");
  Script(R"("tokens":3)");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(OnlySettle().usage().completion_tokens(), 3);
}

TEST_F(RequestRunBounds, EndlessAndDrippingEmbeddingsCostNothing) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("{\"data\":["," ")", "answer_bytes"},
      {R"("{\"data\":[{\"embedding\":[1","0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0")",
       "answer_bytes"},
      {R"("{\"data\":["," ")", "first_output"},
  };
  for (const auto& [chunks, limit] : rows) {
    SCOPED_TRACE(chunks);
    const bool drip = std::string(limit) == "first_output";
    options_.run.first_output_timeout_ms = drip ? 200 : 60'000;
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    request_.set_kind(inference::v1::REQUEST_KIND_EMBEDDING);
    std::string padded(chunks);
    if (!drip) padded.insert(padded.size() - 1, std::string(8000, ' '));
    request_.set_members_json(R"("input":"x","x_sim":{"repeat_last":-1,"raw_type":)"
                              R"("application/json","token_ms":)" +
                              std::string(drip ? "20" : "0") + R"(,"raw_chunks":[)" + padded +
                              "]}");
    ExpectFree(Run(), limit);
  }
}

}  // namespace
}  // namespace tollgate::inference_router
