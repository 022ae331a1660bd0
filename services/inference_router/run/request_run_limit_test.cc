// What was asked for bounds what is delivered and charged (decision 72), and an answer without any
// output costs nothing (decision 83), whatever the engine sends and reports.
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

constexpr int64_t kMaxTokens = 100;

class OutputLimitTest : public RequestRunTest {
 protected:
  OutputLimitTest() { request_.set_max_tokens(kMaxTokens); }
  Outcome RunOnce() {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Outcome outcome = Run();
    EXPECT_TRUE(outcome.ended() && !outcome.end().has_error()) << outcome.end().ShortDebugString();
    return outcome;
  }
  // choices: their number.
  void ExpectBounded(const Outcome& outcome, int choices = 1) {
    for (int choice = 0; choice < choices; ++choice) {
      EXPECT_EQ(outcome.finish(choice), inference::v1::FINISH_REASON_LENGTH) << choice;
    }
    ASSERT_EQ(ledger_.Settles().size(), 1u);
    const auto& settle = ledger_.Settles()[0].settle();
    EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_COMPLETED);
    EXPECT_FALSE(settle.cut_by_credit());
    EXPECT_LE(settle.usage().completion_tokens(), kMaxTokens * choices);
    EXPECT_GT(settle.usage().completion_tokens(), 0);
    EXPECT_TRUE(first_.WaitFor([](const auto& sim) { return sim.running() == 0; }));
  }
  // Whether the engine was asked to stream.
  bool AskedToStream() { return first_.requests().back().stream; }
};

TEST_F(OutputLimitTest, AStreamIsStoppedAtMaxTokens) {
  for (const char* more :
       {"", R"(,"usage":"none")", R"(,"usage":"absurd")", R"(,"reasoning_tokens":90)"}) {
    Script(R"("ignore_max_tokens":true,"tokens":3000,"token_ms":0.1)" + std::string(more));
    const Outcome outcome = RunOnce();
    ExpectBounded(outcome);
    EXPECT_EQ(outcome.deltas(), kMaxTokens + 1) << "one of them is the end" << more;
    EXPECT_EQ(outcome.end().usage().completion_tokens(), kMaxTokens) << more;
    EXPECT_FALSE(first_.requests().back().finished) << "the engine is stopped" << more;
  }
}

TEST_F(OutputLimitTest, AWholeAnswerIsShortenedToMaxTokens) {
  request_.set_streamed(false);
  Script(R"("ignore_max_tokens":true,"tokens":3000)");
  const Outcome longer = RunOnce();
  EXPECT_FALSE(AskedToStream());
  ExpectBounded(longer);
  EXPECT_EQ(longer.end().usage().completion_tokens(), kMaxTokens);
  Script(R"("tokens":100)");
  const Outcome exact = RunOnce();
  const size_t all = exact.text().size();
  EXPECT_GT(longer.text().size(), all / 2);
  EXPECT_LT(longer.text().size(), all * 2);
  EXPECT_TRUE(exact.text().starts_with(longer.text().substr(0, all / 2)));
}

TEST_F(OutputLimitTest, AWholeAnswerWithoutUsageIsShortenedByItsSize) {
  request_.set_streamed(false);
  for (const char* usage : {"none", "absurd"}) {
    Script(R"("ignore_max_tokens":true,"tokens":3000,"usage":")" + std::string(usage) + "\"");
    const Outcome outcome = RunOnce();
    ExpectBounded(outcome);
    EXPECT_LT(outcome.text().size(), 6u * kMaxTokens) << "five bytes, and its escapes";
  }
}

TEST_F(OutputLimitTest, EveryChoiceHasTheBound) {
  request_.set_choices(2);
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    Script(R"("ignore_max_tokens":true,"tokens":1000)");
    request_.set_members_json(request_.members_json() + R"(,"n":2)");
    ExpectBounded(RunOnce(), 2);
  }
}

// The engine is not told the model's limit when the caller sets none.
TEST_F(OutputLimitTest, TheModelsLimitIsABound) {
  request_.set_max_tokens(0);
  request_.set_output_tokens_bound(kMaxTokens);
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    Script(R"("tokens":3000)");
    ExpectBounded(RunOnce());
  }
}

