// Answers that the caller does not stream, requested from the engine without streaming (decision
// 42).
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class WholeAnswerTest : public RequestRunTest {
 protected:
  WholeAnswerTest() {
    request_.set_streamed(false);
    request_.set_max_tokens(100);
  }
  bool AskedToStream() { return first_.requests().back().stream; }
  EngineState& Engine() { return *table_.Get()->engines()[0]; }
  void MeasurePace(int64_t us_per_token) {
    for (size_t i = 0; i < TokenPace::kLeastAnswers; ++i) {
      Engine().pace().NoteAnswer(us_per_token * 100, 100);
    }
  }
};

struct Joined {
  std::string text, reasoning, calls;
  inference::v1::FinishReason finish;
  int64_t prompt_tokens, completion_tokens;
  friend bool operator==(const Joined&, const Joined&) = default;
};

Joined Join(const Outcome& outcome) {
  Joined joined{.text = outcome.text(),
                .reasoning = "",
                .calls = "",
                .finish = outcome.finish(),
                .prompt_tokens = outcome.end().usage().prompt_tokens(),
                .completion_tokens = outcome.end().usage().completion_tokens()};
  for (const auto& event : outcome.events) {
    joined.reasoning += event.delta().reasoning_json();
    for (const auto& call : event.delta().tool_calls()) {
      joined.calls += call.name_json() + call.arguments_json();
    }
  }
  return joined;
}

TEST_F(WholeAnswerTest, ItIsTheSameAnswerAtTheSamePrice) {
  for (
      const char* script :
      {R"("tokens":40)", R"("tokens":400)", R"("reasoning_tokens":7,"tokens":20)",
       R"("tool_calls":[{"name":"f","arguments":{"city":"Zürich \"x\""}},{"name":"g","arguments":{}}])",
       R"("text":"a \"quoted\" text\n\u0000 with 🚀")"}) {
    Script(script);
    request_.set_request_id(Id::New().ToBytes());
    options_.run.unstreamed_max_tokens = 2048;
    const Outcome whole = Run();
    ASSERT_TRUE(whole.ended() && !whole.end().has_error()) << script;
    EXPECT_FALSE(AskedToStream()) << script;
    request_.set_request_id(Id::New().ToBytes());
    options_.run.unstreamed_max_tokens = -1;
    const Outcome streamed = Run();
    EXPECT_TRUE(AskedToStream()) << script;
    EXPECT_TRUE(Join(whole) == Join(streamed))
        << script << "\n"
        << Join(whole).text << Join(whole).calls << whole.end().ShortDebugString() << "\n"
        << Join(streamed).text << Join(streamed).calls << streamed.end().ShortDebugString();
    // This engine does not report reasoning tokens, so they are computed from the shares of the
    // bytes.
    EXPECT_NEAR(static_cast<double>(whole.end().usage().reasoning_tokens()),
                static_cast<double>(streamed.end().usage().reasoning_tokens()), 2)
        << script;
    EXPECT_EQ(whole.end().charged_nano_usd(), streamed.end().charged_nano_usd()) << script;
  }
  EXPECT_EQ(ledger_.Count(billing::v1::MeterOp::kExtend), 0);
}

TEST_F(WholeAnswerTest, WhatMayHaveToBeCutIsStreamed) {
  Script(R"("tokens":20)");
  const auto asked_to_stream = [&] {
    request_.set_request_id(Id::New().ToBytes());
    EXPECT_FALSE(Run().end().has_error());
    return AskedToStream();
  };
  EXPECT_FALSE(asked_to_stream());
  request_.mutable_hold()->set_authorized_nano_usd(1000 + 2 * 99);
  EXPECT_TRUE(asked_to_stream()) << "the hold does not pay for all";
  request_.mutable_hold()->set_authorized_nano_usd(1000 + 2 * 100);
  EXPECT_FALSE(asked_to_stream());
  request_.mutable_hold()->set_authorized_nano_usd(1'000'000);
  request_.set_max_tokens(2049);
  EXPECT_TRUE(asked_to_stream()) << "too long to wait without any output";
  request_.set_max_tokens(0);
  EXPECT_TRUE(asked_to_stream()) << "no bound";
  request_.set_max_tokens(100);
  request_.set_streamed(true);
  EXPECT_TRUE(asked_to_stream());
}

