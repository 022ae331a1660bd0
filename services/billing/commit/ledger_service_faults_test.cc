// On real databases: wrong clocks, workspaces that are broken or locked, holds that cannot expire,
// reads whose caller leaves.
#include <gtest/gtest.h>

#include <atomic>

#include "common/base/ledger_shard.h"
#include "services/billing/commit/testing/ledger_service_world.h"

namespace tollgate::billing {
namespace {

// The system clock with an offset of the wall clock.
class WrongClock : public Clock {
 public:
  int64_t WallUs() const override { return SystemClock::Get().WallUs() + step_us; }
  int64_t MonotonicUs() const override { return SystemClock::Get().MonotonicUs(); }
  std::atomic<int64_t> step_us = 0;
};

class LedgerFaultsTest : public LedgerServiceTest {
 protected:
  void Open(LedgerService& ledger) {
    ASSERT_TRUE(ledger.Start().ok());
    ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  }
  // Changes the tables without the ledger's knowledge.
  void Tamper(const std::string& sql) {
    auto database = std::move(*sql::Database::Open(options_.sql));
    const auto done = database->Transact(
        sql::TxMode::kWrite, [&](sql::Connection& db) { return db.ExecuteScript(sql); });
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  int64_t Ask(const std::string& sql) {
    auto database = std::move(*sql::Database::Open(options_.sql));
    int64_t value = 0;
    const auto done = database->Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
      return db.Query(sql, {}, [&](const sql::Row& row) { value = row.Int(0); });
    });
    EXPECT_TRUE(done.ok()) << done.error().message;
    return value;
  }
  static Reply One(LedgerService& ledger, Operation op) {
    const auto replies = Do(ledger, {std::move(op)});
    EXPECT_TRUE(replies.ok());
    return replies.ok() ? replies->front() : Reply();
  }
  static Operation In(std::string workspace, Operation op) {
    std::visit([&](auto& any) { any.workspace = std::move(workspace); }, op);
    return op;
  }
  Id NewId() { return TestId(++ids_, SystemClock::Get().WallUs()); }
  // The smallest of several measured differences of two clocks: a busy machine may pause between
  // the two readings.
  template <typename Difference>
  static int64_t LeastUs(const Difference& difference) {
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < 20; ++i) least_us = std::min(least_us, std::abs(difference()));
    return least_us;
  }
  int ids_ = 0;
};

