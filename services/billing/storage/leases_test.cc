// Leases on both databases.
#include "services/billing/storage/leases.h"

#include <gtest/gtest.h>

#include "services/billing/domain/testing/lease_world.h"
#include "services/billing/reports/receipts.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class LeasesTest : public LedgerDatabaseTest {
 protected:
  TakeLease Take(int64_t used, int64_t wanted, const std::string& lessee = "loop") {
    return {"ws", lessee, UtcMonth(kNowUs), used, wanted};
  }
  Settle Admitted(int n, int64_t nano_usd, int64_t prompt) {
    Settle op = MakeSettle(TestId(n, kNowUs), prompt, 0);
    op.admission = MakeAdmission(op.request_id, prompt, nano_usd, UtcMonth(kNowUs));
    return op;
  }
  std::vector<std::string> Violations() {
    auto report = VerifyLedger(*database_);
    EXPECT_TRUE(report.ok());
    return report->violations;
  }
};

TEST_P(LeasesTest, RowsFollowTheOperations) {
  Run({MakeAddCredit("c", 100'000)});
  Run({Take(0, 5000), Take(0, 400, "other")});
  auto leases = *ReadLeases(*database_);
  ASSERT_EQ(leases.size(), 2U);
  ExpectVerified();
  const auto settled = Run({Admitted(1, 300, 250), Admitted(2, 200, 100)});
  EXPECT_EQ(settled.replies[0].charged_nano_usd, 250);
  EXPECT_EQ(settled.replies[1].charged_nano_usd, 100);
  ExpectVerified();
  EXPECT_EQ(ReadBalance(*database_, "ws", kNowUs)->held_nano_usd, 900);
  EXPECT_EQ(ReadBalance(*database_, "ws", kNowUs)->open_holds, 0);
  // Given back and taken again in one batch.
  const auto taken = Run({Take(500, 0), Take(500, 100), Take(0, 0, "other")});
  EXPECT_EQ(taken.replies[1].lease.granted_nano_usd, 600);
  leases = *ReadLeases(*database_);
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].reserved_nano_usd(), 100);
  ExpectVerified();
  Run({ExpireLease{"ws", "loop", UtcMonth(kNowUs)}}, kNowUs + 61 * kSecondUs);
  EXPECT_TRUE(ReadLeases(*database_)->empty());
  EXPECT_EQ(ReadBalance(*database_, "ws", kNowUs)->held_nano_usd, 0);
  ExpectVerified();
}

TEST_P(LeasesTest, ATombstoneTakesItsRequestOutOfTheLeaseOnce) {
  Run({MakeAddCredit("c", 100'000), Take(0, 5000)});
  const Settle settle = Admitted(1, 300, 250);
  Run({MakeVoid(settle.request_id, true)});
  EXPECT_EQ(Run({settle}).replies[0].denied_by, Deny::kClosed);
  EXPECT_EQ(Run({settle}).replies[0].denied_by, Deny::kClosed);
  EXPECT_EQ(ReadLeases(*database_)->front().used_nano_usd, 300);
  ExpectVerified();
}

TEST_P(LeasesTest, TheVerificationFindsChangedLeases) {
  Run({MakeAddCredit("c", 100'000), Take(0, 5000)});
  const auto changed = [&](const char* text, const char* back) {
    EXPECT_TRUE(connection_->Execute(text).ok());
    const auto found = Violations();
    EXPECT_TRUE(connection_->Execute(back).ok());
    return !found.empty();
  };
  EXPECT_TRUE(
      changed("UPDATE lease SET granted = granted + 1", "UPDATE lease SET granted = granted - 1"));
  EXPECT_TRUE(
      changed("UPDATE wallet SET leased = leased + 1", "UPDATE wallet SET leased = leased - 1"));
  EXPECT_TRUE(
      changed("UPDATE wallet SET leases = leases + 1", "UPDATE wallet SET leases = leases - 1"));
  EXPECT_TRUE(Violations().empty());
  ASSERT_TRUE(connection_->Execute("DELETE FROM lease").ok());
  EXPECT_FALSE(Violations().empty());
}

TEST_P(LeasesTest, AFreezeAndALoweredCapRecallTheLeasesOfTheirWorkspaceOnly) {
  Run({MakeAddCredit("c", 100'000), Take(0, 5000)});
  AddCredit other = MakeAddCredit("c", 100'000);
  other.workspace = "other";
  TakeLease others = Take(0, 5000);
  others.workspace = "other";
  Run({OpenWallet{"other"}, other, others});
  EXPECT_EQ(*ReadRecalledWorkspaces(*database_), std::vector<std::string>());

  Correct freeze;
  freeze.workspace = "ws";
  freeze.command_id = "freeze";
  freeze.kind = CommandKind::kFreeze;
  freeze.actor = "ann";
  freeze.reason = "test";
  Run({freeze});
  EXPECT_EQ(*ReadRecalledWorkspaces(*database_), std::vector<std::string>{"ws"});
  // Nothing is left to recall when the lease was returned.
  Run({Take(0, 0)});
  EXPECT_EQ(*ReadRecalledWorkspaces(*database_), std::vector<std::string>());

  const int64_t leased = ReadLeases(*database_)->front().reserved_nano_usd();
  SetCap cap = MakeSetCap("as much as the lease", leased);
  cap.workspace = "other";
  Run({cap});
  EXPECT_EQ(*ReadRecalledWorkspaces(*database_), std::vector<std::string>());
  cap.command_id = "less than the lease";
  cap.cap_nano_usd = leased - 1;
  Run({cap});
  EXPECT_EQ(*ReadRecalledWorkspaces(*database_), std::vector<std::string>{"other"});
}

// A router reports late after an outage: the request counts on the day of its admission.
TEST_P(LeasesTest, ALateReportKeepsTheTimeOfItsAdmission) {
  constexpr int64_t kLateUs = kNowUs + 30 * kHourUs;
  Run({MakeAddCredit("c", 100'000), Take(0, 5000)});
  EXPECT_EQ(Run({Admitted(1, 400, 300)}, kLateUs).replies[0].charged_nano_usd, 300);
  ExpectVerified();
  const auto requests = [this](int64_t start_us, int64_t end_us) {
    return ReadRequests(*database_, {.workspace = "ws", .start_us = start_us, .end_us = end_us})
        ->size();
  };
  const auto used = [this](int64_t start_us, int64_t end_us) {
    return ReadUsage(*database_, "ws", "key", start_us, end_us, kLateUs)->total.charged_nano_usd;
  };
  EXPECT_EQ(requests(kNowUs, kNowUs + 1), 1U);
  EXPECT_EQ(used(kNowUs, kNowUs + 1), 300);
  EXPECT_EQ(requests(kNowUs + 1, kLateUs + 1), 0U);
  EXPECT_EQ(used(kNowUs + 1, kLateUs + 1), 0);
}

// Its month takes no more charges, so it counts at the start of the next one.
TEST_P(LeasesTest, AReportAfterTheMonthsGraceIsListedWhereItCounts) {
  constexpr int32_t kMonth = 202511, kNext = 202512;
  const int64_t admitted_us = UtcMonthStartUs(kNext) - 24 * kHourUs;
  const int64_t reported_us = UtcMonthStartUs(kNext) + 48 * kHourUs;
  Run({MakeAddCredit("c", 100'000)}, admitted_us);
  Settle op = MakeSettle(TestId(1, admitted_us), 300, 0);
  op.admission = MakeAdmission(op.request_id, 300, 400, kMonth);
  EXPECT_EQ(Run({op}, reported_us).replies[0].charged_nano_usd, 300);
  ExpectVerified();
  const RequestQuery day = {.workspace = "ws",
                            .start_us = UtcMonthStartUs(kNext),
                            .end_us = UtcMonthStartUs(kNext) + 24 * kHourUs};
  const auto listed = ReadRequests(*database_, day);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().month, kNext);
  EXPECT_EQ(ReadUsage(*database_, "ws", "key", day.start_us, day.end_us, reported_us)
                ->total.charged_nano_usd,
            300);
}

TEST_P(LeasesTest, WhatWasSettledWithoutTheLeaseDoesNotStayReserved) {
  Run({MakeAddCredit("c", 100'000), Take(0, 500)});
  const Settle settle = Admitted(1, 300, 250);
  Run({MakeAuthorize(settle.request_id, 250, 100)});  // the response was lost
  EXPECT_EQ(Run({settle}).replies[0].charged_nano_usd, 250);
  TakeLease renew = Take(300, 500);
  renew.settled_nano_usd = 300;
  EXPECT_EQ(Run({renew}).replies[0].lease.granted_nano_usd, 800);
  EXPECT_EQ(ReadBalance(*database_, "ws", kNowUs)->held_nano_usd, 500);
  ExpectVerified();
}

// The month of the lease is over, and another request has created the key's row in it.
TEST_P(LeasesTest, AReportInTheNextMonthCountsTowardsTheKeysOldOne) {
  const int64_t before_us = UtcMonthStartUs(202512) - kHourUs;
  const int64_t after_us = UtcMonthStartUs(202512) + kHourUs;
  Run({MakeAddCredit("c", 100'000)}, before_us);
  for (const bool has_quota : {false, true}) {
    if (has_quota) {
      Authorize limited = MakeAuthorize(TestId(1, before_us), 100, 50);
      limited.key_quota_nano_usd = 10'000;
      Run({limited}, before_us);
      Run({MakeSettle(limited.request_id, 100, 0)}, before_us);
    }
    Run({TakeLease{"ws", "loop", 0, 0, 5000}}, before_us);
    Settle op = MakeSettle(TestId(has_quota ? 2 : 3, after_us), 300, 0);
    op.admission = MakeAdmission(op.request_id, 300, 400, 202511);
    EXPECT_EQ(Run({op}, after_us).replies[0].charged_nano_usd, 300);
    ExpectVerified();
    Run({ExpireLease{"ws", "loop", 202511}}, after_us);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, LeasesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
