#include "tests/bench/histogram.h"

#include <gtest/gtest.h>

namespace tollgate::bench {
namespace {

TEST(HistogramTest, PercentilesAreWithinTwoPercent) {
  Histogram histogram;
  for (int64_t i = 1; i <= 100'000; ++i) histogram.Add(i);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.5)), 50'000, 1000);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.99)), 99'000, 2000);
  EXPECT_EQ(histogram.Percentile(1), 100'000);
  EXPECT_EQ(Histogram().Percentile(0.5), 0);
}

}  // namespace
}  // namespace tollgate::bench