TEST_F(OutputLimitTest, AReportAboveMaxTokensIsChargedAtMaxTokens) {
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    const double mismatches = metrics_.usage_mismatches.Value();
    Script(
        R"("tokens":100,"usage":{"prompt_tokens":7,"completion_tokens":300,"total_tokens":307})");
    const Outcome outcome = RunOnce();
    EXPECT_EQ(outcome.end().usage().completion_tokens(), kMaxTokens) << streamed;
    EXPECT_EQ(metrics_.usage_mismatches.Value(), mismatches + 1) << streamed;
  }
}

TEST_F(OutputLimitTest, AnAnswerOfExactlyMaxTokensIsUntouched) {
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    Script(R"("tokens":100)");
    const Outcome exact = RunOnce();
    EXPECT_EQ(exact.end().usage().completion_tokens(), kMaxTokens);
    EXPECT_TRUE(first_.requests().back().finished);
    request_.set_max_tokens(kMaxTokens + 1);
    const Outcome shorter = RunOnce();
    EXPECT_EQ(shorter.text(), exact.text());
    request_.set_max_tokens(kMaxTokens);
  }
}

class EmptyAnswerTest : public OutputLimitTest {
 protected:
  void ExpectFree(const Outcome& outcome) {
    EXPECT_EQ(outcome.end().charged_nano_usd(), 0);
    ASSERT_EQ(ledger_.Settles().size(), 1u);
    const auto& settle = ledger_.Settles()[0].settle();
    EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_COMPLETED);
    EXPECT_EQ(settle.usage().prompt_tokens(), 0);
    EXPECT_EQ(settle.usage().completion_tokens(), 0);
    EXPECT_EQ(outcome.end().usage().prompt_tokens(), 0) << "the answer says what is charged";
  }
};

constexpr const char* kUsages[] = {R"({"prompt_tokens":6,"completion_tokens":0,"total_tokens":6})",
                                   R"({"prompt_tokens":6,"completion_tokens":1,"total_tokens":7})",
                                   R"({"prompt_tokens":6,"completion_tokens":5000})",
                                   R"({"prompt_tokens":0,"completion_tokens":0})", "{}"};

TEST_F(EmptyAnswerTest, AStreamWithoutOutputIsFree) {
  for (const char* usage : kUsages) {
    SCOPED_TRACE(usage);
    Script(R"("raw_chunks":[{"choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
           R"("finish_reason":"stop"}]},{"choices":[],"usage":)" +
           std::string(usage) + R"(},"data: [DONE]\n\n"])");
    ExpectFree(RunOnce());
  }
}

TEST_F(EmptyAnswerTest, AWholeAnswerWithoutOutputIsFree) {
  request_.set_streamed(false);
  for (const char* usage : kUsages) {
    SCOPED_TRACE(usage);
    Script(R"("raw_type":"application/json","raw_chunks":["{\"choices\":[{\"index\":0,\"message\":)"
           R"({\"content\":null},\"finish_reason\":\"stop\"}],\"usage\":",)" +
           json::Quoted(usage) + R"(,"}"])");
    ExpectFree(RunOnce());
  }
}

TEST_F(EmptyAnswerTest, AToolCallOrReasoningIsOutput) {
  for (const char* output :
       {R"("reasoning_content":"hm")",
        R"("tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}])"}) {
    Script(R"("raw_chunks":[{"choices":[{"index":0,"delta":{)" + std::string(output) +
           R"(},"finish_reason":"stop"}]},{"choices":[],"usage":{"prompt_tokens":6,)"
           R"("completion_tokens":2}},"data: [DONE]\n\n"])");
    const Outcome outcome = RunOnce();
    EXPECT_EQ(outcome.end().usage().prompt_tokens(), 6) << output;
    EXPECT_EQ(outcome.end().usage().completion_tokens(), 2) << output;
    EXPECT_GT(outcome.end().charged_nano_usd(), 0) << output;
  }
}

}  // namespace
}  // namespace tollgate::inference_router
