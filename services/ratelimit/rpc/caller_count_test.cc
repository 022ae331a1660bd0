#include "services/ratelimit/rpc/caller_count.h"

#include <gtest/gtest.h>

namespace tollgate::ratelimit {
namespace {

std::string IdOf(int n) {
  std::string id = std::to_string(n);
  id.resize(16, '.');
  return id;
}

TEST(CallerCount, CountsEachCallerOnceAndForgetsItAfterAMinute) {
  CallerCount callers;
  EXPECT_EQ(callers.Saw(IdOf(1), 1'000'000), 1);
  EXPECT_EQ(callers.Saw(IdOf(2), 2'000'000), 2);
  EXPECT_EQ(callers.Saw(IdOf(1), 50'000'000), 2);
  EXPECT_EQ(callers.Saw(IdOf(1), 2'000'000 + CallerCount::kMemoryUs), 2) << "to the last moment";
  EXPECT_EQ(callers.Saw(IdOf(1), 3'000'001 + CallerCount::kMemoryUs), 1);
}

TEST(CallerCount, WhoDoesNotSayItsIdIsNotCountedAndTheNumberIsBounded) {
  CallerCount callers;
  EXPECT_EQ(callers.Saw("", 1'000'000), 0);
  EXPECT_EQ(callers.Saw("short", 1'000'000), 0);
  for (int i = 0; i < 3000; ++i) (void)callers.Saw(IdOf(i), 1'000'000);
  EXPECT_EQ(callers.Saw("", 1'000'000), static_cast<int64_t>(CallerCount::kMaxCallers));
  EXPECT_EQ(callers.Saw(IdOf(1), 100'000'000), 1);
}

}  // namespace
}  // namespace tollgate::ratelimit
