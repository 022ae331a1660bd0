// Batches on both databases.
#include "services/billing/storage/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

using StoreTest = LedgerDatabaseTest;

TEST_P(StoreTest, RepliesAndEntriesEqualThoseOfApply) {
  History history(4711, /*with_leases=*/true);
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

// A request with a quota created the key's month; requests without a quota continue it.
TEST_P(StoreTest, ARequestThatBeginsAndEndsInOneBatchCountsTowardsItsKeysMonth) {
  Authorize with_quota = MakeAuthorize(TestId(1, kNowUs), 100, 50);
  with_quota.key_quota_nano_usd = 10'000;
  Run({MakeAddCredit("c", 10'000), with_quota}, kNowUs);
  Run({MakeSettle(with_quota.request_id, 100, 0)}, kNowUs);
  const Id id = TestId(2, kNowUs);
  const Applied got = Run({MakeAuthorize(id, 100, 50), MakeSettle(id, 100, 0)}, kNowUs);
  ASSERT_TRUE(got.replies[0].ok && got.replies[1].ok);
  auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->violations.front();
}

// The key was rotated: the quota is used up by what the keys before have spent.
TEST_P(StoreTest, RotatedKeysShareTheirQuota) {
  const auto ask_as = [](int64_t number, const std::string& key, std::vector<std::string> others) {
    Authorize op = MakeAuthorize(TestId(number, kNowUs), 100, 50);
    op.key_quota_nano_usd = 250;
    op.key_id = key;
    op.quota_keys = std::move(others);
    return op;
  };
  Run({MakeAddCredit("c", 10'000), ask_as(1, "a", {})});
  Run({MakeSettle(TestId(1, kNowUs), 100, 0)});
  ASSERT_TRUE(Run({ask_as(2, "b", {"a"})}).replies[0].ok);
  EXPECT_EQ(Run({MakeExtend(TestId(2, kNowUs), 1, 1000)}).replies[0].authorized_nano_usd, 150)
      << "the hold knows the other keys";
  Run({MakeSettle(TestId(2, kNowUs), 100, 0)});
  EXPECT_EQ(Run({ask_as(3, "c", {"a", "b"})}).replies[0].authorized_nano_usd, 0)
      << "50 are left, and the prompt costs 100";
  EXPECT_TRUE(Run({ask_as(4, "other", {})}).replies[0].ok);
  Run({MakeSettle(TestId(4, kNowUs), 100, 0)});
  ExpectVerified();
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

// The hold's month is closed when its settle arrives: the correction counts towards the next month,
// in addition to the key's spend there with and without a quota.
TEST_P(StoreTest, ALateCorrectionCountsTowardsTheKeysNewMonth) {
  const int64_t end_us = UtcMonthStartUs(202512);
  for (const bool quota_before : {false, true}) {
    const std::string workspace = quota_before ? "with" : "without";
    AddCredit credit = MakeAddCredit("c", 1'000'000);
    credit.workspace = workspace;
    Run({credit}, end_us - kHourUs);
    int n = quota_before ? 100 : 0;
    const auto ask = [&](int64_t at_us, std::optional<int64_t> quota) {
      Authorize op = MakeAuthorize(TestId(++n, at_us), 100, 50, workspace);
      op.key_quota_nano_usd = quota;
      return op;
    };
    const Authorize late =
        ask(end_us - 10 * kSecondUs, quota_before ? std::optional<int64_t>(5000) : std::nullopt);
    Run({late}, end_us - 10 * kSecondUs);
    Heartbeat alive = MakeHeartbeat(late.request_id, 1, 100, 10);
    alive.workspace = workspace;
    Run({alive}, end_us - 9 * kSecondUs);
    Run({Expire{late.request_id, workspace}}, end_us + 23 * kHourUs);
    // 200 without a quota.
    const Authorize plain = ask(end_us + 24 * kHourUs, std::nullopt);
    Run({plain}, end_us + 24 * kHourUs);
    Run({MakeSettle(plain.request_id, 100, 50, Outcome::kCompleted, workspace)},
        end_us + 24 * kHourUs + 1);
    // 100 more than the last heartbeat.
    const auto settled = Run({MakeSettle(late.request_id, 100, 60, Outcome::kCompleted, workspace)},
                             end_us + 27 * kHourUs);
    ASSERT_EQ(settled.replies[0].charged_nano_usd, 220);
    const auto limited = Run({ask(end_us + 28 * kHourUs, 350)}, end_us + 28 * kHourUs);
    EXPECT_EQ(limited.replies[0].denied_by, Deny::kQuota) << "200 and 100 are spent of 350";
    const auto granted = Run({ask(end_us + 28 * kHourUs, 450)}, end_us + 28 * kHourUs);
    EXPECT_EQ(granted.replies[0].authorized_nano_usd, 150);
    ExpectVerified();
    // Tampering is also found in a month that a late correction has changed.
    ASSERT_TRUE(connection_
                    ->Execute("UPDATE key_month SET spent = spent + 1 WHERE month = 202512"
                              " AND workspace = $1",
                              {workspace})
                    .ok());
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->ok());
    EXPECT_NE(report->violations.front().find("(key_month) spent is 301"), std::string::npos)
        << report->violations.front();
    ASSERT_TRUE(connection_
                    ->Execute("UPDATE key_month SET spent = spent - 1 WHERE month = 202512"
                              " AND workspace = $1",
                              {workspace})
                    .ok());
  }
}

// Resolving a dead letter of a key with a quota a month later must not create a row for that month:
// it would start at zero.
TEST_P(StoreTest, ANoteBesideARequestBeginsNoMonthOfItsKey) {
  Run({MakeAddCredit("c", 1'000'000)});
  Authorize ask = MakeAuthorize(TestId(1, kNowUs), 100, 50);
  ask.key_quota_nano_usd = 5000;
  Run({ask});
  Run({MakeSettle(ask.request_id, 100, 20)});
  Run({MakeSettle(ask.request_id, 100, 40)});  // refused: a dead letter
  const int64_t later_us = kNowUs + 20 * 24 * kHourUs;
  ASSERT_NE(UtcMonth(later_us), UtcMonth(kNowUs));
  const Authorize plain = MakeAuthorize(TestId(2, later_us), 100, 50);
  Run({plain}, later_us);
  Run({MakeSettle(plain.request_id, 100, 50)}, later_us);
  const auto resolved =
      Run({ResolveDeadLetter{ask.request_id, "ws", 1, DeadLetterState::kWrittenOff, "ann", "test"}},
          later_us);
  ASSERT_TRUE(resolved.replies[0].ok);
  Authorize limited = MakeAuthorize(TestId(3, later_us), 100, 50);
  limited.key_quota_nano_usd = 350;
  EXPECT_EQ(Run({limited}, later_us).replies[0].authorized_nano_usd, 150) << "200 are spent";
  ExpectVerified();
}

// Tested with the key's month stored in the database, and with one that is summed from the
// roll-ups.
TEST_P(StoreTest, ALateSettleCountsTowardsTheKeysQuota) {
  Run({MakeAddCredit("c", 10'000)});
  for (const bool has_quota : {true, false}) {
    Authorize late = MakeAuthorize(TestId(has_quota ? 1 : 2, kNowUs), 100, 100);
    late.key_id = has_quota ? "limited" : "unlimited";
    if (has_quota) late.key_quota_nano_usd = 500;
    ASSERT_TRUE(Run({late}).replies[0].ok);
    const int64_t expired_us = kNowUs + 61 * kSecondUs;
    ASSERT_TRUE(Run({MakeExpire(late.request_id)}, expired_us).replies[0].ok);
    const Settle settle = MakeSettle(late.request_id, 100, 300);
    const int64_t charged = has_quota ? 500 : 700;  // up to the quota
    EXPECT_EQ(Run({settle}, expired_us).replies[0].charged_nano_usd, charged);
    Authorize next = MakeAuthorize(TestId(has_quota ? 3 : 4, expired_us), 1, 0);
    next.key_id = late.key_id;
    next.key_quota_nano_usd = charged;
    EXPECT_EQ(Run({next}, expired_us).replies[0].denied_by, Deny::kQuota) << late.key_id;
    next.key_quota_nano_usd = charged + 1;
    EXPECT_TRUE(Run({next}, expired_us).replies[0].ok) << late.key_id;
  }
  ExpectVerified();
}

INSTANTIATE_TEST_SUITE_P(Both, StoreTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
