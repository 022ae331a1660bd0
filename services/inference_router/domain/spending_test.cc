#include "services/inference_router/domain/spending.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kSecond = 1'000'000;

// Input 1 nano-USD per token, output 2; slices of 100 tokens.
Spending::Options Basic(int64_t authorized) {
  Spending::Options options;
  options.rates = Rates{1000, 2000};
  options.authorized_nano_usd = authorized;
  options.slice_nano_usd = 200;
  options.prompt_tokens_bound = 50;
  return options;
}

TEST(Spending, AffordableIsWhatTheHoldPaysForBesideThePrompt) {
  Spending spending(Basic(250));
  EXPECT_EQ(spending.affordable(), 100);
  spending.SetPromptTokens(10);
  EXPECT_EQ(spending.affordable(), 120);
}

TEST(Spending, WantsAnExtensionBelowHalfASlice) {
  Spending spending(Basic(250));
  EXPECT_FALSE(spending.WantsExtension(50, 0));
  EXPECT_TRUE(spending.WantsExtension(51, 0));
  EXPECT_EQ(spending.NextTotalNanoUsd(51), 50 + 200 * 2);
  spending.OnExtensionSent();
  EXPECT_FALSE(spending.WantsExtension(60, 0)) << "one extension at a time";
  spending.OnAnswer(450, 0);
  EXPECT_EQ(spending.affordable(), 200);
  EXPECT_FALSE(spending.WantsExtension(60, 0));
}

TEST(Spending, NeverExtendsBeyondTheLargestPossibleOutput) {
  Spending::Options options = Basic(250);
  options.max_output_tokens = 120;
  Spending spending(options);
  EXPECT_TRUE(spending.WantsExtension(60, 0));
  EXPECT_EQ(spending.NextTotalNanoUsd(60), 50 + 120 * 2);
  spending.OnExtensionSent();
  spending.OnAnswer(290, 0);
  EXPECT_EQ(spending.affordable(), 120);
  EXPECT_FALSE(spending.WantsExtension(119, 10 * kSecond));
  EXPECT_FALSE(spending.RefusedRecently(0)) << "a small last grant is not a refusal";
}

TEST(Spending, ARefusalIsRememberedForASecond) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnAnswer(250, 5 * kSecond);
  EXPECT_TRUE(spending.RefusedRecently(5 * kSecond));
  EXPECT_FALSE(spending.WantsExtension(99, 5 * kSecond));
  EXPECT_TRUE(spending.WantsExtension(99, 7 * kSecond)) << "credit may have been added meanwhile";
}

TEST(Spending, APartialGrantExtendsAndCountsAsARefusal) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnAnswer(260, 0);
  EXPECT_EQ(spending.affordable(), 105);
  EXPECT_TRUE(spending.RefusedRecently(0));
}

TEST(Spending, ALowerTotalNeverShrinksTheHold) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnAnswer(0, 0);
  EXPECT_EQ(spending.affordable(), 100);
  EXPECT_TRUE(spending.RefusedRecently(0));
}

TEST(Spending, ALostAnswerIsRetriedAfterASecond) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnNoAnswer(0);
  EXPECT_FALSE(spending.WantsExtension(90, 0));
  EXPECT_TRUE(spending.WantsExtension(90, kSecond));
}

TEST(Spending, FreeOutputNeedsNoExtension) {
  Spending::Options options = Basic(50);
  options.rates.output_pico_usd = 0;
  Spending spending(options);
  EXPECT_EQ(spending.affordable(), INT64_MAX);
  EXPECT_FALSE(spending.WantsExtension(1'000'000, 0));
}

TEST(Spending, AHoldBelowThePromptPriceAffordsNothing) {
  Spending spending(Basic(40));
  EXPECT_EQ(spending.affordable(), 0);
}

TEST(Spending, ChargeRoundsDownAndHoldRoundsUp) {
  Spending::Options options = Basic(1000);
  options.rates = Rates{1, 1};
  Spending spending(options);
  EXPECT_EQ(spending.ChargeNanoUsd(1, 1), 0);
  EXPECT_EQ(spending.HoldNanoUsd(1, 1), 1);
}

}  // namespace
}  // namespace tollgate::inference_router
