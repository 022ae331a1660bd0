#include "services/inference_router/domain/token_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

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

TEST(TokenMeter, MissingUsageIsEstimatedByTheNumberOfChunks) {
  TokenMeter meter(Plain(101));
  for (int i = 0; i < 5; ++i) meter.OnDelta(Text("word "));
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 5);
  EXPECT_EQ(measured.usage.prompt_tokens(), 26) << "a quarter of the bound, rounded up";
  EXPECT_TRUE(measured.estimated);
  EXPECT_FALSE(measured.mismatch);
}

TEST(TokenMeter, ImplausibleUsageIsReplacedByTheDeltaCountAndThePromptBound) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("four"));
  meter.OnUsage(Report(1'000'000'000'000'000'000, 1'000'000'000'000'000'000));
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 1);
  EXPECT_EQ(measured.usage.prompt_tokens(), 100);
  EXPECT_TRUE(measured.mismatch);
  EXPECT_TRUE(measured.estimated);
  EXPECT_EQ(meter.completion_tokens(), 1) << "the hold must not be used up while streaming";
}

// Decision 72.
TEST(TokenMeter, NothingAboveWhatWasAskedForIsCharged) {
  TokenMeter::Options options = Plain();
  options.most_tokens = 3;
  for (const bool reports : {true, false}) {
    TokenMeter meter(options);
    for (int i = 0; i < 5; ++i) meter.OnDelta(Text("word "));
    if (reports) meter.OnUsage(Report(10, 5));
    EXPECT_EQ(meter.completion_tokens(), 3);
    EXPECT_EQ(meter.tokens_of(0), 5);
    EXPECT_EQ(meter.seen_tokens(), 5);
    const Measured measured = meter.Measure();
    EXPECT_EQ(measured.usage.completion_tokens(), 3);
    EXPECT_TRUE(measured.mismatch);
  }
}

TEST(TokenMeter, AnImplausibleReportKeepsTheLastPlausibleOne) {
  TokenMeter::Options options = Plain();
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three"));
  meter.OnUsage(Report(10, 3, 0));
  meter.OnDelta(Text(" four"));
  for (int64_t tokens : {int64_t{5000}, int64_t{-1}, INT64_MAX}) {
    meter.OnUsage(Report(10, tokens, 0));
    meter.OnUsage(Report(10, tokens));
    EXPECT_EQ(meter.Measure().usage.completion_tokens(), 4) << tokens;
    EXPECT_TRUE(meter.Measure().mismatch);
  }
  meter.OnUsage(Report(10, 4));
  EXPECT_FALSE(meter.Measure().mismatch) << "a plausible report clears it";
}

TEST(TokenMeter, AnImplausibleFinalReportKeepsTheRunningCounts) {
  for (int64_t tokens : {int64_t{900'000'000}, int64_t{-3}}) {
    SCOPED_TRACE(tokens);
    TokenMeter::Options options = Plain();
    options.usage_per_choice = true;
    TokenMeter meter(options);
    for (int i = 1; i <= 10; ++i) {
      meter.OnDelta(Text("token of many bytes "));
      meter.OnUsage(Report(40, i, 0));
    }
    meter.OnUsage(Report(tokens, tokens));
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
  EXPECT_FALSE(meter.Measure().estimated);
  TokenMeter other(Plain());
  other.OnDelta(Text(std::string(968, 'x')));
  other.OnUsage(Report(10, 1021));
  EXPECT_EQ(other.Measure().usage.completion_tokens(), 1);
  EXPECT_TRUE(other.Measure().mismatch);
}

TEST(TokenMeter, NegativeUsageIsRejected) {
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

TEST(TokenMeter, ZeroCompletionTokensWithTextCountsAsMissing) {
  TokenMeter meter(Plain());
  meter.OnDelta(Text("a"));
  meter.OnUsage(Report(10, 0));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 1);
  EXPECT_TRUE(meter.Measure().estimated);
}

TEST(TokenMeter, ZeroTokensOfOneChoiceWithTextCountAsMissing) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnDelta(Text("a", 0));
  meter.OnUsage(Report(10, 0, 1));
  EXPECT_FALSE(meter.Measure().mismatch) << "this choice has no text yet";
  meter.OnUsage(Report(10, 0, 0));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 1);
  EXPECT_TRUE(meter.Measure().mismatch);
  EXPECT_TRUE(meter.Measure().estimated);
}