// On PostgreSQL the ledger uses the database's time; on SQLite it follows a step slowly.
TEST_P(LedgerFaultsTest, AWallClockThatJumpsAnHourChangesNothing) {
  WrongClock clock;
  LedgerService ledger(options_, clock);
  Open(ledger);
  ASSERT_TRUE(One(ledger, MakeAddCredit("c", 100'000)).ok);
  const Id running = NewId();
  ASSERT_TRUE(One(ledger, MakeAuthorize(running, 100, 50)).ok);
  for (const int64_t step_us : {kHourUs, -kHourUs, 40 * 24 * kHourUs}) {
    clock.step_us = step_us;
    EXPECT_TRUE(One(ledger, MakeAuthorize(NewId(), 100, 50)).ok) << step_us;
    EXPECT_TRUE(One(ledger, MakeHeartbeat(running, ++ids_, 1, 1)).ok) << "the hold has not expired";
    EXPECT_LT(LeastUs([&] { return ledger.NowUs() - SystemClock::Get().WallUs(); }), kSecondUs)
        << step_us;
  }
  const int64_t newest_us = Ask("SELECT clock_us FROM wallet");
  EXPECT_LT(std::abs(newest_us - SystemClock::Get().WallUs()), kHourUs / 2);
  ExpectVerified(ledger);
}

TEST_P(LedgerFaultsTest, ReplicasOnOneDatabaseHaveOneClock) {
  if (GetParam() == sql::Dialect::kSqlite) GTEST_SKIP() << "one process";
  WrongClock ahead;
  ahead.step_us = kHourUs;
  LedgerService first(options_, SystemClock::Get());
  LedgerService second(options_, ahead);
  Open(first);
  Open(second);
  EXPECT_LT(LeastUs([&] { return first.NowUs() - second.NowUs(); }), kSecondUs / 10);
  ASSERT_TRUE(One(second, MakeAddCredit("c", 100'000)).ok);
  const Id id = NewId();
  ASSERT_TRUE(One(first, MakeAuthorize(id, 100, 50)).ok);
  EXPECT_FALSE(One(second, MakeExpire(id)).ok) << "the hold was just opened";
}

// Damage by an earlier version or a restored backup: the newest entry is in the future.
TEST_P(LedgerFaultsTest, AWorkspaceWhoseClockIsAheadWorksAndIsRepaired) {
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  ASSERT_TRUE(One(ledger, MakeAddCredit("c", 100'000)).ok);
  // The entry of a ledger whose clock was 30 days ahead.
  WrongClock ahead;
  ahead.step_us = 30 * 24 * kHourUs;
  LedgerService::Options wrong = options_;
  wrong.database_time = false;
  {
    LedgerService before(wrong, ahead);
    Open(before);
    ASSERT_TRUE(One(before, MakeAddCredit("d", 1)).ok);
  }
  const Id id = NewId();
  EXPECT_TRUE(One(ledger, MakeAuthorize(id, 100, 50)).ok);
  EXPECT_TRUE(One(ledger, MakeSettle(id, 100, 50)).ok);
  ExpectVerified(ledger);
  const Reply repaired = One(ledger, RepairClock{"ws", "repair", "anna", "time server"});
  ASSERT_TRUE(repaired.ok);
  EXPECT_GT(repaired.moved_back_us, 29 * 24 * kHourUs);
  ASSERT_TRUE(One(ledger, MakeAuthorize(NewId(), 100, 50)).ok);
  EXPECT_LT(std::abs(Ask("SELECT clock_us FROM wallet") - SystemClock::Get().WallUs()), kHourUs);
  ExpectVerified(ledger);
}

// The database was partly restored, or changed by hand.
TEST_P(LedgerFaultsTest, AWalletThatDisagreesWithItsEntriesIsFrozenAndStopsNobody) {
  const Id id = NewId();
  {
    LedgerService before(options_, SystemClock::Get());
    Open(before);
    ASSERT_TRUE(One(before, In("bad", MakeAddCredit("c", 100'000))).ok);
    ASSERT_TRUE(One(before, MakeAuthorize(id, 100, 50, "bad")).ok);
  }
  Tamper("UPDATE wallet SET sequence = sequence - 1");
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  std::vector<Operation> together;
  for (int i = 0; i < 30; ++i) {
    together.push_back(In("good" + std::to_string(i), MakeAddCredit("c", 1000)));
  }
  const Operation settle = MakeSettle(id, 100, 50, Outcome::kCompleted, "bad");
  together.push_back(settle);
  const auto replies = Do(ledger, together);
  ASSERT_TRUE(replies.ok());
  for (int i = 0; i < 30; ++i) EXPECT_TRUE((*replies)[static_cast<size_t>(i)].ok);
  EXPECT_EQ(replies->back().denied_by, Deny::kUnavailable) << "the sender retries";
  EXPECT_EQ(Ask("SELECT frozen FROM wallet WHERE workspace = 'bad'"), 3);
  EXPECT_EQ(One(ledger, MakeAuthorize(NewId(), 1, 1, "bad")).denied_by, Deny::kFrozenByCheck);
  EXPECT_EQ(One(ledger, settle).denied_by, Deny::kUnavailable) << "not booked on a broken wallet";
  EXPECT_TRUE(One(ledger, MakeAuthorize(NewId(), 1, 1, "good1")).ok);
  // After an operator's repair the repeated settlement is booked.
  Tamper("UPDATE wallet SET sequence = sequence + 1, frozen = 0 WHERE workspace = 'bad'");
  EXPECT_TRUE(One(ledger, settle).ok);
  ExpectVerified(ledger);
}

// Another replica finds the fault moments after this one has checked the wallet.
TEST_P(LedgerFaultsTest, NothingIsBuiltOnAWalletThatAnotherReplicaHasFrozen) {
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  const Id id = NewId();
  ASSERT_TRUE(One(ledger, In("bad", MakeAddCredit("c", 100'000))).ok);
  ASSERT_TRUE(One(ledger, MakeAuthorize(id, 100, 50, "bad")).ok);
  Tamper("UPDATE wallet SET sequence = sequence - 1, frozen = 3");
  const Operation settle = MakeSettle(id, 100, 50, Outcome::kCompleted, "bad");
  EXPECT_EQ(One(ledger, settle).denied_by, Deny::kUnavailable);
  Tamper("UPDATE wallet SET sequence = sequence + 1, frozen = 0");
  EXPECT_TRUE(One(ledger, settle).ok);
  ExpectVerified(ledger);
}

// Every wallet is checked before its first use, however many come into use at once.
TEST_P(LedgerFaultsTest, EveryWalletIsCheckedBeforeItsFirstUse) {
  constexpr size_t kWallets = 60;
  const auto credits = [](const char* command) {
    std::vector<Operation> credits;
    for (size_t i = 0; i < kWallets; ++i) {
      credits.push_back(In("ws" + std::to_string(i), MakeAddCredit(command, 1000)));
    }
    return credits;
  };
  {
    LedgerService before(options_, SystemClock::Get());
    Open(before);
    for (const char* command : {"c", "d"}) ASSERT_TRUE(Do(before, credits(command)).ok());
  }
  Tamper(
      "UPDATE wallet SET head = (SELECT hash FROM entry e WHERE e.sequence = 1"
      " AND e.shard = wallet.shard AND e.workspace = wallet.workspace) WHERE workspace <> 'ws7'");
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  const auto replies = Do(ledger, credits("e"));
  ASSERT_TRUE(replies.ok());
  for (size_t i = 0; i < kWallets; ++i) EXPECT_EQ((*replies)[i].ok, i == 7) << i;
  EXPECT_EQ(Ask("SELECT count(*) FROM entry"), 2 * kWallets + 1);
}

// A database error in every batch of one workspace.
TEST_P(LedgerFaultsTest, AWorkspaceWhoseRowsCannotBeWrittenStopsNobody) {
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  ASSERT_TRUE(One(ledger, In("bad", MakeAddCredit("c", 100'000))).ok);
  Tamper(GetParam() == sql::Dialect::kSqlite
             ? "CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.workspace = 'bad'"
               " BEGIN SELECT RAISE(ABORT, 'refused'); END"
             : "ALTER TABLE entry ADD CONSTRAINT refuse CHECK (workspace <> 'bad' OR sequence < 2)"
               " NOT VALID");
  std::vector<Operation> together;
  for (int i = 0; i < 60; ++i) {
    together.push_back(In(i == 7 ? "bad" : "good" + std::to_string(i), MakeAddCredit("d", 1000)));
  }
  const auto replies = Do(ledger, together);
  ASSERT_TRUE(replies.ok());
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ((*replies)[i].ok, i != 7) << i;
  EXPECT_EQ((*replies)[7].denied_by, Deny::kUnavailable);
  EXPECT_TRUE(One(ledger, MakeAuthorize(NewId(), 1, 1, "good1")).ok);
}

// Another transaction has locked one wallet: only that workspace waits.
TEST_P(LedgerFaultsTest, ALockedWalletStopsNobodyElse) {
  if (GetParam() == sql::Dialect::kSqlite) GTEST_SKIP() << "no row locks";
  options_.group_commit.call_timeout_ms = 120'000;
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  for (const char* workspace : {"locked", "free"}) {
    ASSERT_TRUE(One(ledger, In(workspace, MakeAddCredit("c", 1'000'000))).ok);
  }
  auto database = std::move(*sql::Database::Open(options_.sql));
  auto connection = std::move(*database->Connect());
  ASSERT_TRUE(connection->Begin(sql::TxMode::kWrite).ok());
  ASSERT_TRUE(connection
                  ->Query("SELECT workspace FROM wallet WHERE shard = $1 AND workspace = 'locked'"
                          " FOR UPDATE",
                          {LedgerShard("locked")}, [](const sql::Row&) {})
                  .ok());
  // Submits them together, so that they form one batch.
  std::atomic<bool> settled = false;
  const auto began = std::chrono::steady_clock::now();
  std::thread waiting([&] {
    EXPECT_TRUE(One(ledger, MakeAuthorize(NewId(), 100, 50, "locked")).ok);
    settled = true;
  });
  int64_t slowest_us = 0;
  for (int i = 0; i < 30; ++i) {
    const int64_t asked_us = SystemClock::Get().MonotonicUs();
    EXPECT_TRUE(
        One(ledger, MakeAuthorize(TestId(1000 + i, SystemClock::Get().WallUs()), 1, 1, "free")).ok);
    slowest_us = std::max(slowest_us, SystemClock::Get().MonotonicUs() - asked_us);
  }
  EXPECT_FALSE(settled);
  EXPECT_LT(slowest_us, 20 * kSecondUs) << "much less than the timeout of a call";
  ASSERT_TRUE(connection->Commit().ok());
  waiting.join();
  EXPECT_TRUE(settled);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(100));
  ExpectVerified(ledger);
}

// 300 holds that cannot be closed precede one that can.
TEST_P(LedgerFaultsTest, HoldsThatCannotExpireDoNotKeepOthersOpen) {
  options_.database_time = false;
  ManualClock clock(SystemClock::Get().WallUs());
  LedgerService ledger(options_, clock);
  Open(ledger);
  ASSERT_TRUE(One(ledger, In("bad", MakeAddCredit("c", 10'000'000))).ok);
  ASSERT_TRUE(One(ledger, MakeAddCredit("c", 100'000)).ok);
  std::vector<Operation> holds;
  for (int i = 0; i < 300; ++i) holds.push_back(MakeAuthorize(NewId(), 1, 1, "bad"));
  ASSERT_TRUE(Do(ledger, holds).ok());
  Tamper("UPDATE wallet SET held = 0 WHERE workspace = 'bad'");
  ASSERT_TRUE(One(ledger, MakeAuthorize(NewId(), 100, 50)).ok);
  clock.Advance(61 * kSecondUs);
  EXPECT_TRUE(Eventually([&] { return BalanceOfWs(ledger).open_holds == 0; }));
  EXPECT_EQ(Ask("SELECT count(*) FROM hold WHERE state = 1"), 300);
}

TEST_P(LedgerFaultsTest, AReadEndsWhenItsCallerLeaves) {
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  std::atomic<bool> left = false;
  std::promise<sql::SqlError> ended;
  std::promise<void> began;
  // Runs for minutes unless cancelled.
  ledger.Read(
      [&](sql::Database& database) {
        began.set_value();
        const auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
          return db.Query(
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000)"
              " SELECT count(*) FROM n",
              {}, [](const sql::Row&) {});
        });
        ended.set_value(done.ok() ? sql::SqlError{} : done.error());
      },
      [&](Error) { ADD_FAILURE() << "refused"; }, [&] { return left.load(); });
  began.get_future().get();
  left = true;
  auto result = ended.get_future();
  ASSERT_EQ(result.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(result.get().kind, sql::ErrorKind::kOther);
  // A waiting read does not start for a caller who has left.
  std::promise<void> refused;
  ledger.Read([&](sql::Database&) { ADD_FAILURE() << "its caller has left"; },
              [&](Error) { refused.set_value(); }, [] { return true; });
  refused.get_future().get();
  // The connection still works.
  EXPECT_EQ(BalanceOfWs(ledger).open_holds, 0);
}

// Callers get their answer at once, not when their timeout ends.
TEST_P(LedgerFaultsTest, AStopAnswersTheReadsThatWaitBeforeThoseThatRunHaveEnded) {
  LedgerService ledger(options_, SystemClock::Get());
  Open(ledger);
  std::promise<void> go_on;
  const std::shared_future<void> released = go_on.get_future().share();
  std::promise<void> began[2];  // one for each reader thread
  for (std::promise<void>& begin : began) {
    ledger.Read(
        [&begin, released](sql::Database&) {
          begin.set_value();
          released.wait();
        },
        [](Error) { ADD_FAILURE() << "refused"; });
  }
  for (std::promise<void>& begin : began) begin.get_future().get();
  std::promise<Error> refused;
  ledger.Read([](sql::Database&) { ADD_FAILURE() << "must not run"; },
              [&](Error error) { refused.set_value(std::move(error)); });
  std::thread stopper([&] { ledger.Stop(); });
  auto answer = refused.get_future();
  const bool answered = answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  go_on.set_value();
  stopper.join();
  ASSERT_TRUE(answered) << "refused only after the running reads";
  EXPECT_EQ(answer.get().id, ErrorId::kServiceUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Both, LedgerFaultsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace tollgate::billing
