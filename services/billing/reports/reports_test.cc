#include "services/billing/reports/reports.h"

#include <gtest/gtest.h>

#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

using ReportsTest = LedgerDatabaseTest;

TEST_P(ReportsTest, TheUsageReportAgreesWithTheLedger) {
  const int64_t day = 24LL * 3600 * 1'000'000;
  Run({MakeAddCredit("c", 100'000)});
  int n = 0;
  for (int64_t at : {kNowUs, kNowUs + 1, kNowUs + day}) {
    const Id id = TestId(++n, at);
    Settle settle = MakeSettle(id, 100, 10 * n);
    settle.usage.cached = 5;
    Run({MakeAuthorize(id, 100, 50), settle}, at);
  }
  const Id failed = TestId(++n, kNowUs);
  Run({MakeAuthorize(failed, 100, 50), MakeSettle(failed, 100, 0, Outcome::kFailedBeforeOutput)});
  auto report = ReadUsage(*database_, "ws", "key", kNowUs, kNowUs + 2 * day, kNowUs + day);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->total.requests, 3);
  EXPECT_EQ(report->total.usage.prompt, 300);
  EXPECT_EQ(report->total.usage.completion, 60);
  EXPECT_EQ(report->total.usage.cached, 15);
  EXPECT_EQ(report->total.charged_nano_usd, 420);
  ASSERT_EQ(report->buckets.size(), 2U);
  EXPECT_EQ(report->buckets[0].requests, 2);
  EXPECT_EQ(report->buckets[0].model, "model");
  EXPECT_EQ(report->buckets[1].day, report->buckets[0].day + 1);
  EXPECT_EQ(report->balance.paid_nano_usd, 100'000 - 420);
  EXPECT_EQ(report->balance.month_spent_nano_usd, 420);
  // A part of a day counts only its own requests. Each model and UTC day has its own bucket.
  const int64_t midnight = (kNowUs / day + 3) * day;
  for (const auto& [at, model] : {std::pair(midnight - 1, "model"), std::pair(midnight, "model"),
                                  std::pair(midnight + 1, "other")}) {
    const Id id = TestId(++n, at);
    Authorize authorize = MakeAuthorize(id, 100, 50);
    authorize.model = model;
    Run({authorize, MakeSettle(id, 100, 1)}, at);
  }
  auto cut = ReadUsage(*database_, "ws", "key", midnight - 1, midnight + 2, midnight + day);
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->buckets.size(), 3U);
  EXPECT_EQ(cut->buckets[0].day + 1, cut->buckets[1].day);
  EXPECT_EQ(cut->buckets[1].day, cut->buckets[2].day);
  EXPECT_EQ(cut->buckets[1].day, midnight / day);
  EXPECT_EQ(cut->buckets[2].model, "other");
  EXPECT_EQ(ReadUsage(*database_, "ws", "key", midnight, midnight + 1, kNowUs)->total.requests, 1);
  ExpectVerified();
  // The end is exclusive, and other keys are not counted.
  EXPECT_EQ(ReadUsage(*database_, "ws", "key", kNowUs, kNowUs + 1, kNowUs)->total.requests, 1);
  EXPECT_EQ(ReadUsage(*database_, "ws", "other", 0, INT64_MAX, kNowUs)->total.requests, 0);
  auto entries = ReadEntries(*database_, "ws", 2, 0);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].sequence, (*entries)[1].sequence + 1);
  EXPECT_EQ(ReadEntries(*database_, "ws", 10, 2)->size(), 1U);
}

TEST_P(ReportsTest, FindsExpiredHolds) {
  Run({MakeAddCredit("c", 100'000), MakeAuthorize(TestId(1, kNowUs), 1, 1),
       MakeAuthorize(TestId(2, kNowUs), 1, 1)});
  Run({MakeSettle(TestId(1, kNowUs), 1, 1)});
  EXPECT_TRUE(ReadExpiredHolds(*database_, kNowUs + policy_.hold_ttl_us - 1, 10)->empty());
  auto expired = ReadExpiredHolds(*database_, kNowUs + policy_.hold_ttl_us, 10);
  ASSERT_TRUE(expired.ok());
  ASSERT_EQ(expired->size(), 1U);
  EXPECT_EQ(expired->front().id, TestId(2, kNowUs));
  EXPECT_EQ(expired->front().workspace, "ws");
  EXPECT_EQ(*CountOpenHolds(*database_), 1);
}

INSTANTIATE_TEST_SUITE_P(Both, ReportsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
