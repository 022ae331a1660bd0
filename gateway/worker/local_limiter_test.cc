#include "gateway/worker/local_limiter.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

ratelimit::v1::AcquireItem Item(int64_t rpm, int64_t tpm, int64_t concurrent, int64_t tokens) {
  ratelimit::v1::AcquireItem item;
  item.set_key_id("k");
  item.set_workspace_id("w");
  item.mutable_key_limits()->set_requests_per_minute(rpm);
  item.mutable_key_limits()->set_tokens_per_minute(tpm);
  item.mutable_workspace_limits()->set_concurrent_requests(concurrent);
  item.set_estimated_tokens(tokens);
  return item;
}

TEST(LocalLimiter, EnforcesItsShareOfTheRequestLimit) {
  LocalLimiter limiter(2);
  int granted = 0;
  // 60 % of 100 per minute, divided by two loops: 30 at once, then one every two seconds.
  for (int i = 0; i < 100; ++i) granted += limiter.Acquire(Item(100, 0, 0, 1), 1'000'000).granted();
  EXPECT_EQ(granted, 30);
  const auto denied = limiter.Acquire(Item(100, 0, 0, 1), 1'000'000);
  EXPECT_EQ(denied.denied_by(), ratelimit::v1::LIMIT_KIND_REQUESTS);
  EXPECT_EQ(denied.retry_after_ms(), 2000);
  EXPECT_FALSE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 1'900'000).granted());
  EXPECT_TRUE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 2'000'000).granted());
}

TEST(LocalLimiter, EnforcesTokenLimitsAndAdmitsOneHugeRequest) {
  LocalLimiter limiter(1);
  EXPECT_TRUE(limiter.Acquire(Item(0, 1000, 0, 400), 0).granted());
  EXPECT_EQ(limiter.Acquire(Item(0, 1000, 0, 400), 0).denied_by(),
            ratelimit::v1::LIMIT_KIND_TOKENS);
  LocalLimiter fresh(1);
  EXPECT_TRUE(fresh.Acquire(Item(0, 1000, 0, INT64_MAX), 0).granted())
      << "it could never pass otherwise";
  EXPECT_FALSE(fresh.Acquire(Item(0, 1000, 0, 1), 0).granted());
}

TEST(LocalLimiter, ReleaseFreesConcurrencySlots) {
  LocalLimiter limiter(1);
  const auto item = Item(0, 0, 2, 1);  // 60 % of two is one
  EXPECT_TRUE(limiter.Acquire(item, 0).granted());
  {
    const LocalSlot slot(limiter, "w", "k");
    EXPECT_EQ(limiter.Acquire(item, 0).denied_by(), ratelimit::v1::LIMIT_KIND_CONCURRENCY);
  }
  EXPECT_TRUE(limiter.Acquire(item, 0).granted());
}

}  // namespace
}  // namespace tollgate::gateway