TEST_F(WholeAnswerTest, ACallerWhoLeavesPaysThePrompt) {
  Script(R"("tokens":50,"delay_ms":60000)");
  request_.set_prompt_tokens_estimate(12);
  Run([&](Loop& loop, RecordingSink& sink) {
    loop.Spawn([](Loop& loop, test::EngineSim& engine, RecordingSink& sink) -> Task<void> {
      while (engine.running() == 0) co_await loop.Sleep(5);
      sink.Cancel();
    }(loop, first_, sink));
  });
  EXPECT_TRUE(first_.WaitFor([](const test::EngineSim& sim) { return sim.running() == 0; }));
  ASSERT_EQ(ledger_.Settles().size(), 1U);
  const auto& settle = ledger_.Settles()[0].settle();
  EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_CLIENT_GONE);
  EXPECT_EQ(settle.usage().prompt_tokens(), 12);
  EXPECT_EQ(settle.usage().completion_tokens(), 0);
  EXPECT_TRUE(settle.estimated());
}

TEST_F(WholeAnswerTest, OneThatNobodyCanGetIsFree) {
  Script(R"("tokens":50,"delay_ms":60000)");
  Run([&](Loop& loop, RecordingSink& sink) {
    loop.Spawn([](Loop& loop, test::EngineSim& engine, RecordingSink& sink) -> Task<void> {
      while (engine.running() == 0) co_await loop.Sleep(5);
      sink.lost = true;
      sink.Cancel();
    }(loop, first_, sink));
  });
  ASSERT_EQ(ledger_.Settles().size(), 1U);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

TEST_F(WholeAnswerTest, ARefusalOfTheEngineIsFreeAndSoIsACutAnswer) {
  for (const char* script : {R"("status":400)", R"("cut_before_headers":true)",
                             R"("tokens":50,"cut_after_tokens":10)"}) {
    Script(script);
    request_.set_request_id(Id::New().ToBytes());
    ledger_.ops.clear();
    const Outcome outcome = Run();
    EXPECT_TRUE(outcome.end().has_error()) << script;
    EXPECT_FALSE(outcome.started()) << script;
    ASSERT_EQ(ledger_.Settles().size(), 1U) << script;
    EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT)
        << script;
  }
}