TEST(TokenMeter, AnUnlikelyNumberOfBytesPerTokenIsReportedAndCharged) {
  const auto measure = [](size_t bytes, int64_t tokens) {
    TokenMeter meter(Plain());
    meter.OnDelta(Text(std::string(bytes, 'x')));
    meter.OnUsage(Report(10, tokens));
    const Measured measured = meter.Measure();
    EXPECT_EQ(measured.usage.completion_tokens(), tokens);
    EXPECT_FALSE(measured.estimated);
    return measured.mismatch;
  };
  // 32 tokens of a choice may be invisible.
  EXPECT_FALSE(measure(300, 200 + 32));
  EXPECT_TRUE(measure(300, 201 + 32));
  EXPECT_FALSE(measure(300, 25));
  EXPECT_TRUE(measure(300, 24));
  EXPECT_FALSE(measure(255, 1)) << "too short to judge";
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
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 4) << "if the stream breaks here";
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

TEST(TokenMeter, OnlyTheLastReportCoversSeveralPrompts) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  options.usage_per_choice = true;
  options.prompt_per_choice = true;
  options.prompt_tokens_estimate = 30;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnUsage(Report(10, 3, 0));
  EXPECT_EQ(meter.prompt_tokens(), 0) << "the prompt of one choice only";
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 30) << "if the stream breaks here";
  EXPECT_TRUE(meter.Measure().estimated);
  meter.OnDelta(Text("four five", 1));
  meter.OnUsage(Report(12, 2, 1));
  meter.OnUsage(Report(22, 5));
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 22);
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 5);
  EXPECT_FALSE(meter.Measure().estimated);
}

// llama.cpp: each choice ends with its own report, and no report covers all choices.
TEST(TokenMeter, ReportsOfSingleChoicesAddUpWithoutATotal) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  options.usage_per_choice = true;
  options.choices_per_prompt = 2;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnDelta(Text("four five", 1));
  EngineUsage first = Report(10, 4, 1);
  first.cached_tokens = 6;
  meter.OnUsage(first);
  EXPECT_EQ(meter.completion_tokens(), 5) << "the other choice by its deltas";
  EXPECT_EQ(meter.prompt_tokens(), 10);
  EngineUsage second = Report(10, 3, 0);
  second.cached_tokens = 6;
  meter.OnUsage(second);
  const Measured measured = meter.Measure();
  EXPECT_EQ(measured.usage.completion_tokens(), 7);
  EXPECT_EQ(measured.usage.prompt_tokens(), 10) << "both answer one prompt";
  EXPECT_EQ(measured.usage.cached_tokens(), 6);
  EXPECT_FALSE(measured.estimated);
  EXPECT_FALSE(measured.mismatch);
}

TEST(TokenMeter, PromptsThatAreReportedOneByOneAddUp) {
  TokenMeter::Options options = Plain();
  options.choices = 4;  // two for each of two prompts
  options.usage_per_choice = true;
  options.prompt_per_choice = true;
  options.choices_per_prompt = 2;
  options.prompt_tokens_estimate = 30;
  TokenMeter meter(options);
  for (int choice = 0; choice < 4; ++choice) meter.OnDelta(Text("one two three", choice));
  EngineUsage usage = Report(10, 3, 0);
  usage.cached_tokens = 4;
  meter.OnUsage(usage);
  usage.choice = 1;
  meter.OnUsage(usage);
  EXPECT_EQ(meter.prompt_tokens(), 0) << "the second prompt is not reported yet";
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 30) << "if the stream breaks here";
  usage = Report(12, 3, 2);
  usage.cached_tokens = 99;
  meter.OnUsage(usage);
  usage.choice = 3;
  meter.OnUsage(usage);
  EXPECT_EQ(meter.Measure().usage.prompt_tokens(), 22);
  EXPECT_EQ(meter.Measure().usage.cached_tokens(), 16) << "not more than the whole prompt";
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 12);
  EXPECT_FALSE(meter.Measure().estimated);
}

TEST(TokenMeter, AnAbsurdCountOfOneOfSeveralPromptsIsRejected) {
  for (const int64_t absurd : {int64_t{-1}, INT64_MAX}) {
    TokenMeter::Options options = Plain();
    options.choices = 2;
    options.usage_per_choice = true;
    options.choices_per_prompt = 1;
    TokenMeter meter(options);
    meter.OnDelta(Text("one two three", 0));
    meter.OnDelta(Text("one two three", 1));
    meter.OnUsage(Report(10, 3, 0));
    meter.OnUsage(Report(absurd, 3, 1));
    EXPECT_TRUE(meter.Measure().mismatch) << absurd;
  }
}

