// What SQLite must not keep to itself: a sync that failed, whoever asked for it.
#include <gtest/gtest.h>
#include <unistd.h>

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
    database_ = std::move(*Database::Open(options));
    auto connection = std::move(*database_->Connect());
    EXPECT_TRUE(connection->ExecuteScript("CREATE TABLE t (a BLOB)").ok());
    return connection;
  }
  // One transaction of so many pages, or several.
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

}  // namespace
}  // namespace tollgate::sql
