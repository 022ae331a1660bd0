// See decision 29, docs/contract.md "Authentication".
#include "gateway/handlers/report_usage.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/utc_text.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

class ReportUsageTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeExchange> Get(const std::string& query = "", bool with_key = true) {
    std::shared_ptr<FakeExchange> exchange;
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      HttpRequest request;
      request.query = query;
      if (with_key) request.headers = {{"authorization", "Bearer " + rig.key_text}};
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      co_await ReportUsage(*rig.worker, *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  }
  static bool Has(const std::shared_ptr<FakeExchange>& answer, const std::string& text) {
    return answer->body.find(text) != std::string::npos;
  }

  Rig rig;
  const Endpoint endpoint{"GET",           "/api/v1/usage",         "usage",
                          Family::kOpenAi, CredentialRule::kBearer, {}};
};

TEST_F(ReportUsageTest, QueriesTheLedgerByKeyAndPeriod) {
  const auto answer = Get("start=2023-11-01&end=2023-11-02");
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("content-type"), "application/json");
  EXPECT_EQ(answer->header("cache-control"), "no-store");
  ASSERT_EQ(rig.billing->reported.size(), 1u);
  const auto& asked = rig.billing->reported[0];
  EXPECT_EQ(asked.workspace_id(), "ws1");
  EXPECT_EQ(asked.key_id(), rig.key.key_id());
  EXPECT_EQ(asked.start_us(), *ParseUtc("2023-11-01"));
  EXPECT_EQ(asked.end_us(), *ParseUtc("2023-11-02"));
}

TEST_F(ReportUsageTest, AnOpenPeriodIncludesEverythingInTheLedger) {
  EXPECT_TRUE(Has(Get("range=24h"), "\"end\":\"" + UtcText(rig.clock.WallUs()) + "\""));
  EXPECT_EQ(rig.billing->reported.at(0).start_us(), rig.clock.WallUs() - 86'400'000'000);
  EXPECT_EQ(rig.billing->reported.at(0).end_us(), std::numeric_limits<int64_t>::max());
}

TEST_F(ReportUsageTest, TakesNothingFromTheLimitsAndReportsTheRemainder) {
  rig.key.mutable_workspace_limits()->set_tokens_per_minute(500);
  rig.Publish();
  rig.limiter->peek_result->mutable_requests()->set_remaining(42);
  const auto answer = Get();
  EXPECT_TRUE(Has(answer, R"("requests_per_minute":{"limit":100,"remaining":42})"));
  EXPECT_TRUE(rig.limiter->acquired.empty());
  EXPECT_TRUE(rig.billing->authorized.empty());
  ASSERT_EQ(rig.limiter->peeked.size(), 2u);
  EXPECT_EQ(rig.limiter->peeked[0].key_limits().requests_per_minute(), 100);
  EXPECT_FALSE(rig.limiter->peeked[0].has_workspace_limits());
  EXPECT_EQ(rig.limiter->peeked[1].workspace_limits().tokens_per_minute(), 500);
  EXPECT_FALSE(rig.limiter->peeked[1].has_key_limits());
}

TEST_F(ReportUsageTest, WithoutTheLimiterTheRemainderIsNull) {
  rig.limiter->peek_result = Unavailable("limiter is unreachable");
  const auto answer = Get();
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(Has(answer, R"("requests_per_minute":{"limit":100,"remaining":null})"));
}

TEST_F(ReportUsageTest, WithoutTheLedgerItIs503) {
  // The result is the same for every error of billing.
  rig.billing->usage = FailWith(ErrorId::kServerError, "", "a broken table");
  const auto answer = Get();
  EXPECT_EQ(answer->status, 503);
  EXPECT_TRUE(Has(answer, R"("code":"service_unavailable")"));
  EXPECT_FALSE(Has(answer, "broken table"));
  EXPECT_EQ(answer->header("retry-after"), "1");
}

TEST_F(ReportUsageTest, KeysAreCheckedBeforeTheQuery) {
  EXPECT_EQ(Get("range=x", false)->status, 401);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(Get("range=x")->status, 403);
  EXPECT_TRUE(rig.billing->reported.empty());
}

TEST_F(ReportUsageTest, ABadQueryNamesItsParameter) {
  const auto answer = Get("start=tomorrow");
  EXPECT_EQ(answer->status, 400);
  EXPECT_TRUE(Has(answer, R"("param":"start")"));
  EXPECT_TRUE(rig.billing->reported.empty());
}

Task<void> AcquireAndRelease(std::shared_ptr<KeyedQueue> queue) {
  (void)co_await queue->Acquire("ws1");
}

TEST_F(ReportUsageTest, TooManyWaitingReportsAreRefused) {
  std::shared_ptr<FakeExchange> exchange;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    const auto queue = rig.worker->usage_report_queue;
    const KeyedQueue::Ticket running = co_await queue->Acquire("ws1");
    for (int i = 0; i < Worker::kMaxWaitingReports; ++i) loop.Spawn(AcquireAndRelease(queue));
    co_await loop.Sleep(0);
    HttpRequest request;
    request.headers = {{"authorization", "Bearer " + rig.key_text}};
    exchange = std::make_shared<FakeExchange>(loop, std::move(request));
    co_await ReportUsage(*rig.worker, *exchange, endpoint);
    co_return 0;
  });
  EXPECT_EQ(exchange->status, 429);
  EXPECT_TRUE(Has(exchange, R"("code":"rate_limited")"));
  EXPECT_EQ(exchange->header("retry-after"), "1");
  EXPECT_EQ(FailureOf(exchange->request()).reason, Reason::kReports);
  EXPECT_EQ(FailureOf(exchange->request()).key_id, rig.key.key_id());
  EXPECT_EQ(FailureOf(exchange->request()).workspace_id, "ws1");
  EXPECT_TRUE(rig.billing->reported.empty());
  while (rig.worker->usage_report_queue->size() > 0) rig.RunOnLoop([](Loop&) {});
  EXPECT_EQ(Get()->status, 200);
}

}  // namespace
}  // namespace tollgate::gateway
