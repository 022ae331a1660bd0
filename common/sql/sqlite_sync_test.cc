// SQLite must report a failed sync, whatever triggered the sync.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "common/sql/sql.h"
#include "common/sql/testing/power_cut_vfs.h"

namespace tollgate::sql {
namespace {

using testing::PowerCutVfs;

class SqliteSyncTest : public ::testing::Test {
 protected:
  SqliteSyncTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::string pattern = (std::filesystem::temp_directory_path() / "sqlsyncXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/test.db";
    PowerCutVfs::Get();
  }
  ~SqliteSyncTest() override {
    database_.reset();
    PowerCutVfs::Get().FailSyncsOf("");
    PowerCutVfs::Get().Reset();
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<Connection> Connect(bool deferred_sync) {
    Database::Options options;
    options.url = "sqlite:" + path_;
    options.deferred_sync = deferred_sync;
    options.checkpoint_pages = 4000;
    database_ = std::move(*Database::Open(options));
    auto connection = std::move(*database_->Connect());
    EXPECT_TRUE(connection->ExecuteScript("CREATE TABLE t (a BLOB)").ok());
    return connection;
  }
  // Writes this many pages in one transaction or several.
  static bool Fill(Connection& connection, int pages, int transactions = 1) {
    const std::string page(4096, 'p');
    for (int i = 0; i < transactions; ++i) {
      auto transaction = Transaction::Begin(connection);
      if (!transaction.ok()) return false;
      for (int k = 0; k < pages; ++k) {
        if (!connection.Execute("INSERT INTO t VALUES ($1)", {Param::Blob(page)}).ok())
          return false;
      }
      if (!transaction->Commit().ok()) return false;
    }
    return true;
  }
  int64_t LogBytes() const {
    return static_cast<int64_t>(std::filesystem::file_size(path_ + "-wal"));
  }

  std::string folder_, path_;
  std::unique_ptr<Database> database_;
};

TEST_F(SqliteSyncTest, AFailedSyncOfTheLogInACheckpointEndsTheProcess) {
  auto connection = Connect(/*deferred_sync=*/true);
  ASSERT_TRUE(Fill(*connection, 1000));
  PowerCutVfs::Get().FailSyncsOf("-wal");
  EXPECT_DEATH((void)Fill(*connection, 1000, 4), "database flush failed");
}

TEST_F(SqliteSyncTest, AFailedSyncOfTheDatabaseInACheckpointEndsTheProcess) {
  auto connection = Connect(/*deferred_sync=*/false);
  ASSERT_TRUE(Fill(*connection, 1000));
  PowerCutVfs::Get().FailSyncsOf("test.db");
  EXPECT_DEATH((void)Fill(*connection, 1000, 4), "database flush failed");
}

TEST_F(SqliteSyncTest, AFailedSyncOfACommitEndsTheProcess) {
  auto connection = Connect(/*deferred_sync=*/false);
  ASSERT_TRUE(Fill(*connection, 1));
  PowerCutVfs::Get().FailSyncsOf("-wal");
  EXPECT_DEATH((void)Fill(*connection, 1), "database flush failed");
  EXPECT_DEATH((void)connection->ExecuteScript("INSERT INTO t VALUES (x'00')"),
               "database flush failed")
      << "also without a transaction";
}

TEST_F(SqliteSyncTest, AFailedSyncOfTheLogBetweenCommitsEndsTheProcess) {
  auto connection = Connect(/*deferred_sync=*/true);
  auto sync = database_->MakeLogSync();
  ASSERT_TRUE(Fill(*connection, 1));
  sync->Sync();
  PowerCutVfs::Get().FailSyncsOf("-wal");
  EXPECT_DEATH(sync->Sync(), "database flush failed");
}

TEST_F(SqliteSyncTest, TheLogIsSyncedThroughOneDescriptorForItsLife) {
  auto connection = Connect(/*deferred_sync=*/true);
  auto sync = database_->MakeLogSync();
  const int64_t opens = PowerCutVfs::Get().opens_of(path_ + "-wal");
  for (int64_t i = 1; i <= 10; ++i) {
    const int64_t before = PowerCutVfs::Get().syncs_of(path_ + "-wal");
    ASSERT_TRUE(Fill(*connection, 1));
    sync->Sync();
    EXPECT_EQ(PowerCutVfs::Get().syncs_of(path_ + "-wal"), before + 1);
  }
  connection.reset();
  sync->Sync();
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal")) << "its descriptor is that of the log";
  EXPECT_EQ(PowerCutVfs::Get().opens_of(path_ + "-wal"), opens);
}

TEST_F(SqliteSyncTest, TheLogIsCopiedBackAndDoesNotGrowForEver) {
  for (const bool deferred_sync : {true, false}) {
    auto connection = Connect(deferred_sync);
    auto sync = database_->MakeLogSync();
    ASSERT_TRUE(Fill(*connection, 100, 100));
    EXPECT_LT(LogBytes(), 4200 * 4200) << deferred_sync;
    connection.reset();
    sync.reset();
    database_.reset();
    PowerCutVfs::Get().Reset();
    std::filesystem::remove(path_);
  }
}

TEST_F(SqliteSyncTest, ALogIsWrittenInFewPieces) {
  auto connection = Connect(/*deferred_sync=*/true);
  const int64_t before = PowerCutVfs::Get().writes_of(path_ + "-wal");
  ASSERT_TRUE(Fill(*connection, 150));
  const int64_t writes = PowerCutVfs::Get().writes_of(path_ + "-wal") - before;
  EXPECT_GT(LogBytes(), 150 * 4096);
  EXPECT_LE(writes, 150 * 4096 / 60'000 + 2) << "SQLite itself makes two for each page";
}

TEST_F(SqliteSyncTest, ACommitIsVisibleToOthersAtOnce) {
  for (const bool deferred_sync : {true, false}) {
    auto writer = Connect(deferred_sync);
    auto reader = std::move(*database_->Connect());
    for (int pages = 1; pages < 100; pages += 7) {
      ASSERT_TRUE(Fill(*writer, pages));
      int64_t own = 0, others = -1;
      const auto count = [](int64_t& into) {
        return [&into](const Row& row) { into = row.Int(0); };
      };
      ASSERT_TRUE(writer->Query("SELECT sum(length(a)) FROM t", {}, count(own)).ok());
      ASSERT_TRUE(reader->Query("SELECT sum(length(a)) FROM t", {}, count(others)).ok());
      EXPECT_EQ(own, others);
    }
    writer.reset();
    reader.reset();
    database_.reset();
    PowerCutVfs::Get().Reset();
    std::filesystem::remove(path_);
  }
}

// A transaction larger than the cache reads pages that still wait to be written.
TEST_F(SqliteSyncTest, ATransactionReadsWhatWaitsToBeWritten) {
  auto connection = Connect(/*deferred_sync=*/true);
  ASSERT_TRUE(connection->ExecuteScript("PRAGMA cache_size=5").ok());
  ASSERT_TRUE(Fill(*connection, 40));
  ASSERT_TRUE(connection->ExecuteScript("BEGIN").ok());
  ASSERT_TRUE(connection->ExecuteScript("UPDATE t SET a = randomblob(4096)").ok());
  ASSERT_TRUE(connection->ExecuteScript("UPDATE t SET a = a || x'01'").ok());
  ASSERT_TRUE(connection->ExecuteScript("ROLLBACK").ok());
  ASSERT_TRUE(connection->ExecuteScript("UPDATE t SET a = a || x'02'").ok());
  int64_t right = 0;
  std::string check;
  ASSERT_TRUE(connection
                  ->Query("SELECT count(*) FROM t WHERE length(a) = 4097", {},
                          [&](const Row& row) { right = row.Int(0); })
                  .ok());
  ASSERT_TRUE(
      connection->Query("PRAGMA integrity_check", {}, [&](const Row& row) { check = row.Text(0); })
          .ok());
  EXPECT_EQ(right, 40);
  EXPECT_EQ(check, "ok");
}

TEST_F(SqliteSyncTest, ALogThatCannotBeWrittenFailsTheCommitAndNoLaterOne) {
  auto connection = Connect(/*deferred_sync=*/true);
  ASSERT_TRUE(Fill(*connection, 10));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit full{static_cast<rlim_t>(LogBytes()) + 10'000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const bool filled = Fill(*connection, 50);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_FALSE(filled) << "the disk was full";
  ASSERT_TRUE(Fill(*connection, 5));
  auto reader = std::move(*database_->Connect());
  int64_t rows = 0;
  std::string check;
  ASSERT_TRUE(
      reader->Query("SELECT count(*) FROM t", {}, [&](const Row& row) { rows = row.Int(0); }).ok());
  ASSERT_TRUE(
      reader->Query("PRAGMA integrity_check", {}, [&](const Row& row) { check = row.Text(0); })
          .ok());
  EXPECT_EQ(rows, 15);
  EXPECT_EQ(check, "ok");
}

}  // namespace
}  // namespace tollgate::sql
