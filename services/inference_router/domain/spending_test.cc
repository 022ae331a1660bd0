#include "services/inference_router/domain/spending.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

// Input costs 1 nano-USD per token, output 2; slices have 100 tokens.
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
  spending.OnAnswer(ExtendAnswer::kGranted, 450, 0);
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
  spending.OnAnswer(ExtendAnswer::kGranted, 290, 0);
  EXPECT_EQ(spending.affordable(), 120);
  EXPECT_FALSE(spending.WantsExtension(119, 10 * kSecondUs));
}

TEST(Spending, WhatWasNotGrantedIsAskedForAgainAfterASecond) {
  for (const ExtendAnswer answer : {ExtendAnswer::kNoCredit, ExtendAnswer::kCap,
                                    ExtendAnswer::kHeld, ExtendAnswer::kNoAnswer}) {
    Spending spending(Basic(250));
    spending.OnExtensionSent();
    spending.OnAnswer(answer, 0, 5 * kSecondUs);
    EXPECT_EQ(spending.affordable(), 100) << "a hold never shrinks";
    EXPECT_EQ(spending.last_answer(), answer);
    EXPECT_FALSE(spending.WantsExtension(99, 5 * kSecondUs));
    EXPECT_TRUE(spending.WantsExtension(99, 6 * kSecondUs))
        << "credit may have been added meanwhile";
  }
}

TEST(Spending, AClosedHoldIsNotExtended) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnAnswer(ExtendAnswer::kClosed, 0, 0);
  EXPECT_FALSE(spending.WantsExtension(99, 60 * kSecondUs));
}

TEST(Spending, APartialGrantExtends) {
  Spending spending(Basic(250));
  spending.OnExtensionSent();
  spending.OnAnswer(ExtendAnswer::kHeld, 260, 0);
  EXPECT_EQ(spending.affordable(), 105);
  EXPECT_FALSE(spending.WantsExtension(99, 0));
}

// Decision 41: with enough credit, a stream of 100 tokens/s survives a ledger outage of 40 s that
// begins at any time, even if the pending extension is lost in it.
TEST(Spending, AnOutageOf40SecondsCutsNoStreamOf100TokensPerSecond) {
  constexpr int64_t kStep = 10'000;  // one token
  for (int64_t outage_us = 0; outage_us <= 200 * kSecondUs; outage_us += 130'000) {
    Spending::Options options = Basic(50 + 4096 * 2);
    options.slice_nano_usd = 4096 * 2;
    Spending spending(options);
    int64_t tokens = 0;
    int64_t now_us = 0;
    for (; tokens < spending.affordable() && now_us < 300 * kSecondUs; now_us += kStep) {
      spending.OnOutput(++tokens, now_us);
      if (!spending.WantsExtension(tokens, now_us)) continue;
      const int64_t total = spending.NextTotalNanoUsd(tokens);
      spending.OnExtensionSent();
      const bool answers = now_us < outage_us;
      spending.OnAnswer(answers ? ExtendAnswer::kGranted : ExtendAnswer::kNoAnswer,
                        answers ? total : 0, now_us);
    }
    ASSERT_GE(now_us - outage_us, 40 * kSecondUs) << "outage from " << outage_us << " us on";
  }
}

TEST(Spending, SlicesGrowWithTheTokenRate) {
  Spending spending(Basic(250));
  spending.OnOutput(1, 0);
  spending.OnOutput(20, 100'000);
  EXPECT_EQ(spending.tokens_per_second(), 0) << "a burst is not a rate";
  spending.OnOutput(51, 250'000);
  EXPECT_EQ(spending.tokens_per_second(), 200);
  EXPECT_TRUE(spending.WantsExtension(1, 250'000)) << "99 tokens are half a second";
  EXPECT_EQ(spending.NextTotalNanoUsd(51), 50 + (100 + 60 * 200) * 2);
  spending.OnOutput(61, 1'250'000);
  EXPECT_EQ(spending.tokens_per_second(), 10) << "the latest second counts";
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
