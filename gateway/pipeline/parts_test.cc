// Credentials, content types, local limits, leases.
#include <gtest/gtest.h>

#include "gateway/pipeline/content_type.h"
#include "gateway/pipeline/credentials.h"
#include "gateway/pipeline/limit_headers.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

std::string Found(Headers headers, CredentialRule rule) {
  static const std::vector<std::string> kLegacy = {"old-"};
  HttpRequest request;
  request.headers = std::move(headers);
  const auto key = FindKey(request, rule, "tollgate", kLegacy);
  if (key.ok()) return std::string(*key);
  EXPECT_EQ(key.error().id, ErrorId::kInvalidApiKey);
  return "401";
}

TEST(Credentials, RulesOfTheTwoFamilies) {  // decisions.md 12, H41-H43
  const std::string a = MakeKey("tollgate").text, b = MakeKey("tollgate").text;
  using enum CredentialRule;
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}}, kBearer), a);
  EXPECT_EQ(Found({{"authorization", "bearer   " + a + " "}}, kBearer), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", b}}, kBearer), a);
  EXPECT_EQ(Found({{"x-api-key", a}}, kBearer), "401");
  EXPECT_EQ(Found({{"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer junk"}, {"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", "junk"}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", b}}, kBearerOrApiKey), "401");
  EXPECT_EQ(Found({{"authorization", "Bearer old-0123456789abcdefghij"}}, kBearer),
            "old-0123456789abcdefghij");
  EXPECT_EQ(Found({{"authorization", "Bearer\t" + a}}, kBearer), "401");
  EXPECT_EQ(Found({{"authorization", "Bearer " + a + " " + a}}, kBearer), "401");
}

TEST(ContentType, JsonInUtf8OrNothing) {  // H72, H73
  const auto ok = [](std::string name, std::string value) {
    HttpRequest request;
    request.headers = {{std::move(name), std::move(value)}};
    return CheckContentType(request).ok();
  };
  EXPECT_TRUE(CheckContentType(HttpRequest{}).ok());
  EXPECT_TRUE(ok("content-type", "application/json"));
  EXPECT_TRUE(ok("content-type", "Application/JSON ; charset=\"UTF-8\""));
  EXPECT_TRUE(ok("content-type", "application/problem+json"));
  EXPECT_FALSE(ok("content-type", "application/jsonx"));
  EXPECT_FALSE(ok("content-type", "multipart/form-data; boundary=application/json"));
  EXPECT_FALSE(ok("content-type", "application/json; charset=utf-16le"));
  EXPECT_TRUE(ok("content-encoding", "identity"));
  EXPECT_FALSE(ok("content-encoding", "zstd"));
}

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

TEST(LocalLimiter, EnforcesAShareOfEveryLimit) {
  LocalLimiter limiter(2);
  int granted = 0;
  // 100 a minute, 60 % of it, over two loops: 30 at once, then one every two seconds.
  for (int i = 0; i < 100; ++i) granted += limiter.Acquire(Item(100, 0, 0, 1), 1'000'000).granted();
  EXPECT_EQ(granted, 30);
  const auto denied = limiter.Acquire(Item(100, 0, 0, 1), 1'000'000);
  EXPECT_EQ(denied.denied_by(), ratelimit::v1::LIMIT_KIND_REQUESTS);
  EXPECT_EQ(denied.retry_after_ms(), 2000);
  EXPECT_FALSE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 1'900'000).granted());
  EXPECT_TRUE(limiter.Acquire(Item(100, 0, 0, 1), 1'000'000 + 2'000'000).granted());
}

TEST(LocalLimiter, TokensAndHugeRequests) {
  LocalLimiter limiter(1);
  EXPECT_TRUE(limiter.Acquire(Item(0, 1000, 0, 400), 0).granted());
  EXPECT_EQ(limiter.Acquire(Item(0, 1000, 0, 400), 0).denied_by(),
            ratelimit::v1::LIMIT_KIND_TOKENS);
  LocalLimiter fresh(1);
  EXPECT_TRUE(fresh.Acquire(Item(0, 1000, 0, INT64_MAX), 0).granted()) << "else it never could";
  EXPECT_FALSE(fresh.Acquire(Item(0, 1000, 0, 1), 0).granted());
}

TEST(LocalLimiter, ConcurrencySlotsComeBack) {
  LocalLimiter limiter(1);
  const auto item = Item(0, 0, 2, 1);  // 60 % of two is one
  EXPECT_TRUE(limiter.Acquire(item, 0).granted());
  {
    const LocalSlot slot(limiter, "w", "k");
    EXPECT_EQ(limiter.Acquire(item, 0).denied_by(), ratelimit::v1::LIMIT_KIND_CONCURRENCY);
  }
  EXPECT_TRUE(limiter.Acquire(item, 0).granted());
}

Lease MakeLease(testing::Rig& rig, const char* id, bool slots = true) {
  ratelimit::v1::ReleaseItem item;
  item.set_lease_id(id);
  return Lease(*rig.worker->leases, std::move(item), slots);
}

TEST(Lease, EveryWayOutGivesBack) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
    {
      Lease dropped = MakeLease(rig, "dropped");
    }
    {
      Lease finished = MakeLease(rig, "finished");
      co_await finished.Finish(12);
      co_await finished.Refund();  // too late to mean anything
    }
    {
      Lease refunded = MakeLease(rig, "refunded");
      co_await refunded.Refund();
    }
    {
      Lease denied = MakeLease(rig, "denied");
      denied.Forget();
    }
    {
      Lease first = MakeLease(rig, "moved");
      Lease second = std::move(first);
      EXPECT_EQ(rig.worker->leases->size(), 1u);
    }
    co_return 0;
  });
  ASSERT_EQ(rig.limiter->released.size(), 4u);
  EXPECT_TRUE(rig.limiter->released[0].refund());
  EXPECT_FALSE(rig.limiter->released[1].refund());
  EXPECT_EQ(rig.limiter->released[1].actual_tokens(), 12);
  EXPECT_EQ(rig.limiter->released[2].lease_id(), "refunded");
  EXPECT_TRUE(rig.limiter->released[2].refund());
  EXPECT_EQ(rig.limiter->released[3].lease_id(), "moved");
  EXPECT_EQ(rig.worker->leases->size(), 0u);
}

