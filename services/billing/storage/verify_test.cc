#include "services/billing/storage/verify.h"

#include <gtest/gtest.h>

#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

using VerifyTest = LedgerDatabaseTest;

TEST_P(VerifyTest, FindsEveryKindOfTampering) {
  const Id settled = TestId(1, kNowUs);
  const Id open = TestId(2, kNowUs);
  Run({MakeAddCredit("c", 100'000), MakeSetCap("cap", 90'000), MakeAuthorize(settled, 100, 50),
       MakeAuthorize(open, 100, 50), MakeSettle(settled, 100, 20)});
  ExpectVerified();
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
      "INSERT INTO cap_month SELECT shard, workspace, 202001, 0, 0 FROM wallet",
      "INSERT INTO wallet SELECT shard, 'other', paid, granted, 0, 0, 0, cap, frozen, sequence, "
      "head, "
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
  ExpectVerified();
}

INSTANTIATE_TEST_SUITE_P(Both, VerifyTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