// The engine sends nothing before its answer, so only health checks detect that it is lost.
TEST_F(WholeAnswerTest, AnEngineThatIsLostWithoutAWordIsLeft) {
  options_.heartbeat_ms = 20;
  options_.run.lost_engine_ms = 50;
  UseEngines(1);
  Script(R"("tokens":50,"hang_after_tokens":0)");
  const Outcome outcome = Run([&](Loop& loop, RecordingSink&) {
    loop.Spawn([](Loop& loop, test::EngineSim& engine, TableHolder& table) -> Task<void> {
      while (engine.running() == 0) co_await loop.Sleep(5);
      table.Get()->engines()[0]->OnHealthFailure(true, SystemClock::Get().MonotonicUs());
    }(loop, first_, table_));
  });
  EXPECT_TRUE(outcome.end().has_error());
  ASSERT_EQ(ledger_.Settles().size(), 1U);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

// ADR 0058: a caller who does not stream waits for an engine that accepts and never answers no
// longer than its pace explains.
TEST_F(WholeAnswerTest, AnEngineHasTheTimeThatItsPaceExplains) {
  options_.heartbeat_ms = 20;
  options_.run.first_output_timeout_ms = 100;
  UseEngines(1);
  MeasurePace(1'000);
  Script(R"("tokens":50,"hang_after_tokens":0)");
  const Outcome outcome = Run();
  EXPECT_FALSE(AskedToStream());
  EXPECT_EQ(outcome.end().error().internal(), "above the bound first_output");
  ASSERT_EQ(ledger_.Settles().size(), 1U);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(Engine().pace().p99_us(), 0) << "it is measured again";
}

TEST_F(WholeAnswerTest, AnEngineThatReportsAQueueHasTheWholeTime) {
  options_.heartbeat_ms = 20;
  options_.run.first_output_timeout_ms = 1;
  UseEngines(1);
  MeasurePace(1);
  EngineLoad load;
  load.queued = 3;
  load.fresh_until_us = INT64_MAX;
  Engine().NoteLoad(load);
  Script(R"("tokens":50,"delay_ms":300)");
  EXPECT_FALSE(Run().end().has_error());
  EXPECT_FALSE(AskedToStream());
  options_.run.unstreamed_answer_ms = 400;
  request_.set_request_id(Id::New().ToBytes());
  Script(R"("tokens":50,"hang_after_tokens":0)");
  EXPECT_EQ(Run().end().error().internal(), "above the bound first_output");
}

TEST_F(WholeAnswerTest, WhatCouldTakeTooLongAtTheEnginesPaceIsStreamed) {
  UseEngines(1);
  Script(R"("tokens":50)");
  const auto asked_to_stream = [&] {
    request_.set_request_id(Id::New().ToBytes());
    EXPECT_FALSE(Run().end().has_error());
    return AskedToStream();
  };
  options_.run.unstreamed_answer_ms = 104'999;  // 5 s for the first token, 1 s for each of 100
  EXPECT_TRUE(asked_to_stream()) << "not measured";
  MeasurePace(10'000);
  EXPECT_FALSE(asked_to_stream());
  Engine().pace().Forget();
  MeasurePace(300'000);
  EXPECT_TRUE(asked_to_stream()) << "slow";
}

TEST_F(WholeAnswerTest, AnswersOfCallersWhoDoNotStreamMeasureThePace) {
  UseEngines(1);
  Script(R"("tokens":50)");
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    for (size_t i = 0; i < TokenPace::kLeastAnswers; ++i) {
      EXPECT_EQ(Engine().pace().p99_us(), 0);
      request_.set_request_id(Id::New().ToBytes());
      EXPECT_FALSE(Run().end().has_error());
    }
  }
  EXPECT_GT(Engine().pace().p99_us(), 0);
}

TEST_F(WholeAnswerTest, WithoutACountTheTokensFollowFromTheSize) {
  Script(R"("text":"twenty-three characters","usage":"none")");
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 5);
  EXPECT_TRUE(outcome.end().estimated());
}

// An impossible count is treated like a missing one: the answer is charged neither as one token nor
// with the engine's count.
TEST_F(WholeAnswerTest, AnImplausibleCountIsReplacedByTheSize) {
  for (const char* usage : {"absurd", "negative"}) {
    Script(std::string(R"("text":"twenty-three characters","usage":")") + usage + R"(")");
    request_.set_request_id(Id::New().ToBytes());
    const Outcome outcome = Run();
    EXPECT_EQ(outcome.end().usage().completion_tokens(), 5) << usage;
    EXPECT_TRUE(outcome.end().estimated()) << usage;
  }
}

// Only a positive plausible number is a count.
TEST_F(WholeAnswerTest, AnUnusableCountIsReplacedByTheSize) {
  for (const char* usage : {
           R"({"prompt_tokens":null,"completion_tokens":null,"total_tokens":null})",
           R"({"prompt_tokens":"7","completion_tokens":"90","total_tokens":"97"})",
           R"({"total_tokens":97})",
           R"({})",
           R"({"prompt_tokens":7,"completion_tokens":0,"total_tokens":7})",
           R"({"prompt_tokens":7,"completion_tokens":1.5,"total_tokens":8.5})",
       }) {
    Script(std::string(R"("text":"twenty-three characters","usage":)") + usage);
    request_.set_request_id(Id::New().ToBytes());
    const Outcome outcome = Run();
    EXPECT_EQ(outcome.end().usage().completion_tokens(), 5) << usage;
    EXPECT_TRUE(outcome.end().estimated()) << usage;
  }
}

}  // namespace
}  // namespace tollgate::inference_router
