#include <gtest/gtest.h>

#include "services/inference_router/domain/token_meter.h"

namespace tollgate::inference_router {
namespace {

inference::v1::Delta Text(const std::string& escaped, int choice = 0) {
  inference::v1::Delta delta;
  delta.set_choice(choice);
  delta.set_content_json(escaped);
  return delta;
}

EngineUsage Report(int64_t prompt, int64_t completion, int choice = -1) {
  EngineUsage usage;
  usage.prompt_tokens = prompt;
  usage.completion_tokens = completion;
  usage.choice = choice;
  return usage;
}

TokenMeter::Options Plain(int64_t bound = 100) {
  TokenMeter::Options options;
  options.prompt_tokens_bound = bound;
  return options;
}

TEST(DecodedBytes, CountsUtf8BytesOfEscapedText) {
  EXPECT_EQ(DecodedBytes(""), 0);
  EXPECT_EQ(DecodedBytes("hello"), 5);
  EXPECT_EQ(DecodedBytes(R"(a\nb\"c\\)"), 6);
  EXPECT_EQ(DecodedBytes(R"(\u0041\u00e9\u4e2d)"), 1 + 2 + 3);
  EXPECT_EQ(DecodedBytes(R"(\ud83d\ude00)"), 4);
  EXPECT_EQ(DecodedBytes("\xc3\xa9"), 2);
  EXPECT_EQ(DecodedBytes(R"(\u00)"), 3) << "a cut escape must not read past the end";
}

TEST(TokenMeter, EngineUsageIsAuthoritativeWhenSane) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("Hello"));
  meter.OnDelta(Text(" world"));
  EngineUsage usage = Report(40, 7);
  usage.cached_tokens = 32;
  usage.reasoning_tokens = 2;
  meter.OnUsage(usage);
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.prompt_tokens(), 40);
  EXPECT_EQ(measured.usage.completion_tokens(), 7);
  EXPECT_EQ(measured.usage.cached_tokens(), 32);
  EXPECT_EQ(measured.usage.reasoning_tokens(), 2);
  EXPECT_FALSE(measured.estimated);
  EXPECT_FALSE(measured.mismatch);
}

TEST(TokenMeter, MissingUsageIsTheCountOfChunksAndEstimated) {
  TokenMeter meter(Plain(101));
  for (int i = 0; i < 5; ++i) meter.OnDelta(Text("word "));
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 5);
  EXPECT_EQ(measured.usage.prompt_tokens(), 26) << "a quarter of the bound, rounded up";
  EXPECT_TRUE(measured.estimated);
  EXPECT_FALSE(measured.mismatch);
}

TEST(TokenMeter, AbsurdUsageIsReplacedByTheCountOfDeltasAndThePromptsBound) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("four"));
  meter.OnUsage(Report(1'000'000'000'000'000'000, 1'000'000'000'000'000'000));
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 1);
  EXPECT_EQ(measured.usage.prompt_tokens(), 100);
  EXPECT_TRUE(measured.mismatch);
  EXPECT_TRUE(measured.estimated);
  EXPECT_EQ(meter.completion_tokens(), 1) << "it must not use up the money while streaming";
}

TEST(TokenMeter, AnAbsurdReportAfterGoodOnesLeavesTheLastGoodOne) {
  TokenMeter::Options options = Plain();
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three"));
  meter.OnUsage(Report(10, 3, 0));
  meter.OnDelta(Text(" four"));
  for (int64_t absurd : {int64_t{5000}, int64_t{-1}, INT64_MAX}) {
    meter.OnUsage(Report(10, absurd, 0));
    meter.OnUsage(Report(10, absurd));
    EXPECT_EQ(meter.Measure().usage.completion_tokens(), 4) << absurd;
    EXPECT_TRUE(meter.Measure().mismatch);
  }
  meter.OnUsage(Report(10, 4));
  EXPECT_FALSE(meter.Measure().mismatch) << "a good report heals it";
}

TEST(TokenMeter, AnAbsurdFinalReportLeavesTheRunningOnesToTheToken) {
  for (int64_t absurd : {int64_t{900'000'000}, int64_t{-3}}) {
    SCOPED_TRACE(absurd);
    TokenMeter::Options options = Plain();
    options.usage_per_choice = true;
    TokenMeter meter(options);
    for (int i = 1; i <= 10; ++i) {
      meter.OnDelta(Text("token of many bytes "));
      meter.OnUsage(Report(40, i, 0));
    }
    meter.OnUsage(Report(absurd, absurd));
    const Measured measured = meter.Measure();
    EXPECT_EQ(measured.usage.completion_tokens(), 10);
    EXPECT_EQ(measured.usage.prompt_tokens(), 40);
    EXPECT_TRUE(measured.mismatch);
    EXPECT_TRUE(measured.estimated);
  }
}

