// Closed months are moved to files; the remaining rows still verify from the cut.
#include "services/billing/archive/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "common/base/time_units.h"
#include "services/billing/archive/testing/archive_world.h"
#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/wallet_check.h"
#include "services/billing/verify/verify_digests.h"

namespace tollgate::billing {
namespace {

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

TEST_P(ArchiveTest, QuartersOfArchivedMonthsBecomeDays) {
  FillMonths();
  ASSERT_TRUE(FoldLedger(*connection_).ok());
  const int64_t days = Count("usage_day");
  for (const std::string table : {"usage_quarter", "workspace_quarter"}) {
    ASSERT_TRUE(
        connection_->Execute("CREATE TABLE saved_" + table + " AS SELECT * FROM " + table).ok());
  }
  ASSERT_TRUE(Archive(202511, UtcMonthStartUs(202512) + kDayUs).ok());
  const int64_t first = UtcMonthStartUs(202511) / kQuarterUs;
  const auto archived_quarters = [&](const std::string& table) {
    return Count(table + " WHERE period < " + std::to_string(first));
  };
  EXPECT_EQ(archived_quarters("usage_quarter"), 0);
  EXPECT_EQ(archived_quarters("workspace_quarter"), 0);
  EXPECT_GT(Count("usage_quarter"), 0) << "of the month that is not archived";
  EXPECT_EQ(Count("usage_day"), days);
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");

  // An archive of an earlier version has a digest of the quarters, so they stay until the next one.
  for (const std::string table : {"usage_quarter", "workspace_quarter"}) {
    Must("INSERT INTO " + table + " SELECT * FROM saved_" + table + " WHERE period < " +
         std::to_string(first));
  }
  WorkspaceState state = ReadState();
  auto digest = DigestRollUpsWithQuarters(*connection_, "ws", state.cut_us);
  ASSERT_TRUE(digest.ok());
  ASSERT_NE(*digest, state.archived_rollups);
  state.archived_rollups = *digest;
  WriteState(state, /*with_digest=*/true);
  ExpectVerified();
  Must("UPDATE usage_quarter SET charged = charged + 1 WHERE period < " + std::to_string(first));
  ExpectViolation("the usage of archived months");
  Must("UPDATE usage_quarter SET charged = charged - 1 WHERE period < " + std::to_string(first));
  ASSERT_TRUE(Archive(202511, UtcMonthStartUs(202512) + kDayUs).ok());
  EXPECT_GT(archived_quarters("usage_quarter"), 0);
  ExpectVerified();
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  EXPECT_EQ(archived_quarters("usage_quarter"), 0);
  EXPECT_EQ(archived_quarters("workspace_quarter"), 0);
  ExpectVerified();
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
  Must(
      "UPDATE usage_day SET charged = charged + 1 WHERE period ="
      " (SELECT min(period) FROM usage_day)");
  ExpectViolation("the usage of archived months");
  Must(
      "UPDATE usage_day SET charged = charged - 1 WHERE period ="
      " (SELECT min(period) FROM usage_day)");
  ExpectVerified();
  Must("UPDATE cap_month SET spent = spent + 1 WHERE month = 202510");
  ExpectViolation("spend of month 202510");
  Must("UPDATE cap_month SET spent = spent - 1 WHERE month = 202510");
  Must("UPDATE archive_workspace SET sequence = sequence + 1");
  ExpectViolation("archive_workspace is damaged");
  EXPECT_NE(ArchiveViolations().find("archive_workspace is damaged"), std::string::npos);
  Must("UPDATE archive_workspace SET sequence = sequence - 1");
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

// Money of which the database alone knows nothing any more: the state from which the verification
// of an archived ledger starts.
TEST_P(ArchiveTest, MoneyMadeInAnArchivedStateIsFound) {
  FillMonths();
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  const WorkspaceState honest = ReadState();
  const int64_t usd = 1'000'000'000;
  const auto expect_found = [&](const WorkspaceState& changed, const std::string& words) {
    WriteState(changed, /*with_digest=*/false);
    ExpectViolation("the state does not have its digest");
    WriteState(changed, /*with_digest=*/true);
    EXPECT_NE(ArchiveViolations().find(words), std::string::npos) << words;
    EXPECT_NE(ArchiveViolations().find("another state than the manifest"), std::string::npos);
  };
  WorkspaceState rich = honest;
  rich.sums[static_cast<size_t>(Account::kPaid)] += 1000 * usd;
  Must("UPDATE wallet SET paid = paid + 1000000000000");
  Must(
      "UPDATE statement_month SET amount = amount + 1000000000000 WHERE month = 202510 AND kind "
      "= " +
      std::to_string(static_cast<int>(EntryKind::kTopup)));
  expect_found(rich, "archive_workspace: paid credit is");
  Must("UPDATE wallet SET paid = paid - 1000000000000");
  Must(
      "UPDATE statement_month SET amount = amount - 1000000000000 WHERE month = 202510 AND kind "
      "= " +
      std::to_string(static_cast<int>(EntryKind::kTopup)));
  WorkspaceState uncapped = honest;
  uncapped.cap = 9000 * usd;
  Must("UPDATE wallet SET cap = 9000000000000");
  expect_found(uncapped, "archive_workspace: the cap is");
  Must("UPDATE wallet SET cap = 9000000");
  WorkspaceState frozen = honest;
  frozen.frozen = 1;
  expect_found(frozen, "the state is not the one of the archived entries");
  WriteState(honest, true);
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
  Must("UPDATE command SET reason = 'for a friend' WHERE id = 'c'");
  EXPECT_NE(ArchiveViolations().find("reason or reference are not those"), std::string::npos)
      << "commands stay, but their entries are archived";
  ExpectViolation("the commands of archived months changed");
}

// As in a container whose root file system cannot be written.
TEST_P(ArchiveTest, TheArchiveIsVerifiedWithoutAFolderOfTemporaryFiles) {
  FillMonths();
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  const size_t files = CountFiles();
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/proc", 1);
  EXPECT_EQ(ArchiveViolations(), "");
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_EQ(CountFiles(), files) << "the temporary files are removed";
}

TEST_P(ArchiveTest, StatementsOfArchivedMonthsCannotBeChanged) {
  FillMonths();
  ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  ExpectVerified();
  for (const auto& [change, undo] :
       {std::pair("UPDATE statement_usage SET amount = amount * 2 WHERE month = 202510",
                  "UPDATE statement_usage SET amount = amount / 2 WHERE month = 202510"),
        std::pair("UPDATE statement_month SET kind = kind + 50 WHERE month = 202510",
                  "UPDATE statement_month SET kind = kind - 50 WHERE month = 202510"),
        std::pair("UPDATE statement_month SET month = 202509 WHERE month = 202510",
                  "UPDATE statement_month SET month = 202510 WHERE month = 202509")}) {
    Must(change);
    ExpectViolation("the statements of archived months");
    Must(undo);
  }
  Must("UPDATE rollup_cut SET base_us = 1");
  ExpectViolation("rollup_cut has a base that no archive has");
  Must("UPDATE rollup_cut SET base_us = 0");
  ExpectVerified();
  Must("UPDATE archive SET entries = entries + 1 WHERE month = 202510");
  EXPECT_NE(ArchiveViolations().find("the numbers of rows of month 202510"), std::string::npos);
}

// Earlier versions wrote neither digests nor digests of statements.
TEST_P(ArchiveTest, StatesOfAnEarlierVersionGetTheirDigestsOnce) {
  FillMonths();
  const int64_t now_us = UtcMonthStartUs(202601) + kDayUs;
  ASSERT_TRUE(Archive(202512, now_us).ok());
  std::string state = EncodeState(ReadState());
  // Version 3 ended before two digests with their lengths, and the base of the roll-ups.
  state = state.substr(0, state.size() - 2 * (8 + 32) - 8);
  state[7] = 3;
  ASSERT_TRUE(connection_
                  ->Execute("UPDATE archive_workspace SET state = $1, digest = NULL",
                            {sql::Param::Blob(state)})
                  .ok());
  for (const int32_t month : {202510, 202511}) ForgetStateDigests(month);
  ExpectViolation("the state has no digest");
  EXPECT_EQ(ArchiveViolations(), "");
  VerifyOptions options;
  options.archive_verified = true;
  auto report = VerifyLedger(*connection_, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->violations.front();

  auto archived = Archive(202512, now_us + kDayUs);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ExpectVerified();
  archived = Archive(202601, UtcMonthStartUs(202602) + kDayUs);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
}

TEST_P(ArchiveTest, AFalseStateOfAnEarlierVersionGetsNoDigest) {
  FillMonths();
  const int64_t now_us = UtcMonthStartUs(202601) + kDayUs;
  ASSERT_TRUE(Archive(202512, now_us).ok());
  WorkspaceState rich = ReadState();
  rich.sums[static_cast<size_t>(Account::kPaid)] += 1;
  WriteState(rich, false);
  Must("UPDATE archive_workspace SET digest = NULL");
  auto archived = Archive(202512, now_us + kDayUs);
  ASSERT_FALSE(archived.ok());
  EXPECT_NE(archived.error().message.find("are not those of the archive"), std::string::npos);
  ExpectViolation("the state has no digest");
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
