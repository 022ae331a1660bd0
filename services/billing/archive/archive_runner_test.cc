// Closed months are archived automatically, by one replica per day.
#include "services/billing/archive/archive_runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>

#include "common/base/time_units.h"
#include "services/billing/archive/archive.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/archive/verify_archive.h"

namespace tollgate::billing {
namespace {

class ArchiveRunnerTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    folder_ = std::filesystem::temp_directory_path() /
              ("tollgate-archive-runner-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const int32_t month : {202510, 202511, 202512}) {
      const int64_t at_us = UtcMonthStartUs(month) + kDayUs;
      ASSERT_TRUE(EnsurePartitions(*connection_, at_us).ok());
      Run({MakeAddCredit("c" + std::to_string(month), 1000)}, at_us);
      const Id id = TestId(month, at_us + 1);
      Run({MakeAuthorize(id, 100, 50)}, at_us + 1);
      Run({MakeSettle(id, 100, 20)}, at_us + 2);
    }
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    LedgerDatabaseTest::TearDown();
  }
  ArchiveRunner::Options KeepMonths(int months) {
    ArchiveRunner::Options options;
    options.sql = database_->options();
    options.folder = folder_.string();
    options.months = months;
    return options;
  }
  static std::unique_ptr<ArchiveRunner> Make(ArchiveRunner::Options options) {
    return std::make_unique<ArchiveRunner>(
        std::move(options), [] { return int64_t{0}; }, [] { return true; });
  }
  std::vector<int64_t> Archived() {
    std::vector<int64_t> months;
    auto read = connection_->Query("SELECT month FROM archive ORDER BY month", {},
                                   [&](const sql::Row& row) { months.push_back(row.Int(0)); });
    EXPECT_TRUE(read.ok());
    return months;
  }
  size_t Files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }
  std::filesystem::path folder_;
};

TEST_P(ArchiveRunnerTest, KeepsSoManyWholeMonthsAndRunsOnceADay) {
  auto first = Make(KeepMonths(2));
  auto second = Make(KeepMonths(2));
  const int64_t now_us = UtcMonthStartUs(202512) + 20 * kDayUs;
  EXPECT_EQ(first->Run(now_us), "");
  EXPECT_TRUE(Archived().empty()) << "October and November stay";
  const int64_t january_us = UtcMonthStartUs(202601);
  // Without the folder nothing is lost, and there is no second run on this day.
  const std::filesystem::path away = folder_.string() + "-away";
  std::filesystem::rename(folder_, away);
  EXPECT_NE(first->Run(january_us), "");
  EXPECT_TRUE(Archived().empty());
  std::filesystem::rename(away, folder_);
  EXPECT_EQ(second->Run(january_us + kHourUs), "");
  EXPECT_TRUE(Archived().empty()) << "another replica has begun the run of this day";
  EXPECT_EQ(second->Run(january_us + kDayUs), "");
  EXPECT_EQ(Archived(), std::vector<int64_t>{202510});
  EXPECT_EQ(Files(), 4u) << "three files and the manifest";
  EXPECT_EQ(first->Run(january_us + kDayUs), "");
  EXPECT_EQ(second->Run(UtcMonthStartUs(202602)), "");
  EXPECT_EQ(Archived(), (std::vector<int64_t>{202510, 202511}));
  ExpectVerified();
}

// The command during a run of the runner, or two commands at once.
TEST_P(ArchiveRunnerTest, TwoRunsAtATimeDoNotMixTheirFiles) {
  const auto run = [this](std::string& failed) {
    auto connection = std::move(*database_->Connect());
    auto archived =
        ArchiveLedger(*connection, {202512, folder_.string(), "ann", UtcMonthStartUs(202601)});
    if (!archived.ok()) failed = archived.error().message;
  };
  std::string one, other;
  std::thread beside([&] { run(other); });
  run(one);
  beside.join();
  std::string failed;
  run(failed);
  EXPECT_EQ(failed, "") << "a later run archives the rest";
  EXPECT_EQ(Archived(), (std::vector<int64_t>{202510, 202511}));
  EXPECT_EQ(Files(), 8u);
  ExpectVerified();
  VerifyReport report;
  ASSERT_TRUE(VerifyArchive(*connection_, folder_.string(), report).ok());
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

TEST_P(ArchiveRunnerTest, AStoppedRunIsFinishedByTheNext) {
  int asked = 0;
  ArchiveOptions options{202512, folder_.string(), "ann", UtcMonthStartUs(202601)};
  options.stop = [&asked] { return ++asked > 3; };
  for (int tries = 0; tries < 100; ++tries) {
    asked = -tries;
    if (ArchiveLedger(*connection_, options).ok()) break;
    ExpectVerified();
  }
  EXPECT_EQ(Archived(), (std::vector<int64_t>{202510, 202511}));
  EXPECT_EQ(Files(), 8u);
}

// A process that is restarted more often than once an hour archives as well.
TEST_P(ArchiveRunnerTest, LooksSoonAfterItsStart) {
  ArchiveRunner::Options options = KeepMonths(1);
  options.first_ms = 1;
  std::promise<void> looked;
  ArchiveRunner runner(
      options, [] { return UtcMonthStartUs(202601); },
      [&, first = true]() mutable {
        if (std::exchange(first, false)) looked.set_value();
        return true;
      });
  ASSERT_TRUE(runner.Start().ok());
  EXPECT_EQ(looked.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  runner.Stop();
}

TEST_P(ArchiveRunnerTest, WantsAFolder) {
  ArchiveRunner::Options options = KeepMonths(1);
  options.folder.clear();
  EXPECT_FALSE(Make(options)->Start().ok());
}

INSTANTIATE_TEST_SUITE_P(Both, ArchiveRunnerTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
