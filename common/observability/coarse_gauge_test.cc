#include "common/observability/coarse_gauge.h"

#include <gtest/gtest.h>

#include <memory>

namespace tollgate::metrics {
namespace {

constexpr int64_t kStep = CoarseGauge::kStepBytes;

TEST(CoarseGauge, PublishesStepsAndZero) {
  prometheus::Gauge gauge;
  CoarseGauge bytes(gauge);
  bytes.Add(kStep - 1);
  EXPECT_EQ(gauge.Value(), 0);
  bytes.Add(1);
  EXPECT_EQ(gauge.Value(), kStep);
  bytes.Add(10);
  bytes.Add(-20);
  EXPECT_EQ(bytes.bytes(), kStep - 10);
  EXPECT_EQ(gauge.Value(), kStep);
  bytes.Add(10 - kStep);
  EXPECT_EQ(gauge.Value(), 0) << "zero is exact";
}

TEST(CoarseGauge, SharesAddUpAndLeaveNothingBehind) {
  prometheus::Gauge gauge;
  CoarseGauge one(gauge);
  auto other = std::make_unique<CoarseGauge>(gauge);
  one.Add(kStep);
  other->Add(2 * kStep);
  EXPECT_EQ(gauge.Value(), 3 * kStep);
  other.reset();
  EXPECT_EQ(gauge.Value(), kStep);
}

}  // namespace
}  // namespace tollgate::metrics
