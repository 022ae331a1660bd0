// Closed months are moved to files; the remaining rows still verify from the cut.
#include "services/billing/archive/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "common/base/time_units.h"
#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/archive/archive_files.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/archive/verify_archive.h"
#include "services/billing/storage/wallet_check.h"

namespace tollgate::billing {
namespace {

class ArchiveTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    folder_ =
        std::filesystem::temp_directory_path() / ("tollgate-archive-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const int32_t month : {202510, 202511, 202512}) {
      auto made = EnsurePartitions(*connection_, UtcMonthStartUs(month));
      ASSERT_TRUE(made.ok()) << made.error().message;
    }
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    LedgerDatabaseTest::TearDown();
  }
  // Fills the months 202510 and 202511, with requests that cross each month's end: one settled
  // after it, one that expired before it and was corrected after it.
  void FillMonths() {
    int n = 0;
    Run({MakeAddCredit("c", 10'000'000), MakeSetCap("cap", 9'000'000)},
        UtcMonthStartUs(202510) + kDayUs);
    for (const int32_t month : {202510, 202511}) {
      const int64_t end = UtcMonthStartUs(month + 1);
      for (int i = 0; i < 20; ++i) {
        const int64_t at = UtcMonthStartUs(month) + (i + 2) * kDayUs;
        Authorize open = MakeAuthorize(TestId(++n, at), 100, 50);
        open.key_id = "key" + std::to_string(i % 3);
        if (i % 3 == 0) open.key_quota_nano_usd = 1'000'000;
        Run({open}, at);
        Run({MakeSettle(open.request_id, 100, i)}, at + 1);
      }
      const Id crossing = TestId(++n, end - 10 * kSecondUs);
      const Id late = TestId(++n, end - 70 * kSecondUs);
      const Id gone = TestId(++n, end - 9 * kSecondUs);
      Run({MakeAuthorize(late, 100, 50)}, end - 70 * kSecondUs);
      Run({MakeAuthorize(crossing, 100, 50), MakeVoid(gone)}, end - 10 * kSecondUs);
      Run({MakeExpire(late)}, end - 5 * kSecondUs);
      Run({MakeSettle(crossing, 100, 20)}, end + 5 * kSecondUs);
      Run({MakeSettle(late, 100, 30)}, end + kHourUs);
    }
    Run({MakeAddCredit("now", 5)}, UtcMonthStartUs(202512) + 20 * kDayUs);
  }
  sql::SqlResult<std::vector<ArchivedMonth>> Archive(int32_t before, int64_t now_us) {
    return ArchiveLedger(*connection_, {before, folder_.string(), "ann", now_us});
  }
  int64_t Count(const std::string& table) {
    int64_t count = -1;
    auto read = connection_->Query("SELECT count(*) FROM " + table, {},
                                   [&](const sql::Row& row) { count = row.Int(0); });
    EXPECT_TRUE(read.ok());
    return count;
  }
  std::string ArchiveViolations() {
    VerifyReport report;
    auto done = VerifyArchive(*connection_, folder_.string(), report);
    EXPECT_TRUE(done.ok());
    std::string all;
    for (const std::string& violation : report.violations) all += violation + '\n';
    return all;
  }
  void ExpectViolation(const std::string& words) {
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok());
    std::string all;
    for (const std::string& violation : report->violations) all += violation + '\n';
    EXPECT_NE(all.find(words), std::string::npos) << all;
  }
  std::filesystem::path folder_;
};

