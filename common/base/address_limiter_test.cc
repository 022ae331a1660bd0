#include "common/base/address_limiter.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(AddressLimiter, GrantsABurstAndThenTheRate) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 5), 0);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5), kSecond);
  EXPECT_EQ(limiter.Wait("10.0.0.1", 5), kSecond);
  EXPECT_EQ(limiter.Take("10.0.0.1", 5 + kSecond), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 5 + kSecond), 0);
  // A refusal takes nothing, and the whole burst comes back.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Take("10.0.0.1", 10 * kSecond), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 10 * kSecond), 0);
}

TEST(AddressLimiter, OnePeersFloodIsNoOthersAffair) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.Wait("10.0.0.2", 0), 0);
  EXPECT_EQ(limiter.Take("10.0.0.2", 0), 0);
}

TEST(AddressLimiter, WhatIsGivenBackCanBeTakenAgain) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.GiveBack("10.0.0.1");
  EXPECT_EQ(limiter.Take("10.0.0.1", 0), 0);
  limiter.GiveBack("10.9.9.9");  // never seen
}

TEST(AddressLimiter, AnIpv6PeerIsItsNetwork) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1});
  EXPECT_EQ(limiter.Take("2001:db8:1:2::1", 0), 0);
  EXPECT_GT(limiter.Take("2001:db8:1:2:ffff::9", 0), 0);
  EXPECT_EQ(limiter.Take("2001:db8:1:3::1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.1", 0), 0);
  EXPECT_GT(limiter.Take("10.0.0.1", 0), 0);
  EXPECT_EQ(limiter.Take("::ffff:10.0.0.2", 0), 0);
}

TEST(AddressLimiter, RemembersOnlySoMany) {
  AddressLimiter limiter({.interval_us = kSecond, .burst = 1, .max_addresses = 10});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.Take("10.0.0." + std::to_string(i), 0), 0);
  EXPECT_LE(limiter.size(), 10u);
  // Those whose turns are back go first, all at once.
  EXPECT_EQ(limiter.Take("10.0.1.1", 5 * kSecond), 0);
  EXPECT_EQ(limiter.size(), 1u);
}

}  // namespace
}  // namespace tollgate
