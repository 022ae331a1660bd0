#include "common/money/money.h"

#include <gtest/gtest.h>

#include <limits>

namespace tollgate {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Decision 10: one floor per request; holds round up.
TEST(MoneyTest, ChargeRoundsDownHoldRoundsUp) {
  Rates rates{.input_pico_usd = 37'500, .output_pico_usd = 1};
  EXPECT_EQ(ChargeNanoUsd(CostPicoUsd(rates, 1, 0)), 37);
  EXPECT_EQ(HoldNanoUsd(CostPicoUsd(rates, 1, 0)), 38);
  EXPECT_EQ(ChargeNanoUsd(CostPicoUsd(rates, 2, 0)), 75);
  EXPECT_EQ(HoldNanoUsd(CostPicoUsd(rates, 2, 0)), 75);
  EXPECT_EQ(HoldNanoUsd(CostPicoUsd(rates, 0, 1)), 1);
}

TEST(MoneyTest, ProductsAreWide) {
  Rates rates{.input_pico_usd = 1'000'000'000, .output_pico_usd = 0};
  EXPECT_EQ(ChargeNanoUsd(CostPicoUsd(rates, 1'000'000'000'000, 0)), 1'000'000'000'000'000'000);
  EXPECT_EQ(ChargeNanoUsd(CostPicoUsd(rates, kMax, 0)), kMax);  // saturates instead of wrapping
}

TEST(MoneyTest, OutputTokensAffordable) {
  Rates rates{.input_pico_usd = 1'000'000, .output_pico_usd = 2'000'000};
  EXPECT_EQ(OutputTokensAffordable(rates, 10, 10'000), 0);
  EXPECT_EQ(OutputTokensAffordable(rates, 10, 12'000), 1);
  EXPECT_EQ(OutputTokensAffordable(rates, 10, 13'999), 1);
  EXPECT_EQ(OutputTokensAffordable(rates, 11, 10'000), 0);
  EXPECT_EQ(OutputTokensAffordable(Rates{}, 11, 0), kMax);
}

TEST(MoneyTest, PrintsExactDecimals) {
  EXPECT_EQ(NanoToDecimalUsd(12'500'000'000), "12.5");
  EXPECT_EQ(NanoToDecimalUsd(1), "0.000000001");
  EXPECT_EQ(NanoToDecimalUsd(-1'000'000'000), "-1");
  EXPECT_EQ(NanoToDecimalUsd(0), "0");
  EXPECT_EQ(NanoToDecimalUsd(kMax), "9223372036.854775807");
  EXPECT_EQ(PicoPerTokenToUsdPerMillion(150'000), "0.15");
  EXPECT_EQ(PicoPerTokenToUsdPerToken(150'000), "0.00000015");
  EXPECT_EQ(PicoToDecimalUsd(static_cast<Int128>(kMax) * 1000), "9223372036.854775807");
}

TEST(MoneyTest, ParsesItsOwnOutput) {
  for (int64_t nano : {int64_t{0}, int64_t{1}, int64_t{37}, int64_t{12'500'000'000}, kMax, -kMax}) {
    EXPECT_EQ(ParseDecimalUsdToNano(NanoToDecimalUsd(nano)), nano);
  }
  EXPECT_EQ(ParseUsdPerMillionToPico("2.20"), 2'200'000);
  EXPECT_EQ(ParseUsdPerMillionToPico("0.0375"), 37'500);
}

// A rate is above the price exactly if it is above the result.
TEST(MoneyTest, PriceLimitsAreRoundedDownAndNeverPassThroughFloatingPoint) {
  const std::pair<const char*, int64_t> rows[] = {{"0", 0},
                                                  {"0.15", 150'000},
                                                  {"1.5e-1", 150'000},
                                                  {"15E-2", 150'000},
                                                  {"1e+2", 100'000'000},
                                                  {"0.0000019", 1},
                                                  {"0.000000999999", 0},
                                                  {"0.1", 100'000},
                                                  {"9007199254740993e-6", 9'007'199'254'740'993},
                                                  {"1e999999999999", kMax},
                                                  {"999999999999999999999", kMax},
                                                  {"1e-999999999999", 0},
                                                  {"0e99", 0},
                                                  {"007", 7'000'000}};
  for (const auto& [text, pico_usd] : rows) {
    EXPECT_EQ(ParseUsdPerMillionDownToPico(text), pico_usd) << text;
  }
  for (const char* text :
       {"", "-1", "+1", ".5", "1.", "1e", "1e-", "1e5x", "0x1", "1,5", "NaN", " 1"}) {
    EXPECT_FALSE(ParseUsdPerMillionDownToPico(text).has_value()) << text;
  }
}

TEST(MoneyTest, RefusesMalformedAmounts) {
  for (const char* text : {"", ".", "1.", ".5", "1e3", "1,5", "+1", "--1", "abc", " 1", "1 ",
                           "0.0000000001", "9223372036.854775808", "99999999999999999999"}) {
    EXPECT_FALSE(ParseDecimalUsdToNano(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseUsdPerMillionToPico("-1").has_value());
  EXPECT_FALSE(ParseUsdPerMillionToPico("0.0000001").has_value());
}

}  // namespace
}  // namespace tollgate
