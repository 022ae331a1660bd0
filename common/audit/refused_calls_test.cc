#include "common/audit/refused_calls.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate::audit {
namespace {

RefusedCall Call(const std::string& actor, const std::string& method = "KeyService/CreateKey") {
  return {
      .actor = actor, .address = "192.0.2.7", .method = method, .workspace = "", .reason = "no"};
}

class RefusedCallsTest : public ::testing::Test {
 protected:
  RefusedCallsTest() { calls_.AddWriter(); }
  RefusedCalls calls_;
  int64_t now_us_ = 1000 * kSecondUs;
};

TEST_F(RefusedCallsTest, OneOfEachCallerAndMethodAtOnceAndTheRestAfterAMinute) {
  calls_.Note(Call("user:ann"), 5);
  auto taken = calls_.Take(now_us_);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].first.actor, "user:ann");
  EXPECT_EQ(taken[0].count, 1);
  EXPECT_EQ(taken[0].at_us, 5);
  for (int i = 0; i < 10'000; ++i) calls_.Note(Call("user:ann"), 6 + i);
  calls_.Note(Call("user:ann", "KeyService/RevokeKey"), 9);
  calls_.Note(Call("user:bob"), 9);
  taken = calls_.Take(now_us_ + kSecondUs);
  EXPECT_EQ(taken.size(), 2U);
  taken = calls_.Take(now_us_ + 60 * kSecondUs);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].count, 10'000);
  EXPECT_EQ(taken[0].at_us, 6);
}

TEST_F(RefusedCallsTest, AFloodOfManyCallersMakesABoundedNumberOfEntriesWithTheWholeCount) {
  int64_t entries = 0, counted = 0;
  constexpr int kCalls = 50'000;
  for (int i = 0; i < kCalls; ++i) calls_.Note(Call("user:" + std::to_string(i)), 5);
  for (int second = 0; second < 60; ++second) {
    for (const auto& taken : calls_.Take(now_us_ + second * kSecondUs)) {
      ++entries;
      counted += taken.count;
    }
  }
  EXPECT_LE(entries, kMaxRefusedEntries + 1);
  for (int second = 60; second < 180; ++second) {
    for (const auto& taken : calls_.Take(now_us_ + second * kSecondUs)) counted += taken.count;
  }
  EXPECT_EQ(counted, kCalls);
}

TEST_F(RefusedCallsTest, CallersAreForgottenWhenTheyAreQuiet) {
  for (int minute = 0; minute < 20; ++minute) {
    for (int i = 0; i < 90; ++i) {
      calls_.Note(Call("user:" + std::to_string(minute) + "-" + std::to_string(i)), 5);
    }
    const auto taken = calls_.Take(now_us_ + minute * 60 * kSecondUs);
    // All get an entry: the slots of earlier callers are free again.
    ASSERT_EQ(taken.size(), 90U) << minute;
  }
}

TEST_F(RefusedCallsTest, EachWorkspaceHasItsOwnCount) {
  for (int i = 0; i < 5; ++i) {
    RefusedCall call = Call("user:ann");
    call.workspace = i < 3 ? "acme" : "other";
    calls_.Note(std::move(call), 5);
  }
  const auto taken = calls_.Take(now_us_);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].first.workspace, "acme");
  EXPECT_EQ(taken[0].count, 3);
  EXPECT_EQ(taken[1].first.workspace, "other");
  EXPECT_EQ(taken[1].count, 2);
}

TEST_F(RefusedCallsTest, WithoutAWriterNothingIsKept) {
  calls_.RemoveWriter();
  calls_.Note(Call("user:ann"), 5);
  EXPECT_EQ(calls_.Take(now_us_).size(), 0U);
}

TEST_F(RefusedCallsTest, TextsAreValidAndShort) {
  calls_.Note(Call("user:\xff" + std::string(10'000, 'x')), 5);
  const auto taken = calls_.Take(now_us_);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].first.actor.substr(0, 7), "user:?x");
  EXPECT_LE(taken[0].first.actor.size(), 200U);
  calls_.Note(Call(std::string("user:a\0b", 8)), 5);
  EXPECT_EQ(calls_.Take(now_us_).at(0).first.actor, "user:a?b");
}

}  // namespace
}  // namespace tollgate::audit
