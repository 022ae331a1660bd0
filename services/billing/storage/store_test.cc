// Batches on both databases.
#include "services/billing/storage/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/storage/reports.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

using StoreTest = LedgerDatabaseTest;

TEST_P(StoreTest, RepliesAndEntriesEqualThoseOfApply) {
  History history(4711);
  State state;
  int64_t operations = 0;
  while (operations < 4000) {
    std::vector<Operation> batch;
    const size_t size = 1 + history.Below(60);
    while (batch.size() < size) batch.push_back(history.NextOperation());
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
  EXPECT_GT(report->usage_records, 80);
  int64_t stored = 0;
  auto read = connection_->Query("SELECT count(*) FROM usage_record", {},
                                 [&](const sql::Row& row) { stored = row.Int(0); });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(report->usage_records, stored) << "each was compared with its hold";
}

// Several replicas work on one workspace, which does not exist at first.
TEST_P(StoreTest, RacingReplicasLoseNothing) {
  constexpr int kReplicas = 4;
  constexpr int kRounds = 25;
  std::vector<std::thread> replicas;
  std::atomic<int64_t> granted = 0;
  for (int r = 0; r < kReplicas; ++r) {
    replicas.emplace_back([&, r] {
      auto connection = std::move(*database_->Connect());
      const auto run = [&](std::vector<Operation> ops) {
        while (true) {
          auto applied = RunBatch(*connection, ops, kNowUs, policy_);
          if (applied.ok()) return std::move(applied->replies);
          EXPECT_EQ(applied.error().kind, sql::ErrorKind::kUnique) << applied.error().message;
        }
      };
      for (int i = 0; i < kRounds; ++i) {
        const Id id = TestId(1000 * r + i, kNowUs);
        run({MakeAddCredit("c" + std::to_string(r) + "-" + std::to_string(i), 150)});
        if (run({MakeAuthorize(id, 100, 50)})[0].ok) {
          ++granted;
          run({MakeSettle(id, 100, 0)});
        }
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  const Balance balance = *ReadBalance(*database_, "ws", kNowUs);
  EXPECT_EQ(balance.paid_nano_usd, kReplicas * kRounds * 150 - granted * 100);
  EXPECT_EQ(balance.held_nano_usd, 0);
  EXPECT_GT(granted, 0);
  ExpectVerified();
}

INSTANTIATE_TEST_SUITE_P(Both, StoreTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
