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
  // 60 % of 100 per minute, divided by two loops: a burst of 30, then one every two seconds.
  for (int i = 0; i < 100; ++i) granted += limiter.Acquire(Item(100, 0, 0, 1), 1'000'000).granted();
  EXPECT_EQ(granted, 30);
  const auto denied = limiter.Acquire(Item(100, 0, 0, 1), 1'000'000);
  EXPECT_EQ(denied.denied_by(), ratelimit::v1::LIMIT_KIND_REQUESTS);
  EXPECT_EQ(denied.retry_after_ms(), 2000);
  EXPECT_FALSE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 1'900'000).granted());
  EXPECT_TRUE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 2'000'000).granted());
}

// The limiter's answer when this much is left of its limit of 100 per minute.
ratelimit::v1::AcquireResult Left(int64_t requests, bool granted = true) {
  ratelimit::v1::AcquireResult result;
  result.set_granted(granted);
  result.mutable_requests()->set_limit(100);
  result.mutable_requests()->set_remaining(requests);
  result.mutable_requests()->set_reset_ms((100 - requests) * 600);
  return result;
}

int Burst(LocalLimiter& limiter, const ratelimit::v1::AcquireItem& item, int64_t now_us) {
  int granted = 0;
  for (int i = 0; i < 2000; ++i) granted += limiter.Acquire(item, now_us).granted();
  return granted;
}

TEST(LocalLimiter, AllGatewaysTogetherHave120PercentHoweverManyThereAre) {
  for (const int64_t gateways : {1, 2, 3, 4, 8}) {
    int granted = 0;
    for (int64_t i = 0; i < gateways; ++i) {
      LocalLimiter limiter(1);
      limiter.ShareAmong(gateways);
      granted += Burst(limiter, Item(1000, 0, 0, 1), 1'000'000);
    }
    EXPECT_EQ(granted, 1200) << gateways;
  }
  // The smallest limits still grant one request per minute.
  LocalLimiter limiter(1);
  limiter.ShareAmong(8);
  EXPECT_EQ(Burst(limiter, Item(2, 0, 0, 1), 1'000'000), 1);
  LocalLimiter untold(1);
  untold.ShareAmong(0);
  EXPECT_EQ(Burst(untold, Item(100, 0, 0, 1), 1'000'000), 60) << "as two";
}

TEST(LocalLimiter, AnOutageStartsWithWhatWasLeft) {
  const auto item = Item(100, 0, 0, 1);
  const int64_t now = 1'000'000;
  LocalLimiter spent(1);
  spent.ShareAmong(4);
  spent.Observe(item, Left(0, false), now);
  EXPECT_EQ(Burst(spent, item, now), 0) << "no second burst";
  EXPECT_EQ(Burst(spent, item, now + 2'000'000), 1) << "30 a minute";
  LocalLimiter half(1);
  half.ShareAmong(4);
  half.Observe(item, Left(50), now);
  EXPECT_EQ(Burst(half, item, now), 15) << "a quarter of 120 % of 50";
  half.Observe(item, Left(100), now);
  EXPECT_EQ(Burst(half, item, now), 30) << "the limiter's answer takes precedence";
}

// The limiter reports the limit with the least left; this loop counts the others itself.
TEST(LocalLimiter, LimitsOfWhichNothingIsSaidAreChargedWithWhatWasGranted) {
  ratelimit::v1::AcquireItem item = Item(100, 0, 0, 1);
  item.mutable_workspace_limits()->set_requests_per_minute(200);
  LocalLimiter limiter(1);
  for (int i = 0; i < 110; ++i) limiter.Observe(item, Left(60), 1'000'000);
  item.set_key_id("another");
  item.clear_key_limits();
  EXPECT_EQ(Burst(limiter, item, 1'000'000), 10) << "120 of the workspace, less 110";
  for (int i = 0; i < 1000; ++i) limiter.Observe(item, Left(60), 1'000'000);
  EXPECT_EQ(Burst(limiter, item, 1'000'000), 0);
  EXPECT_GT(Burst(limiter, item, 2'000'000), 0) << "no debt from what the limiter granted";
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
    const LocalSlot slot = limiter.Take(item);
    EXPECT_EQ(limiter.Acquire(item, 0).denied_by(), ratelimit::v1::LIMIT_KIND_CONCURRENCY);
    EXPECT_EQ(limiter.CheckSlots(item).denied_by(), ratelimit::v1::LIMIT_KIND_CONCURRENCY);
  }
  EXPECT_TRUE(limiter.CheckSlots(item).granted());
  EXPECT_TRUE(limiter.Acquire(item, 0).granted());
}

TEST(LocalLimiter, EverySubjectHasItsShareAndShadowModeRefusesNobody) {
  LocalLimiter limiter(1);
  ratelimit::v1::AcquireItem item = Item(100, 0, 0, 1);
  item.set_model("m/a");
  item.mutable_key_model_limits()->set_requests_per_minute(50);
  item.mutable_workspace_model_limits()->set_requests_per_minute(20);
  item.mutable_model_limits()->set_requests_per_minute(10);
  const auto burst = [&] {
    int granted = 0;
    for (int i = 0; i < 100; ++i) granted += limiter.Acquire(item, 1'000'000).granted();
    return granted;
  };
  EXPECT_EQ(burst(), 6);  // the model's limit
  item.mutable_model_limits()->set_shadow(true);
  EXPECT_EQ(burst(), 6);  // workspace and model: 12, of which 6 are used
  item.clear_workspace_model_limits();
  EXPECT_EQ(burst(), 18);  // key and model: 30, of which 12 are used
  item.set_model("m/b");
  EXPECT_EQ(burst(), 30);  // the key: 60, of which 30 are used
}

}  // namespace
}  // namespace tollgate::gateway