TEST(Lease, WaitsForTheLimiterWhereTheNextRequestMayDependOnIt) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    rig.limiter->hears_release = std::make_shared<Event>(loop);
    const auto applied = rig.limiter->hears_release;
    Lease unbounded = MakeLease(rig, "unbounded", false);
    co_await unbounded.Finish(1);  // nobody waits for a slot

    const auto told = std::make_shared<bool>(false);
    loop.RunAfter(20, [applied, told] {
      *told = true;
      applied->Set();
    });
    Lease slot = MakeLease(rig, "slot");
    co_await slot.Finish(1);
    EXPECT_TRUE(*told) << "the end waits until the slot is free";

    // A limiter that is away holds nobody up for long.
    applied->Reset();
    Lease refused = MakeLease(rig, "refused", false);
    co_await refused.Refund();
    applied->Set();
    rig.limiter->hears_release.reset();
    co_return 0;
  });
  EXPECT_EQ(rig.limiter->released.size(), 3u);
}

TEST(HoldGuard, VoidsUnlessTheRouterHasIt) {
  testing::Rig rig;
  rig.On([&](Loop&) {
    const Id id = Id::New();
    {
      HoldGuard dropped(*rig.billing, id, "ws1");
    }
    {
      HoldGuard taken(*rig.billing, Id::New(), "ws1");
      taken.Disarm();
    }
    {
      HoldGuard moved(*rig.billing, Id::New(), "ws1");
      HoldGuard to;
      to = std::move(moved);
    }
    ASSERT_EQ(rig.billing->voided.size(), 2u);
    EXPECT_EQ(rig.billing->voided[0].request_id(), id.ToBytes());
    EXPECT_EQ(rig.billing->voided[0].workspace_id(), "ws1");
  });
}

TEST(LimitHeaders, ResetsAreDurationsAsThePublicServiceWritesThem) {  // wire.md 1.2
  const std::pair<int64_t, std::string> kCases[] = {
      {-5, "0s"},       {0, "0s"},         {1, "1ms"},        {250, "250ms"},
      {999, "999ms"},   {1000, "1s"},      {1001, "2s"},      {59'500, "1m0s"},
      {60'000, "1m0s"}, {360'000, "6m0s"}, {362'001, "6m3s"}, {3'600'000, "60m0s"}};
  for (const auto& [ms, text] : kCases) EXPECT_EQ(ResetText(ms), text) << ms;
}

TEST(LimitHeaders, OnlyLimitsThatExistAreTold) {
  ratelimit::v1::AcquireResult result;
  EXPECT_TRUE(LimitHeaders(Family::kOpenAi, result).empty());
  result.mutable_tokens()->set_limit(1000);
  result.mutable_tokens()->set_remaining(-3);  // debt
  result.mutable_tokens()->set_reset_ms(360'000);
  const Headers expected = {{"x-ratelimit-limit-tokens", "1000"},
                            {"x-ratelimit-remaining-tokens", "0"},
                            {"x-ratelimit-reset-tokens", "6m0s"}};
  EXPECT_EQ(LimitHeaders(Family::kOpenAi, result), expected);
  EXPECT_TRUE(LimitHeaders(Family::kMessages, result).empty());
}

}  // namespace
}  // namespace tollgate::gateway
