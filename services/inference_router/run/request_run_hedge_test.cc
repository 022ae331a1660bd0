// A second engine is asked when the first one has sent nothing (ADR 0037): one answer, charged
// once, and no running request on the other engine.
#include <gtest/gtest.h>

#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunHedgeTest : public RequestRunTest {
 protected:
  // Never ends during a test.
  static constexpr char kSilent[] = R"({"delay_ms":600000})";

  RequestRunHedgeTest() {
    UseEngines(2);
    options_.run.hedge_after_ms = 20;
    Script("");
  }
  // Makes the first engine the first choice.
  Outcome Ask(const std::string& first, const std::string& second,
              std::function<void(Loop&, RecordingSink&)> prepare = {}) {
    first_.SetDefaultScript(first);
    second_.SetDefaultScript(second);
    const EnginePointer& busy = table_.Get()->engines()[1];
    EXPECT_TRUE(busy->TryEnter(100'000));
    Outcome outcome = Run(std::move(prepare));
    busy->Leave(100'000);
    return outcome;
  }
  // Both engines have stopped, the places are free, and the ledger got one settlement.
  void ExpectOneEnd() {
    for (const test::EngineSim* sim : {&first_, &second_}) {
      EXPECT_TRUE(
          sim->WaitFor([](const test::EngineSim& engine) { return engine.running() == 0; }));
    }
    for (const auto& engine : table_.Get()->engines()) EXPECT_EQ(engine->running(), 0);
    EXPECT_EQ(ledger_.Settles().size(), 1u);
    EXPECT_EQ(journal_->in_use(), 0u);
  }
  static double Hedges(const std::string& result) {
    return metrics::Counter("tollgate_router_hedges_total", "", {{"result", result}}).Value();
  }
};

TEST_F(RequestRunHedgeTest, TheSecondEngineAnswersForOneThatIsSilent) {
  const double won = Hedges("won");
  const Outcome outcome = Ask(kSilent, R"({"tokens":5})");
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 5);
  EXPECT_EQ(Hedges("won"), won + 1);
  EXPECT_EQ(first_.totals().requests, 1);
  EXPECT_EQ(second_.totals().requests, 1);
  ExpectOneEnd();
  EXPECT_EQ(ledger_.Settles()[0].settle().engine_id(), "second");
  EXPECT_EQ(ledger_.Settles()[0].settle().usage().completion_tokens(), 5);
}

TEST_F(RequestRunHedgeTest, TheFirstEngineGoesOnWhenItAnswersFirst) {
  const double lost = Hedges("lost");
  const Outcome outcome = Ask(R"({"delay_ms":1500,"tokens":7})", kSilent);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 7);
  EXPECT_EQ(Hedges("lost"), lost + 1);
  EXPECT_EQ(second_.totals().requests, 1);
  ExpectOneEnd();
  EXPECT_EQ(ledger_.Settles()[0].settle().engine_id(), "first");
}

TEST_F(RequestRunHedgeTest, AnAnswerInTimeAsksNoOther) {
  options_.run.hedge_after_ms = 60'000;
  EXPECT_EQ(Ask(R"({"tokens":3})", kSilent).end().usage().completion_tokens(), 3);
  EXPECT_EQ(second_.totals().requests, 0);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, AnAnswerThatHasBegunIsNotAskedForAgain) {
  options_.run.hedge_after_ms = 2'000;
  const Outcome outcome = Ask(R"({"tokens":20,"token_ms":150})", R"({"tokens":1})");
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 20);
  EXPECT_EQ(second_.totals().requests, 0);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, ASecondEngineThatFailsChangesNothing) {
  const Outcome outcome = Ask(R"({"delay_ms":1500,"tokens":4})", R"({"status":500})");
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 4);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, AFirstEngineThatFailsLeavesItToTheSecond) {
  const Outcome outcome = Ask(R"({"delay_ms":100,"status":500})", R"({"delay_ms":300,"tokens":6})");
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 6);
  ExpectOneEnd();
  EXPECT_EQ(ledger_.Settles()[0].settle().engine_id(), "second");
}

TEST_F(RequestRunHedgeTest, WhenBothFailItIsFreeAndNoThirdTryIsMade) {
  const double failed = Hedges("failed");
  const Outcome outcome =
      Ask(R"({"delay_ms":1500,"status":500})", R"({"delay_ms":50,"status":500})");
  EXPECT_EQ(outcome.end().error().error(), "server_error");
  EXPECT_EQ(first_.totals().requests + second_.totals().requests, 2);
  EXPECT_EQ(Hedges("failed"), failed + 1);
  ExpectOneEnd();
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

TEST_F(RequestRunHedgeTest, AnAnswerAboutTheRequestEndsBoth) {
  const Outcome outcome = Ask(R"({"delay_ms":1500,"status":400})", kSilent);
  EXPECT_EQ(outcome.end().error().error(), "bad_request");
  EXPECT_EQ(second_.totals().requests, 1);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, ACallerWhoLeavesEndsBoth) {
  Ask(kSilent, kSilent, [this](Loop& loop, RecordingSink& sink) {
    loop.Spawn([](Loop& loop, RecordingSink& sink, test::EngineSim& second) -> Task<void> {
      while (second.running() == 0) co_await loop.Sleep(1);
      sink.Cancel();
    }(loop, sink, second_));
  });
  ExpectOneEnd();
  EXPECT_EQ(ledger_.Settles()[0].settle().usage().completion_tokens(), 0);
}

TEST_F(RequestRunHedgeTest, WithoutABudgetTheFirstEngineIsWaitedFor) {
  RetryBudget& budget = *table_.Get()->Find("ns/m")->retries;
  // Uses up the budget an hour ahead of the clock, so that the time that passes during the test
  // grants no further attempt.
  while (budget.TryTake(SystemClock::Get().MonotonicUs() + 3'600'000'000)) {
  }
  const double refused = Hedges("refused");
  EXPECT_EQ(Ask(R"({"delay_ms":1500,"tokens":2})", "{}").end().usage().completion_tokens(), 2);
  EXPECT_EQ(second_.totals().requests, 0);
  EXPECT_EQ(Hedges("refused"), refused + 1);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, WithoutAPlaceTheFirstEngineIsWaitedFor) {
  UseEngines(2, 1);
  const double none = Hedges("no_engine");
  EXPECT_EQ(Ask(R"({"delay_ms":1500,"tokens":2})", "{}").end().usage().completion_tokens(), 2);
  EXPECT_EQ(second_.totals().requests, 0);
  EXPECT_EQ(Hedges("no_engine"), none + 1);
  ExpectOneEnd();
}

TEST_F(RequestRunHedgeTest, AWholeAnswerIsAskedOnce) {
  request_.set_streamed(false);
  request_.set_max_tokens(100);
  EXPECT_EQ(Ask(R"({"delay_ms":100,"tokens":2})", "{}").end().usage().completion_tokens(), 2);
  EXPECT_EQ(second_.totals().requests, 0);
  ExpectOneEnd();
}

}  // namespace
}  // namespace tollgate::inference_router
