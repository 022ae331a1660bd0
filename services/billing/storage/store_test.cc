// The ledger on SQL: both databases give the same replies as the pure function, byte for byte, and
// the books prove. TOLLGATE_BENCH=1 prints throughput.
#include "services/billing/storage/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/storage/reports.h"
#include "services/billing/storage/verify.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {
namespace {

using sql::Dialect;

std::string FilePath(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("tollgate-ledger-" + name + "-" + std::to_string(getpid()) + ".db"))
      .string();
}

class StoreTest : public ::testing::TestWithParam<Dialect> {
 protected:
  void SetUp() override {
    sql::Database::Options options;
    if (GetParam() == Dialect::kSqlite) {
      file_ = FilePath("store");
      Remove();
      options.url = "sqlite:" + file_;
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      options.url = server->MakeDatabase("ledger");
    }
    database_ = std::move(*sql::Database::Open(options));
    auto migrated = MigrateLedger(*database_);
    ASSERT_TRUE(migrated.ok()) << migrated.error().message;
    connection_ = std::move(*database_->Connect());
  }
  void TearDown() override {
    connection_.reset();
    database_.reset();
    if (!file_.empty()) Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  Applied Run(std::vector<Op> ops, int64_t now_us = kNow) {
    auto applied = RunBatch(*connection_, ops, now_us, policy_);
    EXPECT_TRUE(applied.ok()) << applied.error().message;
    return applied.ok() ? std::move(*applied) : Applied();
  }
  Reply Do(const Op& op, int64_t now_us = kNow) { return Run({op}, now_us).replies.at(0); }
  void ExpectProven() {
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->ok()) << report->violations.front();
  }

  static constexpr int64_t kNow = 1'763'700'000'000'000;
  std::string file_;
  Policy policy_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<sql::Connection> connection_;
};

TEST_P(StoreTest, GivesTheRepliesOfThePureFunctionAndProves) {
  History history(4711);
  State state;
  int64_t operations = 0;
  while (operations < 3000) {
    std::vector<Op> batch;
    const size_t size = 1 + history.Below(60);
    while (batch.size() < size) batch.push_back(history.NextOp());
    const int64_t now_us = history.NextTime();
    const Applied expected = Apply(state, batch, now_us, policy_);
    const Applied got = Run(batch, now_us);
    ASSERT_EQ(got.replies.size(), expected.replies.size());
    for (size_t i = 0; i < batch.size(); ++i) ASSERT_EQ(got.replies[i], expected.replies[i]);
    ASSERT_EQ(got.entries.size(), expected.entries.size());
    for (size_t i = 0; i < got.entries.size(); ++i) {
      ASSERT_EQ(got.entries[i].hash, expected.entries[i].hash);
    }
    operations += static_cast<int64_t>(size);
  }
  auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->violations.front();
  EXPECT_EQ(report->workspaces, static_cast<int64_t>(state.wallets.size()));
  EXPECT_GT(report->entries, 500);
  EXPECT_GT(report->usage_records, 100);
}

