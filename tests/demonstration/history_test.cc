#include "tests/demonstration/history.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/billing/reports/reports.h"
#include "services/billing/statement/statement.h"
#include "services/billing/verify/verify.h"
#include "tests/demonstration/history_plan.h"

namespace tollgate::demonstration {
namespace {

// 2026-11-24, 13:30 UTC.
constexpr int64_t kNowUs = 1'795'527'000'000'000;
constexpr int64_t kStartUs = kNowUs / kDayUs * kDayUs - 30 * kDayUs;

class DemonstrationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "demonstration_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    options_.auth_url = "sqlite:" + folder_ + "/auth.db";
    options_.billing_url = "sqlite:" + folder_ + "/billing.db";
    options_.pepper = std::string(32, 'p');
    options_.now_us = kNowUs;
    for (const auto& [id, input, output] : {std::tuple("demo/large", 600'000, 2'400'000),
                                            std::tuple("demo/small", 100'000, 400'000)}) {
      auto& model = *options_.catalog.add_models();
      model.set_id(id);
      model.mutable_price()->set_input_pico_usd(input);
      model.mutable_price()->set_output_pico_usd(output);
      model.mutable_price()->set_version(1);
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<sql::Database> Ledger() {
    auto database = sql::Database::Open({.url = options_.billing_url});
    EXPECT_TRUE(database.ok());
    return std::move(*database);
  }

  std::string folder_;
  HistoryOptions options_;
};

TEST(HistoryPlanTest, IsTheSameForTheSameSeedAndHasTheRhythmOfAWeek) {
  const auto plan = PlanRequests(7, kStartUs, kNowUs);
  const auto again = PlanRequests(7, kStartUs, kNowUs);
  ASSERT_EQ(plan.size(), again.size());
  for (size_t n = 0; n < plan.size(); ++n) {
    EXPECT_EQ(plan[n].admitted_us, again[n].admitted_us);
    EXPECT_EQ(plan[n].usage, again[n].usage);
  }
  EXPECT_NE(PlanRequests(8, kStartUs, kNowUs).size(), plan.size());
  // 2026-11-14 and 15 were a weekend, 2026-11-12 a Thursday.
  std::map<int64_t, int> days;
  std::map<billing::Outcome, int> outcomes;
  for (const PlannedRequest& request : plan) {
    ++days[(request.admitted_us - kStartUs) / kDayUs];
    ++outcomes[request.outcome];
    EXPECT_GT(request.closed_us, request.admitted_us);
    EXPECT_LT(request.closed_us, kNowUs);
  }
  EXPECT_GT(days[18], days[20] * 3 / 2);
  EXPECT_GT(days[18], days[21] * 3 / 2);
  EXPECT_EQ(outcomes.size(), 4u);
  EXPECT_GT(outcomes[billing::Outcome::kCompleted], static_cast<int>(plan.size()) * 9 / 10);
}

// The ledger of the month verifies, and statements and reports show it: every row was written by
// the ledger itself.
TEST_F(DemonstrationTest, TheMonthIsBookedAndVerifies) {
  const auto begin = std::chrono::steady_clock::now();
  const auto made = MakeHistory(options_);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(made.ok()) << made.error();
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_GT(made->requests, 2000);
  auto ledger = Ledger();
  auto connection = ledger->Connect();
  ASSERT_TRUE(connection.ok());
  billing::VerifyOptions verify;
  verify.overdue_holds = true;
  auto report = billing::VerifyLedger(**connection, verify);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->violations.front();
  EXPECT_EQ(report->holds, made->requests);

  auto balance = billing::ReadBalance(*ledger, kDemonstrationWorkspace, kNowUs);
  ASSERT_TRUE(balance.ok());
  EXPECT_EQ(balance->open_holds, 0);
  EXPECT_EQ(balance->paid_nano_usd, 0);  // the credit is granted, not paid
  EXPECT_EQ(balance->granted_nano_usd, 35 * kNanoPerUsd - made->charged_nano_usd);
  EXPECT_GT(balance->granted_nano_usd, 5 * kNanoPerUsd);
  ASSERT_TRUE(balance->cap_nano_usd);
  EXPECT_LT(balance->month_spent_nano_usd, *balance->cap_nano_usd);

  auto statements = billing::ReadStatements(**connection, kDemonstrationWorkspace, kNowUs);
  ASSERT_TRUE(statements.ok());
  ASSERT_EQ(statements->size(), 2u);  // October and November
  int64_t usage = 0;
  for (const auto& statement : *statements) {
    for (const auto& line : statement.movements) {
      if (line.name == billing::kUsageLine) usage -= line.amount_nano_usd;
    }
  }
  EXPECT_EQ(usage, made->charged_nano_usd);
  EXPECT_EQ(statements->back().closing_nano_usd, balance->granted_nano_usd);
}

// The usage report of each key has what the ledger has charged to it, and the keys belong to the
// workspace.
TEST_F(DemonstrationTest, ItsKeysAreKeysOfTheMarkedWorkspace) {
  const auto made = MakeHistory(options_);
  ASSERT_TRUE(made.ok()) << made.error();
  ManualClock clock(kNowUs);
  auto store = auth::AuthStore::Open(
      {.database = {.url = options_.auth_url}, .pepper = options_.pepper, .brand = "tollgate"},
      clock);
  ASSERT_TRUE(store.ok());
  admin::v1::GetWorkspaceRequest get;
  get.set_name("workspaces/demo");
  auto workspace = auth::WorkspaceAdmin(**store).Get(get);
  ASSERT_TRUE(workspace.ok());
  EXPECT_TRUE(workspace->demonstration());
  EXPECT_EQ(workspace->display_name(), "Demonstration");
  EXPECT_EQ(workspace->create_time().seconds(), kStartUs / 1'000'000);

  auth::Caller caller;
  caller.installation = true;
  admin::v1::ListKeysRequest list;
  list.set_parent("workspaces/demo");
  auto keys = auth::KeyAdmin(**store).List(caller, list);
  ASSERT_TRUE(keys.ok());
  ASSERT_EQ(keys->keys_size(), static_cast<int>(Keys().size()));
  auto ledger = Ledger();
  int64_t charged = 0;
  int disabled = 0;
  for (const auto& key : keys->keys()) {
    const std::string id = key.name().substr(key.name().rfind('/') + 1);
    auto usage = billing::ReadUsage(*ledger, "demo", id, kStartUs, kNowUs, kNowUs);
    ASSERT_TRUE(usage.ok());
    EXPECT_GT(usage->total.requests, 0) << key.display_name();
    EXPECT_GT(key.last_used_time().seconds(), kStartUs / 1'000'000) << key.display_name();
    charged += usage->total.charged_nano_usd;
    disabled += key.state() == admin::v1::KEY_STATE_DISABLED ? 1 : 0;
  }
  EXPECT_EQ(charged, made->charged_nano_usd);
  EXPECT_EQ(disabled, 1);
  const auto audited = (*store)->VerifyAudit();
  EXPECT_TRUE(audited.ok());
}

// Stores with content stay unchanged: a history is never booked into a real ledger.
TEST_F(DemonstrationTest, StoresThatAreNotEmptyStayAsTheyAre) {
  options_.days = 2;
  ASSERT_TRUE(MakeHistory(options_).ok());
  auto ledger = Ledger();
  auto before = billing::ReadEntries(*ledger, "demo", 10'000, 0);
  ASSERT_TRUE(before.ok());
  auto again = MakeHistory(options_);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().find("nothing is changed"), std::string::npos);
  // Also when only the ledger has entries.
  options_.auth_url = "sqlite:" + folder_ + "/other.db";
  again = MakeHistory(options_);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().find("wallet"), std::string::npos) << again.error();
  auto after = billing::ReadEntries(*ledger, "demo", 10'000, 0);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->size(), before->size());
  EXPECT_EQ(after->front().hash, before->front().hash);
}

}  // namespace
}  // namespace tollgate::demonstration
