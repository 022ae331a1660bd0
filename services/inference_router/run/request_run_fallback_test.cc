// Decision 66: a model that fails before any part of the answer was sent leaves the hold to the
// gateway, which asks another model. Every other end settles or releases the hold.
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunFallbackTest : public RequestRunTest {
 protected:
  void SetUp() override { request_.set_keep_hold(true); }
  // Runs the request with a new id.
  Outcome Again(const std::string& script) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Script(script);
    return Run();
  }
  void ExpectKept(const Outcome& outcome, const std::string& error) {
    ASSERT_EQ(outcome.events.size(), 1u);
    EXPECT_EQ(outcome.end().error().error(), error);
    EXPECT_TRUE(outcome.end().hold_kept()) << error;
    EXPECT_TRUE(ledger_.Settles().empty()) << error;
    EXPECT_EQ(journal_->in_use(), 0);
  }
  void ExpectReleased(const Outcome& outcome) {
    EXPECT_FALSE(outcome.end().hold_kept());
    EXPECT_EQ(ledger_.Settles().size(), 1u);
    EXPECT_EQ(journal_->in_use(), 0);
  }
};

TEST_F(RequestRunFallbackTest, AFailureOfTheModelLeavesTheHold) {
  const std::pair<const char*, const char*> rows[] = {{R"("status":404)", "upstream_unreachable"},
                                                      {R"("status":429)", "rate_limited"},
                                                      {R"("status":500)", "server_error"},
                                                      {R"("status":502)", "upstream_error"},
                                                      {R"("status":503)", "service_unavailable"}};
  for (const auto& [script, error] : rows) ExpectKept(Again(script), error);
}

TEST_F(RequestRunFallbackTest, WithoutAnotherModelTheHoldIsReleased) {
  request_.set_keep_hold(false);
  ExpectReleased(Again(R"("status":500)"));
}

TEST_F(RequestRunFallbackTest, ARequestThatTheEngineRefusesAsInvalidIsReleased) {
  const Outcome outcome = Again(R"("status":400)");
  EXPECT_EQ(outcome.end().error().error(), "bad_request");
  ExpectReleased(outcome);
}

TEST_F(RequestRunFallbackTest, ModelsThatAreNotServingLeaveTheHold) {
  UseEngines(0);
  ExpectKept(Again(""), "model_not_serving");
  UseEngines(1);
  request_.set_model("ns/none");
  ExpectKept(Again(""), "model_not_serving");
}

TEST_F(RequestRunFallbackTest, AnAnswerThatHasBegunIsSettledHereWhateverFollows) {
  Outcome outcome = Again(R"("tokens":20,"token_ms":2,"cut_after_tokens":5)");
  if (!outcome.end().has_error()) GTEST_FAIL() << "the engine was not cut";
  EXPECT_TRUE(outcome.started());
  ExpectReleased(outcome);
  outcome = Again(R"("tokens":3)");
  EXPECT_FALSE(outcome.end().has_error());
  ExpectReleased(outcome);
}

Task<void> LeaveDuringTheCount(Loop& loop, const test::EngineSim& engine, RecordingSink& sink) {
  while (engine.totals().tokenizer_requests == 0) co_await loop.Sleep(1);
  sink.Cancel();
}

// The gateway does not get the End with the message that it has the hold.
TEST_F(RequestRunFallbackTest, ACallerWhoLeavesWhileThePromptIsCountedLeavesNoHold) {
  // The tokenizer's response never ends.
  first_.SetDefaultScript(R"({"tokenizer_status":200,"tokenizer_body":"","tokenizer_drip_ms":20})");
  Script(
      R"("status":400,"error_body":{"error":{"message":"This model's maximum context length is 8 )"
      R"(tokens. However, you requested 5 output tokens and your prompt contains at least 4 )"
      R"(input tokens."}})");
  const Outcome outcome = Run([this](Loop& loop, RecordingSink& sink) {
    loop.Spawn(LeaveDuringTheCount(loop, first_, sink));
  });
  EXPECT_FALSE(outcome.ended());
  EXPECT_EQ(first_.totals().tokenizer_requests, 1);
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(journal_->in_use(), 0);
}

TEST_F(RequestRunFallbackTest, AHoldThatTheLedgerHasClosedIsNotLeft) {
  ledger_.closed = true;
  request_.set_samples(3);  // unseen tokens are held before the engine is asked
  request_.set_max_tokens(5'000);
  const Outcome outcome = Again(R"("status":500)");
  EXPECT_FALSE(outcome.end().hold_kept());
}

}  // namespace
}  // namespace tollgate::inference_router
