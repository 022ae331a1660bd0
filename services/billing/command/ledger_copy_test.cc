// A ledger that is copied from SQLite to PostgreSQL, or back, has the same entries and heads, and
// billing continues it there.
#include "services/billing/command/ledger_copy.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/billing/command/all_schemas.h"
#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class LedgerCopyTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    auto* server = testing::TestPostgres::Shared();
    if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
    ASSERT_TRUE(ApplyMigrations(*database_, AllSchemas()).ok());
    new_file_ = file_.empty() ? (std::filesystem::temp_directory_path() /
                                 ("tollgate-ledger-copy-" + std::to_string(getpid()) + ".db"))
                                    .string()
                              : "";
    if (!new_file_.empty()) std::filesystem::remove(new_file_);
    new_url_ = new_file_.empty() ? server->MakeDatabase("copied") : "sqlite:" + new_file_;
  }
  void TearDown() override {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      if (!new_file_.empty()) std::filesystem::remove(new_file_ + suffix);
    }
    LedgerDatabaseTest::TearDown();
  }
  void Fill() {
    int64_t at_us = kNowUs - 70 * kDayUs;  // into the months before
    AddCredit other = MakeAddCredit("other", 5'000'000);
    other.workspace = "other";
    Run({MakeAddCredit("c", 10'000'000), other}, at_us);
    for (int i = 0; i < 70; ++i, at_us += kDayUs) {
      const Id id = TestId(i + 1, at_us);
      Run({MakeAuthorize(id, 100, 50)}, at_us);
      if (i % 3 != 0) Run({MakeSettle(id, 100, i)}, at_us + 1);
    }
  }
  sql::SqlResult<LedgerCopy> Copy() { return CopyLedger(url_, new_url_, AllSchemas(), kNowUs); }
  static std::vector<std::string> Heads(sql::Connection& db) {
    std::vector<std::string> heads;
    auto read =
        db.Query("SELECT workspace, head FROM wallet ORDER BY workspace", {},
                 [&](const sql::Row& row) { heads.push_back(row.Text(0) + " " + row.Text(1)); });
    EXPECT_TRUE(read.ok());
    return heads;
  }
  std::string new_file_;
  std::string new_url_;
};

TEST_P(LedgerCopyTest, TheCopyHasTheSameHeadsAndIsContinued) {
  Fill();
  auto copy = Copy();
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_TRUE(copy->ok());
  EXPECT_GT(copy->before.entries, 100);
  EXPECT_EQ(copy->before.entries, copy->after.entries);
  EXPECT_EQ(copy->before.holds, copy->after.holds);
  EXPECT_EQ(copy->before.usage_records, copy->after.usage_records);
  const std::vector<std::string> heads = Heads(*connection_);
  EXPECT_EQ(heads.size(), 2u);

  connection_.reset();
  database_ = std::move(*sql::Database::Open({.url = new_url_}));
  connection_ = std::move(*database_->Connect());
  EXPECT_EQ(Heads(*connection_), heads);
  Run({MakeSettle(TestId(70, kNowUs - kDayUs), 100, 7), MakeAddCredit("after", 1)}, kNowUs + 1);
  ExpectVerified();
}

TEST_P(LedgerCopyTest, OldMonthsHaveTheirPartitions) {
  if (!new_file_.empty()) GTEST_SKIP() << "SQLite has no partitions";
  Fill();
  ASSERT_TRUE(Copy().ok());
  const auto database = std::move(*sql::Database::Open({.url = new_url_}));
  const auto db = std::move(*database->Connect());
  int64_t rows = -1;
  auto read = db->Query("SELECT count(*) FROM entry_other", {},
                        [&](const sql::Row& row) { rows = row.Int(0); });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(rows, 0);
}

TEST_P(LedgerCopyTest, ALedgerWithViolationsIsNotCopied) {
  Fill();
  ASSERT_TRUE(connection_->Execute("UPDATE wallet SET paid = paid + 1").ok());
  auto copy = Copy();
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_FALSE(copy->ok());
  EXPECT_FALSE(copy->before.ok());
  EXPECT_TRUE(copy->tables.empty());
}

INSTANTIATE_TEST_SUITE_P(From, LedgerCopyTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
