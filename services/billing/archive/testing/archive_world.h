// A ledger with closed months, and its archive in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "services/billing/archive/archive.h"
#include "services/billing/archive/archive_files.h"
#include "services/billing/archive/verify_archive.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {

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
  size_t CountFiles() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_)) ++files;
    return files;
  }
  std::string ArchiveViolations() {
    VerifyReport report;
    auto done = VerifyArchive(*connection_, folder_.string(), report);
    EXPECT_TRUE(done.ok());
    std::string all;
    for (const std::string& violation : report.violations) all += violation + '\n';
    return all;
  }
  void Must(const std::string& text) {
    auto done = connection_->Execute(text);
    ASSERT_TRUE(done.ok()) << done.error().message;
    ASSERT_GT(*done, 0) << text;
  }
  // The archived state of the only workspace.
  WorkspaceState ReadState() {
    std::optional<WorkspaceState> state;
    auto read = connection_->Query("SELECT state FROM archive_workspace", {},
                                   [&](const sql::Row& row) { state = DecodeState(row.Bytes(0)); });
    EXPECT_TRUE(read.ok() && state);
    return state.value_or(WorkspaceState());
  }
  void WriteState(const WorkspaceState& state, bool with_digest) {
    const std::string bytes = EncodeState(state);
    const std::string digest = Sha256(bytes);
    ASSERT_TRUE(
        connection_->Execute("UPDATE archive_workspace SET state = $1", {sql::Param::Blob(bytes)})
            .ok());
    if (!with_digest) return;
    ASSERT_TRUE(
        connection_->Execute("UPDATE archive_workspace SET digest = $1", {sql::Param::Blob(digest)})
            .ok());
  }
  // Makes the manifest one of an earlier version.
  void ForgetStateDigests(int32_t month) {
    const std::string path = ManifestPath(folder_.string(), month);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string old =
        std::regex_replace(text.str(), std::regex(",\"state_sha256\":\"[0-9a-f]*\""), "");
    std::ofstream(path, std::ios::trunc) << old;
    const std::string digest = Sha256(old);
    ASSERT_TRUE(connection_
                    ->Execute("UPDATE archive SET manifest = $1 WHERE month = $2",
                              {sql::Param::Blob(digest), month})
                    .ok());
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

}  // namespace tollgate::billing