TEST(TokenMeter, TwoPercentAboveTheBoundIsTolerated) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text(std::string(968, 'x')));  // bound: 968 + 32 = 1000
  meter.OnUsage(Report(10, 1020));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 1020);
  EXPECT_FALSE(meter.Measure().mismatch);
  TokenMeter other(Plain());
  other.OnDelta(Text(std::string(968, 'x')));
  other.OnUsage(Report(10, 1021));
  EXPECT_EQ(other.Measure().usage.completion_tokens(), 1);
  EXPECT_TRUE(other.Measure().mismatch);
}

TEST(TokenMeter, NegativeUsageIsNotBelieved) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("a"));
  meter.OnDelta(Text("b"));
  meter.OnUsage(Report(-5, -1));
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 2);
  EXPECT_EQ(measured.usage.prompt_tokens(), 25);
  EXPECT_TRUE(measured.mismatch);
  EXPECT_TRUE(measured.estimated);
}

TEST(TokenMeter, ZeroCompletionWithTextIsMissing) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("a"));
  meter.OnUsage(Report(10, 0));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 1);
  EXPECT_TRUE(meter.Measure().estimated);
}

TEST(TokenMeter, ContinuousUsageCountsDeltasAfterTheLastReport) {
  TokenMeter::Options options = Plain();
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnDelta(Text("abc"));
  meter.OnUsage(Report(10, 3, 0));
  EXPECT_EQ(meter.completion_tokens(), 3);
  EXPECT_EQ(meter.prompt_tokens(), 10);
  meter.OnDelta(Text("d"));
  EXPECT_EQ(meter.completion_tokens(), 4);
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 4) << "the stream broke here";
}

TEST(TokenMeter, PerChoiceReportsAddUpAndTheTotalReplacesThem) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnUsage(Report(10, 3, 0));
  meter.OnDelta(Text("four five", 1));
  meter.OnUsage(Report(10, 2, 1));
  EXPECT_EQ(meter.completion_tokens(), 5);
  meter.OnUsage(Report(10, 6));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 6);
}

TEST(TokenMeter, TheLastReportTellsAllOfSeveralPrompts) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  options.usage_per_choice = true;
  options.prompt_per_choice = true;
  options.prompt_tokens_estimate = 30;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnUsage(Report(10, 3, 0));
  EXPECT_EQ(meter.prompt_tokens(), 0) << "that was the prompt of one choice";
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 30) << "the stream broke here";
  EXPECT_TRUE(meter.Measure().estimated);
  meter.OnDelta(Text("four five", 1));
  meter.OnUsage(Report(12, 2, 1));
  meter.OnUsage(Report(22, 5));
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 22);
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 5);
  EXPECT_FALSE(meter.Measure().estimated);
}

TEST(TokenMeter, TokensThatAreNeverShownAreBelieved) {
  TokenMeter::Options options = Plain();
  options.unseen_tokens = 100;
  TokenMeter meter(options);
  meter.OnDelta(Text("abc"));
  meter.OnUsage(Report(10, 130));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 130);
  EXPECT_FALSE(meter.Measure().mismatch);
  meter.OnUsage(Report(10, 150));
  EXPECT_TRUE(meter.Measure().mismatch);
}

TEST(TokenMeter, OneTotalOnAChoicesChunkIsNotAddedUpForOtherEngines) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnDelta(Text("four five", 1));
  meter.OnUsage(Report(10, 5, 1));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 5);
}

TEST(TokenMeter, DetailsAreClampedIntoTheirWhole) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("abc"));
  EngineUsage usage = Report(10, 3);
  usage.cached_tokens = 99;
  usage.cache_write_tokens = 99;
  usage.reasoning_tokens = -4;
  meter.OnUsage(usage);
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.cached_tokens(), 10);
  EXPECT_EQ(measured.usage.cache_write_tokens(), 0);
  EXPECT_EQ(measured.usage.reasoning_tokens(), 0);
}

TEST(OwnCount, ToolCallsCountNamesArgumentsAndTheirMarks) {
  OwnCount own(1);
  inference::v1::Delta delta;
  auto* call = delta.add_tool_calls();
  call->set_name_json("get_weather");
  call->set_arguments_json(R"({\"a\":1})");
  own.Add(delta);
  EXPECT_EQ(own.chunks(), 1);
  EXPECT_EQ(own.bound(), 11 + 7 + OwnCount::kTokensPerChoice + OwnCount::kTokensPerToolCall);
}

}  // namespace
}  // namespace tollgate::inference_router
