#include "common/base/address_limiter.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate {
namespace {

TEST(AddressLimiter, GrantsABurstAndThenTheRate) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 5), 0);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5), kSecondUs);
  EXPECT_EQ(limiter.WaitUs("10.0.0.1", 5), kSecondUs);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5 + kSecondUs), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 5 + kSecondUs), 0);
  // A refusal takes nothing, and the whole burst is refilled.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 10 * kSecondUs), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 10 * kSecondUs), 0);
}

TEST(AddressLimiter, AddressesAreLimitedSeparately) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.WaitUs("10.0.0.2", 0), 0);
  EXPECT_EQ(limiter.Take("10.0.0.2", 0), 0);
}

TEST(AddressLimiter, ARefundedPermitCanBeTakenAgain) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.Refund("10.0.0.1");
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.Refund("10.9.9.9");  // never seen
}

TEST(AddressLimiter, Ipv6IsLimitedPerNetwork) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 1});
  EXPECT_EQ(limiter.Take("2001:db8:1:2::1", 0), 0);
  EXPECT_GT(limiter.Take("2001:db8:1:2:ffff::9", 0), 0);
  EXPECT_EQ(limiter.Take("2001:db8:1:3::1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.2", 0), 0);
}

std::string Address(int index) {
  return "10." + std::to_string(index / 65'536) + "." + std::to_string(index / 256 % 256) + "." +
         std::to_string(index % 256);
}

// H49: a sender with many addresses must not get a new burst for any of them.
TEST(AddressLimiter, ForgetsNoAddressHoweverManyThereAre) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 1});
  constexpr int kAddresses = 80'000;
  for (int i = 0; i < kAddresses; ++i) limiter.Take(Address(i), 0);
  int forgotten = 0;
  for (int i = 0; i < kAddresses; ++i) forgotten += limiter.WaitUs(Address(i), 0) == 0 ? 1 : 0;
  EXPECT_EQ(forgotten, 0);
}

TEST(AddressLimiter, StrangersAreServedBesideManyLimitedAddresses) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 1});
  for (int i = 0; i < 5'000; ++i) limiter.Take(Address(i), 0);
  int refused = 0;
  for (int i = 100'000; i < 200'000; ++i) refused += limiter.WaitUs(Address(i), 0) > 0 ? 1 : 0;
  // On average 3 of 100,000.
  EXPECT_LT(refused, 30);
  // No address is limited longer than the addresses that it shares its cells with.
  for (int i = 0; i < 200'000; ++i) ASSERT_EQ(limiter.WaitUs(Address(i), kSecondUs), 0);
}

TEST(AddressLimiter, RefundsTakeNothingFromAddressesInTheSameCell) {
  AddressLimiter limiter({.interval_us = kSecondUs, .burst = 2, .cells = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.Take("10.0.0.2", 0), 0);
  limiter.Refund("10.0.0.2");
  EXPECT_EQ(limiter.Take("10.0.0.2", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
}

}  // namespace
}  // namespace tollgate