// What an intruder, or a bug, may do to a table, and that it is found.
TEST_P(StoreTest, EveryKindOfTamperingIsFound) {
  const Id settled = TestId(1, kNow);
  const Id open = TestId(2, kNow);
  Run({CreditOp("c", 100'000), CapOp("cap", 90'000), AuthorizeOp(settled, 100, 50),
       AuthorizeOp(open, 100, 50), SettleOp(settled, 100, 20)});
  ExpectProven();
  const char* tampering[] = {
      "UPDATE entry SET amount = amount + 1 WHERE sequence = 1",
      "UPDATE entry SET memo = 'x' WHERE sequence = 1",
      "DELETE FROM entry WHERE sequence = (SELECT max(sequence) FROM entry)",
      "DELETE FROM entry WHERE sequence = 2",
      "UPDATE wallet SET paid = paid + 1",
      "UPDATE wallet SET held = held + 1",
      "UPDATE wallet SET open_holds = 0",
      "UPDATE wallet SET cap = NULL",
      "DELETE FROM wallet",
      "UPDATE cap_month SET spent = spent + 1",
      "UPDATE cap_month SET held = 0",
      "DELETE FROM cap_month",
      "UPDATE hold SET authorized = authorized + 1 WHERE state = 1",
      "UPDATE hold SET charged = charged - 1 WHERE state = 2",
      "UPDATE hold SET state = 2 WHERE state = 1",
      "DELETE FROM hold WHERE state = 2",
      "UPDATE hold SET workspace = 'other' WHERE state = 2",
      "INSERT INTO cap_month SELECT 'ws:202001', workspace, 202001, 0, 0 FROM wallet",
      "INSERT INTO wallet SELECT 'thief', paid, granted, 0, 0, cap, frozen, sequence, head, "
      "clock_us"
      " FROM wallet",
      "DELETE FROM usage_record",
      "UPDATE usage_record SET completion = completion + 1",
      "UPDATE usage_record SET charged = charged + 1",
      "UPDATE usage_record SET cost_pico = '1'",
      "UPDATE usage_record SET key_id = 'other'",
      "UPDATE usage_record SET day = day + 1",
      "UPDATE usage_record SET admitted_us = admitted_us - 1",
      "UPDATE usage_record SET cached = cached + 1",
      "UPDATE usage_record SET reasoning = reasoning + 1",
  };
  for (const char* change : tampering) {
    auto saved = connection_->ExecuteScript(
        "DROP TABLE IF EXISTS s1; DROP TABLE IF EXISTS s2; DROP TABLE IF EXISTS s3;"
        "DROP TABLE IF EXISTS s4; DROP TABLE IF EXISTS s5;"
        "CREATE TABLE s1 AS SELECT * FROM entry; CREATE TABLE s2 AS SELECT * FROM wallet;"
        "CREATE TABLE s3 AS SELECT * FROM cap_month; CREATE TABLE s4 AS SELECT * FROM hold;"
        "CREATE TABLE s5 AS SELECT * FROM usage_record;");
    ASSERT_TRUE(saved.ok()) << saved.error().message;
    auto changed = connection_->Execute(change);
    ASSERT_TRUE(changed.ok()) << change << ": " << changed.error().message;
    ASSERT_GT(*changed, 0) << change;
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok());
    EXPECT_FALSE(report->ok()) << change;
    auto restored = connection_->ExecuteScript(
        "DELETE FROM entry; DELETE FROM wallet; DELETE FROM cap_month; DELETE FROM hold;"
        "DELETE FROM usage_record;"
        "INSERT INTO entry SELECT * FROM s1; INSERT INTO wallet SELECT * FROM s2;"
        "INSERT INTO cap_month SELECT * FROM s3; INSERT INTO hold SELECT * FROM s4;"
        "INSERT INTO usage_record SELECT * FROM s5;");
    ASSERT_TRUE(restored.ok()) << restored.error().message;
  }
  ExpectProven();
}

TEST_P(StoreTest, TheUsageReportAgreesWithTheBooks) {
  const int64_t day = 24LL * 3600 * 1'000'000;
  Run({CreditOp("c", 100'000)});
  int n = 0;
  for (int64_t at : {kNow, kNow + 1, kNow + day}) {
    const Id id = TestId(++n, at);
    Op settle = SettleOp(id, 100, 10 * n);
    settle.usage.cached = 5;
    Run({AuthorizeOp(id, 100, 50), settle}, at);
  }
  const Id failed = TestId(++n, kNow);
  Run({AuthorizeOp(failed, 100, 50), SettleOp(failed, 100, 0, Outcome::kFailedBeforeOutput)});
  auto report = ReadUsage(*database_, "ws", "key", kNow, kNow + 2 * day, kNow + day);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->total.requests, 3);
  EXPECT_EQ(report->total.usage.prompt, 300);
  EXPECT_EQ(report->total.usage.completion, 60);
  EXPECT_EQ(report->total.usage.cached, 15);
  EXPECT_EQ(report->total.charged, 420);
  ASSERT_EQ(report->buckets.size(), 2U);
  EXPECT_EQ(report->buckets[0].requests, 2);
  EXPECT_EQ(report->buckets[0].model, "model");
  EXPECT_EQ(report->buckets[1].day, report->buckets[0].day + 1);
  EXPECT_EQ(report->balance.paid, 100'000 - 420);
  EXPECT_EQ(report->balance.month_spent, 420);
  // A day that is cut holds what lies inside; each model and each UTC day has a bucket of its own.
  const int64_t midnight = (kNow / day + 3) * day;
  for (const auto& [at, model] : {std::pair(midnight - 1, "model"), std::pair(midnight, "model"),
                                  std::pair(midnight + 1, "other")}) {
    const Id id = TestId(++n, at);
    Op authorize = AuthorizeOp(id, 100, 50);
    authorize.model = model;
    Run({authorize, SettleOp(id, 100, 1)}, at);
  }
  auto cut = ReadUsage(*database_, "ws", "key", midnight - 1, midnight + 2, midnight + day);
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->buckets.size(), 3U);
  EXPECT_EQ(cut->buckets[0].day + 1, cut->buckets[1].day);
  EXPECT_EQ(cut->buckets[1].day, cut->buckets[2].day);
  EXPECT_EQ(cut->buckets[1].day, midnight / day);
  EXPECT_EQ(cut->buckets[2].model, "other");
  EXPECT_EQ(ReadUsage(*database_, "ws", "key", midnight, midnight + 1, kNow)->total.requests, 1);
  ExpectProven();
  // The end is exclusive, other keys see nothing.
  EXPECT_EQ(ReadUsage(*database_, "ws", "key", kNow, kNow + 1, kNow)->total.requests, 1);
  EXPECT_EQ(ReadUsage(*database_, "ws", "other", 0, INT64_MAX, kNow)->total.requests, 0);
  auto entries = ReadEntries(*database_, "ws", 2, 0);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].sequence, (*entries)[1].sequence + 1);
  EXPECT_EQ(ReadEntries(*database_, "ws", 10, 2)->size(), 1U);
}