TEST_P(ArchiveTest, ClosedMonthsLeaveTheDatabaseAndTheRestVerifies) {
  FillMonths();
  ASSERT_NO_FATAL_FAILURE(ExpectVerified());
  const int64_t entries = Count("entry");
  const int64_t now_us = UtcMonthStartUs(202601) + kDayUs;
  auto archived = Archive(202512, now_us);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ASSERT_EQ(archived->size(), 2u);
  EXPECT_EQ((*archived)[0].month, 202510);
  EXPECT_EQ((*archived)[0].holds, 20);
  EXPECT_EQ((*archived)[0].usage_records, 20);
  EXPECT_EQ((*archived)[1].holds, 22)
      << "including holds of the month before that were closed in it";
  // Requests that cross the cut stay; tombstones before it are removed.
  EXPECT_EQ(Count("hold"), 2);
  EXPECT_EQ(Count("usage_record"), 2);
  EXPECT_EQ(Count("entry"), entries - (*archived)[0].entries - (*archived)[1].entries);
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
  if (GetParam() == sql::Dialect::kPostgres) {
    EXPECT_EQ(
        Count("pg_class WHERE relname IN ('entry_202510', 'hold_202510', 'usage_record_202510')"),
        0)
        << "partitions are dropped as a whole";
  }

  // The ledger continues to work and still has the balance and the ids.
  const int64_t later = now_us + kDayUs;
  const Id next = TestId(900, later);
  ASSERT_TRUE(Run({MakeAuthorize(next, 100, 50)}, later).replies[0].ok);
  ASSERT_TRUE(Run({MakeSettle(next, 100, 20)}, later + 1).replies[0].ok);
  EXPECT_TRUE(Run({MakeAddCredit("c", 10'000'000)}, later).replies[0].ok) << "repeated";
  ExpectVerified();

  // A second run has nothing to do. The next month is archived when it is old enough.
  archived = Archive(202512, later);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  EXPECT_TRUE(archived->empty());
  EXPECT_FALSE(Archive(202601, now_us).ok()) << "too early";
  archived = Archive(202601, UtcMonthStartUs(202601) + 9 * kDayUs);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ASSERT_EQ(archived->size(), 1u);
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
}

