// On real databases: parallel callers, expiry, restart, outages.
#include "services/billing/commit/ledger_service.h"

#include <gtest/gtest.h>

#include <csignal>

#include <algorithm>

#include "services/billing/commit/testing/ledger_service_world.h"

namespace tollgate::billing {
namespace {

// 50 requests race for credit that covers four.
TEST_P(LedgerServiceTest, ParallelRequestsNeverOverspend) {
  SystemClock& clock = SystemClock::Get();
  LedgerService ledger(options_, clock);
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE((*Do(ledger, {MakeAddCredit("c", 4 * 200)}))[0].ok);
  std::atomic<int> succeeded = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 50; ++i) {
    callers.emplace_back([&, i] {
      const Id id = TestId(i, clock.WallUs());
      const Reply hold = (*Do(ledger, {MakeAuthorize(id, 100, 50)}))[0];
      if (!hold.ok) {
        EXPECT_TRUE(hold.denied_by == Deny::kHeld || hold.denied_by == Deny::kNoCredit);
        ++refused;
        return;
      }
      const Reply settled = (*Do(ledger, {MakeSettle(id, 100, 50)}))[0];
      EXPECT_EQ(settled.charged_nano_usd, 200);
      ++succeeded;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(succeeded, 4);
  EXPECT_EQ(refused, 46);
  const Balance balance = BalanceOfWs(ledger);
  EXPECT_EQ(balance.paid_nano_usd, 0);
  EXPECT_EQ(balance.held_nano_usd, 0);
  ExpectVerified(ledger);
}

TEST_P(LedgerServiceTest, AfterARestartHoldsExpireOnlyAfterOneTtl) {
  ManualClock clock;
  options_.policy.hold_ttl_us = 60'000'000;
  options_.database_time = false;
  const Id id = TestId(1, clock.WallUs());
  {
    LedgerService ledger(options_, clock);
    ASSERT_TRUE(ledger.Start().ok());
    ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
    ASSERT_TRUE((*Do(ledger, {MakeAddCredit("c", 1000), MakeAuthorize(id, 100, 50)}))[1].ok);
  }
  clock.Advance(3600'000'000LL);  // the ledger was stopped for an hour
  LedgerService ledger(options_, clock);
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  // After many searches for expired holds it is still open, so that its request can report.
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(BalanceOfWs(ledger).open_holds, 1);
  ASSERT_TRUE((*Do(ledger, {MakeHeartbeat(id, 1, 100, 10)}))[0].ok);
  clock.Advance(59'000'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(BalanceOfWs(ledger).open_holds, 1);
  clock.Advance(2'000'000);
  EXPECT_TRUE(Eventually([&] { return BalanceOfWs(ledger).open_holds == 0; }));
  EXPECT_EQ(BalanceOfWs(ledger).paid_nano_usd, 1000 - 120);
  ExpectVerified(ledger);
}

INSTANTIATE_TEST_SUITE_P(Both, LedgerServiceTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
                         });

TEST(LedgerServiceOutageTest, FailsClosedWhileTheDatabaseIsUnreachableAndRecovers) {
  auto server = testing::TestPostgres::Start();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
  LedgerService::Options options;
  options.sql.url = server->Url("postgres");
  options.group_commit.call_timeout_ms = 5'000;
  SystemClock& clock = SystemClock::Get();
  LedgerService ledger(options, clock);
  server->Kill();
  ASSERT_TRUE(ledger.Start().ok()) << "an unreachable server is retried";
  EXPECT_FALSE(ledger.Ready());
  EXPECT_FALSE(Do(ledger, {MakeAddCredit("c", 1000)}).ok());
  ASSERT_TRUE(server->Run());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE(Do(ledger, {MakeAddCredit("c", 1000)}).ok());
  server->Kill();
  const auto asked = std::chrono::steady_clock::now();
  const auto denied = Do(ledger, {MakeAuthorize(TestId(1, clock.WallUs()), 100, 50)});
  ASSERT_FALSE(denied.ok());
  EXPECT_EQ(denied.error().id, ErrorId::kServiceUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(30));
  EXPECT_FALSE(ledger.Ready());
  ASSERT_TRUE(server->Run());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  EXPECT_TRUE((*Do(ledger, {MakeAuthorize(TestId(2, clock.WallUs()), 100, 50)}))[0].ok);
  EXPECT_EQ(BalanceOfWs(ledger).held_nano_usd, 200);
  ExpectVerified(ledger);
}

// Two replicas, one without traffic: it notices an outage all the same, lets the running requests
// send a heartbeat first, and expires the others later.
TEST(LedgerServiceOutageTest, AReplicaWithoutTrafficPausesTheExpiryAfterAnOutage) {
  auto server = testing::TestPostgres::Start();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
  ManualClock clock;
  LedgerService::Options options;
  options.sql.url = server->Url("postgres");
  options.group_commit.call_timeout_ms = 60'000;
  options.expiry_interval_ms = 5;
  options.database_time = false;
  const Id id = TestId(1, clock.WallUs());
  LedgerService idle(options, clock);
  ASSERT_TRUE(idle.Start().ok());
  ASSERT_TRUE(Eventually([&] { return idle.Ready(); }));
  {
    LedgerService busy(options, clock);
    ASSERT_TRUE(busy.Start().ok());
    ASSERT_TRUE(Eventually([&] { return busy.Ready(); }));
    ASSERT_TRUE((*Do(busy, {MakeAddCredit("c", 1000), MakeAuthorize(id, 100, 50)}))[1].ok);
  }
  clock.Advance(30'000'000);
  server->Kill();
  ASSERT_TRUE(Eventually([&] { return !idle.Ready(); })) << "noticed without traffic";
  clock.Advance(3600'000'000LL);
  ASSERT_TRUE(server->Run());
  ASSERT_TRUE(Eventually([&] { return idle.Ready(); }));
  // Long enough for many searches for expired holds.
  for (int i = 0; i < 100; ++i) ASSERT_EQ(BalanceOfWs(idle).open_holds, 1);
  ASSERT_TRUE((*Do(idle, {MakeHeartbeat(id, 1, 100, 10)}))[0].ok);
  clock.Advance(61'000'000);
  EXPECT_TRUE(Eventually([&] { return BalanceOfWs(idle).open_holds == 0; })) << "without traffic";
  ExpectVerified(idle);
}

// Connections to a hung database stay open, and no timeout of the server ends a statement.
TEST(LedgerServiceOutageTest, ADatabaseThatStandsStillIsNoticedWithoutTraffic) {
  auto server = testing::TestPostgres::Start();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
  LedgerService::Options options;
  options.sql.url = server->Url("postgres");
  options.expiry_interval_ms = 5;
  LedgerService ledger(options, SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  server->Freeze();  // it creates no further processes
  const auto pids = server->Pids(testing::TestPostgres::Part::kAll);
  for (const pid_t pid : pids) kill(pid, SIGSTOP);
  EXPECT_TRUE(Eventually([&] { return !ledger.Ready(); }));
  for (const pid_t pid : pids) kill(pid, SIGCONT);
  EXPECT_TRUE(Eventually([&] { return ledger.Ready(); }));
}

// The running batch must not keep its workspace as long as the old server hangs when a new primary
// exists.
TEST(LedgerServiceOutageTest, WhenThePrimaryStandsStillItsSuccessorServesTheSameWorkspace) {
  auto server = testing::TestPostgres::Start();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
  const auto standby = server->StartStandby();
  ASSERT_TRUE(standby);
  LedgerService::Options options;
  options.sql.url = testing::TestPostgres::UrlOf({server.get(), standby.get()}, "postgres");
  options.sql.connections = 1;
  SystemClock& clock = SystemClock::Get();
  LedgerService ledger(options, clock);
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE((*Do(ledger, {MakeAddCredit("c", 1000)}))[0].ok);
  server->FreezeAll();
  const Id id = TestId(1, clock.WallUs());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(Do(ledger, {MakeAuthorize(id, 100, 50)}).ok());
  EXPECT_TRUE(standby->Promote());
  bool granted = false;
  while (!granted && std::chrono::steady_clock::now() - began < std::chrono::seconds(60)) {
    const auto replies = Do(ledger, {MakeAuthorize(id, 100, 50)});
    granted = replies.ok() && (*replies)[0].ok;
    if (!granted) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(granted) << "sooner than a fail-over";
  server->Kill();
  EXPECT_EQ(BalanceOfWs(ledger).held_nano_usd, 200);
  EXPECT_EQ(BalanceOfWs(ledger).open_holds, 1);
  ExpectVerified(ledger);
}

// Without cancellation Stop would wait until the statement ends.
TEST_P(LedgerServiceTest, StopEndsAReadThatRuns) {
  LedgerService ledger(options_, SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  std::promise<void> begun;
  std::promise<bool> ended;
  ledger.Read(
      [&](sql::Database& database) {
        auto connection = database.Borrow();
        begun.set_value();
        ended.set_value((*connection)
                            ->Query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
                                    "FROM c) SELECT count(*) FROM c",
                                    {}, [](const sql::Row&) {})
                            .ok());
      },
      [&](Error) { begun.set_value(); });
  begun.get_future().get();
  ledger.Stop();
  EXPECT_FALSE(ended.get_future().get());
}

TEST(LedgerServiceStartTest, AFileThatCannotBeOpenedIsAnError) {
  LedgerService::Options options;
  options.sql.url = "sqlite:/nonexistent/folder/ledger.db";
  LedgerService ledger(options, SystemClock::Get());
  EXPECT_FALSE(ledger.Start().ok());
}

}  // namespace
}  // namespace tollgate::billing