TEST_P(StoreTest, HoldsWhoseTimeIsOverAreFound) {
  Run({CreditOp("c", 100'000), AuthorizeOp(TestId(1, kNow), 1, 1),
       AuthorizeOp(TestId(2, kNow), 1, 1)});
  Run({SettleOp(TestId(1, kNow), 1, 1)});
  EXPECT_TRUE(ReadExpired(*database_, kNow + policy_.hold_ttl_us - 1, 10)->empty());
  auto expired = ReadExpired(*database_, kNow + policy_.hold_ttl_us, 10);
  ASSERT_TRUE(expired.ok());
  ASSERT_EQ(expired->size(), 1U);
  EXPECT_EQ(expired->front().id, TestId(2, kNow));
  EXPECT_EQ(expired->front().workspace, "ws");
  EXPECT_EQ(*CountOpenHolds(*database_), 1);
}

// Several replicas work on one workspace that none of them has seen before.
TEST_P(StoreTest, RacingReplicasLoseNothing) {
  constexpr int kReplicas = 4;
  constexpr int kRounds = 25;
  std::vector<std::thread> replicas;
  std::atomic<int64_t> granted = 0;
  for (int r = 0; r < kReplicas; ++r) {
    replicas.emplace_back([&, r] {
      auto connection = std::move(*database_->Connect());
      const auto run = [&](std::vector<Op> ops) {
        while (true) {
          auto applied = RunBatch(*connection, ops, kNow, policy_);
          if (applied.ok()) return std::move(applied->replies);
          EXPECT_EQ(applied.error().kind, sql::ErrorKind::kRetry) << applied.error().message;
        }
      };
      for (int i = 0; i < kRounds; ++i) {
        const Id id = TestId(1000 * r + i, kNow);
        run({CreditOp("c" + std::to_string(r) + "-" + std::to_string(i), 150)});
        if (run({AuthorizeOp(id, 100, 50)})[0].ok) {
          ++granted;
          run({SettleOp(id, 100, 0)});
        }
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  const Balance balance = *ReadBalance(*database_, "ws", kNow);
  EXPECT_EQ(balance.paid, kReplicas * kRounds * 150 - granted * 100);
  EXPECT_EQ(balance.held, 0);
  EXPECT_GT(granted, 0);
  ExpectProven();
}

TEST_P(StoreTest, Throughput) {
  if (!std::getenv("TOLLGATE_BENCH")) GTEST_SKIP() << "set TOLLGATE_BENCH=1";
  for (const bool spread : {false, true}) {
    for (const int batch : {1, 16, 64, 256}) {
      std::vector<Op> credit;
      for (int w = 0; w < (spread ? 200 : 1); ++w) {
        credit.push_back(CreditOp("c" + std::to_string(batch), 1'000'000'000'000));
        credit.back().workspace = "w" + std::to_string(w);
      }
      Run(credit);
      const auto begin = std::chrono::steady_clock::now();
      int64_t ops = 0;
      double seconds = 0;
      static int n = 0;
      while (seconds < 1.5) {
        std::vector<Op> authorizes;
        std::vector<Op> settles;
        for (int i = 0; i < batch; ++i) {
          const Id id = TestId(++n, kNow);
          const std::string workspace = spread ? "w" + std::to_string(n % 200) : "w0";
          authorizes.push_back(AuthorizeOp(id, 100, 50, workspace));
          settles.push_back(SettleOp(id, 100, 50));
          settles.back().workspace = workspace;
        }
        Run(std::move(authorizes));
        Run(std::move(settles));
        ops += 2 * batch;
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
      std::printf("%s %s batch %3d: %8.0f ops/s\n",
                  GetParam() == Dialect::kSqlite ? "sqlite  " : "postgres",
                  spread ? "200 workspaces" : "one workspace ", batch,
                  static_cast<double>(ops) / seconds);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, StoreTest, ::testing::Values(Dialect::kSqlite, Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == Dialect::kSqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace tollgate::billing