TEST(TokenMeter, UnseenTokensArePlausible) {
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

TEST(TokenMeter, ATotalOnTheChunkOfOneChoiceIsNotAddedUpForOtherEngines) {
  TokenMeter::Options options = Plain();
  options.choices = 2;
  TokenMeter meter(options);
  meter.OnDelta(Text("one two three", 0));
  meter.OnDelta(Text("four five", 1));
  meter.OnUsage(Report(10, 5, 1));
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 5);
}

TEST(TokenMeter, DetailsAreClampedToTheirTotal) {
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

// H75: no number from an engine may overflow a sum or a product.
TEST(TokenMeter, ExtremeReportsAreRejectedInEveryMember) {
  for (const int64_t extreme : {INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, int64_t{-1}}) {
    for (const bool per_choice : {false, true}) {
      SCOPED_TRACE(std::to_string(extreme) + (per_choice ? " per choice" : ""));
      TokenMeter::Options options = Plain();
      options.choices = 2;
      options.usage_per_choice = per_choice;
      TokenMeter meter(options);
      for (const int choice : {0, 1, -1, INT_MAX}) {
        meter.OnDelta(Text("abc", std::clamp(choice, 0, 1)));
        EngineUsage usage = Report(extreme, extreme, choice);
        usage.cached_tokens = usage.cache_write_tokens = usage.reasoning_tokens = extreme;
        meter.OnUsage(usage);
      }
      const Measured measured = meter.Measure();
      EXPECT_EQ(measured.usage.completion_tokens(), 4);
      EXPECT_GE(measured.usage.prompt_tokens(), 0);
      EXPECT_LE(measured.usage.prompt_tokens(), 100);
      EXPECT_GE(measured.usage.cached_tokens(), 0);
      EXPECT_LE(measured.usage.cached_tokens() + measured.usage.cache_write_tokens(),
                measured.usage.prompt_tokens());
      EXPECT_LE(measured.usage.reasoning_tokens(), 4);
      EXPECT_TRUE(measured.mismatch);
    }
  }
}

inference::v1::Delta Reasoning(const std::string& escaped) {
  inference::v1::Delta delta;
  delta.set_reasoning_json(escaped);
  return delta;
}

// An aborted stream has no final report, so its reasoning is counted from the received deltas.
TEST(TokenMeter, ReasoningWithoutAReportIsTheNumberOfItsChunks) {
  TokenMeter meter(Plain());
  for (int i = 0; i < 5; ++i) meter.OnDelta(Reasoning("hmm "));
  for (int i = 0; i < 2; ++i) meter.OnDelta(Text("word "));
  EXPECT_EQ(meter.reasoning_tokens(), 5);
  EXPECT_EQ(meter.Measure().usage.reasoning_tokens(), 5);
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 7);
}

TEST(TokenMeter, ReasoningFollowsTheReportsOnEveryChunk) {
  TokenMeter::Options options = Plain();
  options.usage_per_choice = true;
  TokenMeter meter(options);
  meter.OnUsage(Report(9, 0, 0));
  meter.OnDelta(Reasoning("three tokens here"));
  meter.OnUsage(Report(9, 3, 0));
  meter.OnDelta(Text("two more"));
  meter.OnUsage(Report(9, 5, 0));
  meter.OnDelta(Text("x"));
  EXPECT_EQ(meter.Measure().usage.reasoning_tokens(), 3);
  EXPECT_EQ(meter.Measure().usage.completion_tokens(), 6);
}

TEST(TokenMeter, ReasoningIsItsShareOfOneReportForAll) {
  TokenMeter meter(Plain());
  meter.OnDelta(Reasoning("123456789"));
  meter.OnDelta(Text("123"));
  meter.OnUsage(Report(9, 8));
  EXPECT_EQ(meter.Measure().usage.reasoning_tokens(), 6);
}

TEST(TokenMeter, TheEnginesReasoningCountBeatsTheOwnOne) {
  TokenMeter meter(Plain());
  meter.OnDelta(Reasoning("123456789"));
  EngineUsage usage = Report(9, 8);
  usage.reasoning_tokens = 2;
  meter.OnUsage(usage);
  EXPECT_EQ(meter.Measure().usage.reasoning_tokens(), 2);
}

}  // namespace
}  // namespace tollgate::inference_router
