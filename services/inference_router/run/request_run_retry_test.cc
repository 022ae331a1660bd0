// A retry on another engine (ADR 0030): within the pool's budget, not before the time that an
// engine has asked for, and never billed twice.
#include <gtest/gtest.h>

#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunRetryTest : public RequestRunTest {
 protected:
  RequestRunRetryTest() { UseEngines(2); }
  RetryBudget& budget() { return *table_.Get()->Find("ns/m")->retries; }
  int64_t NowUs() const { return SystemClock::Get().MonotonicUs(); }
  // Uses up the budget an hour ahead of the clock, so that the time that passes during the test
  // grants no further attempt.
  void UseUpBudget() {
    while (budget().TryTake(NowUs() + 3'600'000'000)) {
    }
  }
  Outcome Ask(const std::string& script) {
    Script(script);
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    return Run();
  }
  int64_t asked() { return first_.totals().requests + second_.totals().requests; }
};

TEST_F(RequestRunRetryTest, WithinTheBudgetAnotherEngineIsAskedAndOneAnswerIsBilled) {
  const double retries = metrics_.retries.Value();
  const Outcome outcome = Ask(R"("status":500)");
  EXPECT_TRUE(outcome.end().has_error());
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(metrics_.retries.Value(), retries + 1);
  EXPECT_EQ(ledger_.Settles().size(), 1u);
}

TEST_F(RequestRunRetryTest, WhenTheBudgetIsUsedUpTheFirstFailureIsTheAnswer) {
  UseUpBudget();
  const double refused = metrics_.retries_refused.Value();
  const Outcome outcome = Ask(R"("status":500)");
  EXPECT_EQ(outcome.end().error().error(), "server_error");
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(metrics_.retries_refused.Value(), refused + 1);
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(ledger_.Settles()[0].settle().usage().prompt_tokens(), 0);
  for (const auto& engine : table_.Get()->engines()) EXPECT_EQ(engine->running(), 0);
}

TEST_F(RequestRunRetryTest, RequestsThatAreAnsweredMakeTheBudget) {
  UseUpBudget();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Ask(R"("tokens":1)").end().has_error());
  EXPECT_TRUE(budget().TryTake(NowUs())) << "a fifth of them";
}

TEST_F(RequestRunRetryTest, AnEngineThatSaidWhenIsNotAskedUntilThen) {
  const Outcome outcome = Ask(R"("status":503,"headers":{"Retry-After":"60"})");
  EXPECT_EQ(outcome.end().error().error(), "service_unavailable");
  EXPECT_EQ(asked(), 2);
  for (const auto& engine : table_.Get()->engines()) {
    EXPECT_GT(engine->PausedUs(NowUs()), 50'000'000);
    EXPECT_TRUE(engine->Available(NowUs())) << "it is up";
  }
  // Longer than any request waits.
  options_.run.queue_ms = 10'000;
  const Outcome next = Ask(R"("tokens":1)");
  EXPECT_EQ(next.end().error().error(), "rate_limited");
  EXPECT_GT(next.end().error().retry_after_ms(), 50'000);
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(ledger_.Settles().size(), 1u);
}

TEST_F(RequestRunRetryTest, AnEngineThatSaidNothingIsAskedAgain) {
  Ask(R"("status":503)");
  EXPECT_FALSE(Ask(R"("tokens":1)").end().has_error());
}

TEST_F(RequestRunRetryTest, ARequestWaitsForTheEndOfAShortPause) {
  UseEngines(1);
  table_.Get()->engines()[0]->PauseUntil(NowUs() + 300'000);
  options_.run.queue_ms = 10'000;
  EXPECT_FALSE(Ask(R"("tokens":1)").end().has_error());
  EXPECT_EQ(table_.Get()->engines()[0]->PausedUs(NowUs()), 0);
}

}  // namespace
}  // namespace tollgate::inference_router
