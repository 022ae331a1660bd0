#include "services/billing/reports/summary.h"

#include "common/base/time_units.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class SummaryTest : public LedgerDatabaseTest {
 protected:
  // A week after the tests' ledger begins.
  static constexpr int64_t kMidnight = (kNowUs / kDayUs + 8) * kDayUs;
  static constexpr int64_t kNoon = kMidnight + 12 * kHourUs;

  void Request(int64_t at_us, const std::string& model, int64_t completion,
               Outcome outcome = Outcome::kCompleted, int64_t first_token_us = 0) {
    const Id id = TestId(++requests_, at_us);
    Authorize authorize = MakeAuthorize(id, 100, 50);
    authorize.model = model;
    Settle settle = MakeSettle(id, completion > 0 ? 100 : 0, completion, outcome);
    settle.first_token_us = first_token_us;
    Run({authorize, settle}, at_us);
  }
  WorkspaceSummary Read(int64_t day_start_us, int64_t now_us = kNoon) {
    auto summary = ReadSummary(*database_, "ws", day_start_us, now_us);
    EXPECT_TRUE(summary.ok());
    return summary.ok() ? *summary : WorkspaceSummary();
  }
  int requests_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Both, SummaryTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

TEST_P(SummaryTest, TodayBeginsWhereTheCallerSaysAndTheWeekIsSevenDays) {
  Run({MakeAddCredit("c", 1'000'000)});
  Request(kMidnight - 7 * kDayUs + 13 * kHourUs, "dear", 40);
  Request(kMidnight - kHourUs, "cheap", 5);
  Request(kMidnight, "cheap", 10);
  Request(kNoon - 1, "cheap", 20);
  Run({MakeAuthorize(TestId(100, kNoon), 100, 50)}, kNoon);
  const WorkspaceSummary summary = Read(kMidnight);
  EXPECT_EQ(summary.today.requests, 2);
  EXPECT_EQ(summary.today.usage.completion, 30);
  const auto by_report = ReadUsage(*database_, "ws", "key", kMidnight, kNoon, kNoon);
  ASSERT_TRUE(by_report.ok());
  EXPECT_EQ(summary.today.charged_nano_usd, by_report->total.charged_nano_usd);
  EXPECT_EQ(summary.balance.open_holds, 1);
  EXPECT_EQ(summary.week_models, (std::vector<std::string>{"cheap", "dear"}))
      << "the more expensive model first";
  const auto week = ReadUsage(*database_, "ws", "key", kNoon - 7 * kDayUs, kNoon, kNoon);
  EXPECT_EQ(summary.week_charged_nano_usd, week->total.charged_nano_usd);
  // In another time zone the day began an hour earlier.
  EXPECT_EQ(Read(kMidnight - kHourUs).today.requests, 3);
  EXPECT_EQ(Read(kMidnight, kNoon + 6 * kDayUs).week_models, std::vector<std::string>{"cheap"});
}

TEST_P(SummaryTest, OutcomesAndFirstTokensAreThoseOfTodaysRequests) {
  Run({MakeAddCredit("c", 1'000'000)});
  Request(kMidnight - 1, "m", 1, Outcome::kCompleted, 9'000'000);
  for (int i = 1; i <= 20; ++i) Request(kMidnight + i, "m", 1, Outcome::kCompleted, i * 1000);
  Request(kMidnight + 30, "m", 0, Outcome::kFailedBeforeOutput);
  Request(kMidnight + 31, "m", 3, Outcome::kFailedMidStream, 500);
  const WorkspaceSummary summary = Read(kMidnight);
  EXPECT_EQ(summary.recent_requests, 22);
  EXPECT_EQ(summary.recent_start_us, kMidnight + 1);
  EXPECT_EQ(summary.outcomes.at(Outcome::kCompleted), 20);
  EXPECT_EQ(summary.outcomes.at(Outcome::kFailedBeforeOutput), 1);
  EXPECT_EQ(summary.outcomes.at(Outcome::kFailedMidStream), 1);
  EXPECT_EQ(summary.today.free_requests, 1);
  // 21 requests with output, sorted: 500, 1000, 2000, … 20000.
  EXPECT_EQ(summary.first_token_p50_us, 10'000);
  EXPECT_EQ(summary.first_token_p95_us, 19'000);
}

TEST_P(SummaryTest, AWorkspaceWithoutRequestsHasNoFigures) {
  const WorkspaceSummary summary = Read(kMidnight);
  EXPECT_EQ(summary.today.requests, 0);
  EXPECT_EQ(summary.recent_requests, 0);
  EXPECT_FALSE(summary.first_token_p50_us);
  EXPECT_TRUE(summary.week_models.empty());
}

}  // namespace
}  // namespace tollgate::billing
