#include "common/clients/limiter_gateways.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

// A limiter that has just started has seen few gateways. It must not enlarge anyone's share.
TEST(LimiterGateways, TheMostThatWasSaidWithinAMinuteCounts) {
  LimiterGateways gateways;
  EXPECT_EQ(gateways.count(), 0) << "never told";
  gateways.Saw(0, 1);
  EXPECT_EQ(gateways.count(), 0);
  gateways.Saw(4, 1'000'000);
  gateways.Saw(1, 2'000'000);
  EXPECT_EQ(gateways.count(), 4);
  gateways.Saw(4, 3'000'000);
  gateways.Saw(3, 3'000'000 + LimiterGateways::kMemoryUs);
  EXPECT_EQ(gateways.count(), 4) << "it was reported a minute ago";
  gateways.Saw(3, 3'000'001 + LimiterGateways::kMemoryUs);
  EXPECT_EQ(gateways.count(), 3) << "one is gone";
  gateways.Saw(5, 3'000'002 + LimiterGateways::kMemoryUs);
  EXPECT_EQ(gateways.count(), 5);
}

}  // namespace
}  // namespace tollgate
