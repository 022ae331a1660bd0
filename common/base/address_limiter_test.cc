#include "common/base/address_limiter.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(AddressLimiter, GrantsABurstAndThenTheRate) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 5), 0);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5), kSecond);
  EXPECT_EQ(limiter.WaitUs("10.0.0.1", 5), kSecond);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5 + kSecond), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 5 + kSecond), 0);
  // A refusal takes nothing, and the whole burst is refilled.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 10 * kSecond), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 10 * kSecond), 0);
}

TEST(AddressLimiter, AddressesAreLimitedSeparately) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.WaitUs("10.0.0.2", 0), 0);
  EXPECT_EQ(limiter.Take("10.0.0.2", 0), 0);
}

TEST(AddressLimiter, ARefundedPermitCanBeTakenAgain) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.Refund("10.0.0.1");
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.Refund("10.9.9.9");  // never seen
}

TEST(AddressLimiter, Ipv6IsLimitedPerNetwork) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("2001:db8:1:2::1", 0), 0);
  EXPECT_GT(limiter.Take("2001:db8:1:2:ffff::9", 0), 0);
  EXPECT_EQ(limiter.Take("2001:db8:1:3::1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.2", 0), 0);
}

TEST(AddressLimiter, KeepsABoundedNumberOfAddresses) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1, .max_addresses = 10});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.Take("10.0.0." + std::to_string(i), 0), 0);
  EXPECT_LE(limiter.size(), 10u);
  // Addresses with a full burst are evicted first, all at once.
  EXPECT_EQ(limiter.Take("10.0.1.1", 5 * kSecond), 0);
  EXPECT_EQ(limiter.size(), 1u);
}

}  // namespace
}  // namespace tollgate
