// Leases of a running ledger: which workspaces may have them, and how they end.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "services/billing/commit/testing/ledger_service_world.h"
#include "services/billing/storage/leases.h"

namespace tollgate::billing {
namespace {

class LedgerServiceLeasesTest : public LedgerServiceTest {
 protected:
  static size_t Leases(LedgerService& ledger) {
    return Read<std::vector<Lease>>(ledger,
                                    [](sql::Database& database) { return ReadLeases(database); })
        .size();
  }
};

TEST_P(LedgerServiceLeasesTest, ALeaseThatNobodyRenewsEnds) {
  options_.policy.lease_ttl_us = 3'000'000;
  options_.policy.lease_margin_us = 100'000;
  LedgerService ledger(options_, SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  auto taken = Do(ledger, {MakeAddCredit("c", 100'000), TakeLease{"ws", "loop", 0, 0, 5000}});
  ASSERT_TRUE(taken.ok());
  ASSERT_TRUE((*taken)[1].ok);
  EXPECT_EQ(Leases(ledger), 1U);
  EXPECT_TRUE(Eventually([&] { return Leases(ledger) == 0; }));
  EXPECT_EQ(BalanceOfWs(ledger).held_nano_usd, 0);
  ExpectVerified(ledger);
}

// As after an outage, routers need time to renew and report first.
TEST_P(LedgerServiceLeasesTest, NothingEndsRightAfterAStart) {
  options_.policy.lease_ttl_us = 600'000;
  options_.policy.lease_margin_us = 100'000;
  {
    LedgerService ledger(options_, SystemClock::Get());
    ASSERT_TRUE(ledger.Start().ok());
    ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
    ASSERT_TRUE(
        Do(ledger, {MakeAddCredit("c", 100'000), TakeLease{"ws", "loop", 0, 0, 5000}}).ok());
  }
  const auto stopped = std::chrono::steady_clock::now();
  ASSERT_TRUE(Eventually([&] {
    return std::chrono::steady_clock::now() - stopped > std::chrono::milliseconds(700);
  })) << "the lease has expired";
  LedgerService ledger(options_, SystemClock::Get());
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  EXPECT_TRUE(Eventually([&] { return Leases(ledger) == 0; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(600));
}

TEST_P(LedgerServiceLeasesTest, ABusyWorkspaceHasLeases) {
  options_.lease_above_per_second = 1;
  LedgerService ledger(options_, SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE(Do(ledger, {MakeAddCredit("c", 100'000)}).ok());
  EXPECT_FALSE(ledger.HasLeases("ws"));
  int n = 0;
  EXPECT_TRUE(Eventually([&] {
    (void)Do(ledger, {MakeAuthorize(TestId(++n, ledger.NowUs()), 10, 0)});
    return ledger.HasLeases("ws");
  }));
}

TEST_P(LedgerServiceLeasesTest, AFreezeRecallsTheLeasesOfItsWorkspaceWithoutAQuestion) {
  options_.recall_interval_ms = 5;
  LedgerService ledger(options_, SystemClock::Get());
  std::mutex mutex;
  std::vector<std::string> newest = {"nothing read yet"};
  const auto recalled = [&](const std::vector<std::string>& expected) {
    return Eventually([&] {
      const std::lock_guard lock(mutex);
      return newest == expected;
    });
  };
  ledger.OnRecalls([&](std::vector<std::string> workspaces) {
    const std::lock_guard lock(mutex);
    newest = std::move(workspaces);
  });
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE(Do(ledger, {MakeAddCredit("c", 100'000), TakeLease{"ws", "loop", 0, 0, 5000}}).ok());
  EXPECT_TRUE(recalled({}));
  Correct freeze;
  freeze.workspace = "ws";
  freeze.command_id = "freeze";
  freeze.kind = CommandKind::kFreeze;
  freeze.actor = "ann";
  freeze.reason = "test";
  ASSERT_TRUE(Do(ledger, {freeze}).ok());
  EXPECT_TRUE(recalled({"ws"}));
}

INSTANTIATE_TEST_SUITE_P(Both, LedgerServiceLeasesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace tollgate::billing