TEST_P(ArchiveTest, AWorkspaceWithoutEntriesSinceTheCutGoesOn) {
  FillMonths();
  AddCredit idle = MakeAddCredit("c", 1'000);
  idle.workspace = "idle";
  Run({idle}, UtcMonthStartUs(202510) + kDayUs);
  const int64_t now_us = UtcMonthStartUs(202601) + kDayUs;
  ASSERT_TRUE(Archive(202512, now_us).ok());
  WalletChecker checker;
  idle.command_id = "c2";
  const std::vector<Operation> operations = {idle};
  auto applied = RunBatch(*connection_, operations, now_us, policy_,
                          [&](State& state) { return checker.Check(*connection_, state, now_us); });
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_TRUE(applied->replies.front().ok);
  ExpectVerified();
}

TEST_P(ArchiveTest, ARequestWhoseEntriesAreDatedAfterTheCutStays) {
  FillMonths();
  const int64_t cut_us = UtcMonthStartUs(202512);
  // A clock that ran ahead dates the entries of the next request, which belongs to the month
  // before.
  AddCredit ahead = MakeAddCredit("c", 10'000);
  ahead.workspace = "ahead";
  Run({ahead}, cut_us + kHourUs);
  const int64_t before_us = cut_us - 10 * kSecondUs;
  const Id id = TestId(900, before_us);
  Run({MakeAuthorize(id, 100, 50, "ahead")}, before_us);
  Run({MakeSettle(id, 100, 20, Outcome::kCompleted, "ahead")}, before_us + 1);
  ExpectVerified();
  const int64_t holds = Count("hold");
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  EXPECT_LT(Count("hold"), holds);
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
}

// A clock ran ahead past the end of a month and was set back.
TEST_P(ArchiveTest, AClockRepairAcrossTheEndOfAMonthBlocksNoArchive) {
  FillMonths();
  const int64_t cut_us = UtcMonthStartUs(202512);
  int n = 900;
  const auto serve = [&](int64_t at_us) {
    const Id id = TestId(++n, at_us);
    Run({MakeAuthorize(id, 100, 50, "ahead")}, at_us);
    Run({MakeSettle(id, 100, 20, Outcome::kCompleted, "ahead")}, at_us + 1);
  };
  AddCredit credit = MakeAddCredit("c", 10'000);
  credit.workspace = "ahead";
  Run({credit}, cut_us - 5 * kDayUs);
  serve(cut_us - 4 * kDayUs);
  serve(cut_us + 2 * kDayUs);  // real time: three days before the end
  Run({RepairClock{"ahead", "repair", "ann", "time server"}}, cut_us - 3 * kDayUs);
  serve(cut_us - 2 * kDayUs);
  serve(cut_us + 3 * kDayUs);
  ExpectVerified();
  auto archived = Archive(202512, UtcMonthStartUs(202601) + kDayUs);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
  EXPECT_EQ(Count("entry WHERE workspace = 'ahead' AND sequence <= 4"), 0) << "before the jump";
  EXPECT_EQ(Count("hold WHERE workspace = 'ahead'"), 3) << "with the requests after it";
  // Entries after a repair are archived with the month of the entries before it.
  archived = Archive(202601, UtcMonthStartUs(202602) + kDayUs);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
  EXPECT_EQ(Count("entry WHERE workspace = 'ahead'"), 0);
  EXPECT_EQ(Count("hold WHERE workspace = 'ahead'"), 0);
}

// A reader blocks the archive's table lock; later statements do not queue behind it.
TEST_P(ArchiveTest, AnArchiveThatWaitsForATableStopsNobody) {
  if (GetParam() == sql::Dialect::kSqlite) GTEST_SKIP() << "no partitions";
  FillMonths();
  auto reader = std::move(*database_->Connect());
  ASSERT_TRUE(reader->Begin(sql::TxMode::kRead).ok());
  ASSERT_TRUE(reader->Query("SELECT count(*) FROM entry", {}, [](const sql::Row&) {}).ok());
  std::atomic<bool> ended = false;
  std::thread archiving([&] {
    auto archived = Archive(202512, UtcMonthStartUs(202601) + kDayUs);
    EXPECT_TRUE(archived.ok()) << archived.error().message;
    ended = true;
  });
  auto batch = std::move(*database_->Connect());
  ASSERT_TRUE(batch->ExecuteScript("SET lock_timeout = 8000").ok());
  const auto waits = [&] {
    int64_t waiting = 0;
    EXPECT_TRUE(batch
                    ->Query("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
                            " AND NOT granted AND relation = 'entry'::regclass",
                            {}, [&](const sql::Row& row) { waiting = row.Int(0); })
                    .ok());
    return waiting > 0;
  };
  for (int seen = 0; seen < 3 && !ended;) {
    if (!waits()) continue;
    ++seen;
    auto read = batch->Query("SELECT max(sequence) FROM entry", {}, [](const sql::Row&) {});
    EXPECT_TRUE(read.ok()) << read.error().message;
  }
  EXPECT_FALSE(ended) << "it waits for the reader";
  reader->Rollback();
  archiving.join();
  ExpectVerified();
}

TEST_P(ArchiveTest, TamperingWithWhatIsArchivedIsFound) {
  FillMonths();
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  const auto change = [&](const std::string& text) {
    auto done = connection_->Execute(text);
    ASSERT_TRUE(done.ok()) << done.error().message;
    ASSERT_GT(*done, 0) << text;
  };
  change(
      "UPDATE usage_day SET charged = charged + 1 WHERE period ="
      " (SELECT min(period) FROM usage_day)");
  ExpectViolation("the usage of archived months");
  change(
      "UPDATE usage_day SET charged = charged - 1 WHERE period ="
      " (SELECT min(period) FROM usage_day)");
  ExpectVerified();
  change("UPDATE cap_month SET spent = spent + 1 WHERE month = 202510");
  ExpectViolation("spend of month 202510");
  change("UPDATE cap_month SET spent = spent - 1 WHERE month = 202510");
  change("UPDATE archive_workspace SET sequence = sequence + 1");
  ExpectViolation("archive_workspace is damaged");
  EXPECT_NE(ArchiveViolations().find("archive_workspace with another"), std::string::npos);
  change("UPDATE archive_workspace SET sequence = sequence - 1");
  ExpectVerified();

  const std::string manifest = ManifestPath(folder_.string(), 202510);
  std::ofstream(manifest, std::ios::app) << "\n";
  EXPECT_NE(ArchiveViolations().find("is not the manifest that the database knows"),
            std::string::npos);
  std::filesystem::resize_file(manifest, std::filesystem::file_size(manifest) - 1);
  EXPECT_EQ(ArchiveViolations(), "");
  std::filesystem::remove(folder_ / "holds-202511.csv.gz");
  EXPECT_NE(ArchiveViolations().find("holds-202511.csv.gz is missing or was changed"),
            std::string::npos);
}

TEST_P(ArchiveTest, AFaultyOrYoungMonthIsNotArchived) {
  FillMonths();
  auto early = Archive(202511, UtcMonthStartUs(202511) + 7 * kDayUs);
  ASSERT_FALSE(early.ok());
  EXPECT_NE(early.error().message.find("8 days after its end"), std::string::npos);
  ASSERT_TRUE(
      connection_->Execute("UPDATE hold SET charged = charged + 1 WHERE charged = 100").ok());
  const int64_t entries = Count("entry");
  auto faulty = Archive(202512, UtcMonthStartUs(202601) + kDayUs);
  ASSERT_FALSE(faulty.ok());
  EXPECT_NE(faulty.error().message.find("does not verify"), std::string::npos);
  EXPECT_EQ(Count("archive"), 0);
  EXPECT_EQ(Count("entry"), entries);
}

// The run ended before the rows were removed: the ledger verifies, and the next run removes them.
TEST_P(ArchiveTest, AnInterruptedRunIsFinishedByTheNext) {
  FillMonths();
  for (const char* table : {"entry", "hold", "usage_record"}) {
    ASSERT_TRUE(connection_
                    ->ExecuteScript("CREATE TABLE copy_" + std::string(table) +
                                    " AS SELECT * FROM " + table)
                    .ok());
  }
  const int64_t now_us = UtcMonthStartUs(202601) + kDayUs;
  ASSERT_TRUE(Archive(202512, now_us).ok());
  const int64_t holds = Count("hold");
  for (const std::string table : {"entry", "hold", "usage_record"}) {
    ASSERT_TRUE(connection_
                    ->ExecuteScript("DELETE FROM " + table + "; INSERT INTO " + table +
                                    " SELECT * FROM copy_" + table)
                    .ok());
  }
  ExpectVerified();
  ASSERT_TRUE(Archive(202512, now_us).ok());
  EXPECT_EQ(Count("hold"), holds);
  ExpectVerified();
}

// Random history across the ends of months: the remaining rows verify after the cut, and the ledger
// continues to work.
TEST_P(ArchiveTest, ARandomHistoryVerifiesAfterTheCut) {
  History history(7);
  int64_t now_us = 0;
  const auto run = [&] {
    for (int i = 0; i < 200; ++i) {
      now_us = std::max(now_us, history.NextTime());
      std::vector<Operation> batch;
      for (int j = 0; j < 4; ++j) batch.push_back(history.NextOperation());
      Run(batch, now_us);
    }
  };
  run();
  // Expires holds like a running ledger.
  std::vector<Operation> expiries;
  auto read = connection_->Query(
      "SELECT id, workspace FROM hold WHERE state = 1", {}, [&](const sql::Row& row) {
        expiries.push_back(Expire{*Id::FromBytes(row.Bytes(0)), row.Text(1)});
      });
  ASSERT_TRUE(read.ok());
  now_us += 25 * kHourUs;
  Run(expiries, now_us);
  ASSERT_NO_FATAL_FAILURE(ExpectVerified());
  const int32_t before = UtcMonth(now_us);
  const int64_t entries = Count("entry");
  const int64_t later = std::max(now_us, UtcMonthStartUs(before) + kArchiveAfterUs);
  auto archived = Archive(before, later);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  EXPECT_FALSE(archived->empty());
  EXPECT_LT(Count("entry"), entries);
  EXPECT_EQ(ArchiveViolations(), "");
  ASSERT_NO_FATAL_FAILURE(ExpectVerified());
  while (history.NextTime() < later) continue;
  run();
  ExpectVerified();
}

INSTANTIATE_TEST_SUITE_P(Both, ArchiveTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
