// What only PostgreSQL can do: lost and frozen servers, plans.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/sql/sql.h"
#include "tests/support/postgres.h"

namespace tollgate::sql {
namespace {

// One connection to a server of the test's own.
class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = testing::TestPostgres::Start();
    if (!server_) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    Database::Options options;
    options.url = server_->Url("postgres");
    auto database = Database::Open(options);
    ASSERT_TRUE(database.ok());
    database_ = std::move(*database);
    auto connection = database_->Connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    connection_ = std::move(*connection);
  }
  void ExpectUsableAgain() {
    ASSERT_TRUE(connection_->Reconnect().ok());
    EXPECT_TRUE(connection_->Execute("SELECT 1").ok());
  }

  std::unique_ptr<testing::TestPostgres> server_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(PostgresTest, ReconnectsAfterALostServer) {
  ASSERT_TRUE(connection_->Begin(TxMode::kWrite).ok());
  server_->Kill();
  const auto committed = connection_->Commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().kind, ErrorKind::kCommitUnknown) << committed.error().message;
  EXPECT_FALSE(connection_->healthy());
  EXPECT_EQ(connection_->Begin(TxMode::kWrite).error().kind, ErrorKind::kConnection);
  EXPECT_EQ(connection_->Reconnect().error().kind, ErrorKind::kConnection);
  ASSERT_TRUE(server_->Run());
  ExpectUsableAgain();
}

TEST_F(PostgresTest, ALostServerEndsAPipeline) {
  connection_->Pipeline();
  ASSERT_TRUE(connection_->Begin(TxMode::kWrite).ok());
  ASSERT_TRUE(connection_->Flush().ok());
  server_->Kill();
  connection_->Pipeline();
  (void)connection_->Execute("SELECT 1");
  const auto committed = connection_->Commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().kind, ErrorKind::kCommitUnknown) << committed.error().message;
  EXPECT_FALSE(connection_->healthy());
  ASSERT_TRUE(server_->Run());
  ExpectUsableAgain();
}

TEST_F(PostgresTest, ACancelledStatementEndsThoughTheServerDoesNotReact) {
  server_->Freeze();
  // Ends the test where nothing else would.
  std::promise<void> ended;
  std::thread rescue([&, end = ended.get_future()] {
    if (end.wait_for(std::chrono::seconds(7)) == std::future_status::timeout) server_->Thaw();
  });
  const auto began = std::chrono::steady_clock::now();
  int asked = 0;
  {
    const CancelScope scope([&] { return ++asked > 2; });
    const auto slept = connection_->Query("SELECT pg_sleep(9)", {}, [](const Row&) {});
    EXPECT_FALSE(slept.ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_FALSE(connection_->healthy()) << "its answer would be taken for another statement's";
  ended.set_value();
  rescue.join();
  server_->Thaw();
  ExpectUsableAgain();
}

// The request to cancel is still on its way when the statement ends by itself: it would end
// whatever the connection does next.
TEST_F(PostgresTest, AConnectionIsNotUsedAgainWhileACancelIsOnItsWay) {
  server_->Freeze();
  int asked = 0;
  {
    const CancelScope scope([&] { return ++asked > 2; });
    const auto slept = connection_->Query("SELECT pg_sleep(0.4)", {}, [](const Row&) {});
    EXPECT_FALSE(slept.ok());
  }
  EXPECT_FALSE(connection_->healthy());
  server_->Thaw();
  ExpectUsableAgain();
}

// A plan that reads a whole table would stay when a table that was small has grown.
TEST(Postgres, PlansByKeyOnlyUseTheKeyOfAnEmptyTable) {
  auto server = testing::TestPostgres::Start();
  if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
  for (const bool by_key_only : {false, true}) {
    Database::Options options;
    options.url = server->MakeDatabase("plans");
    options.by_key_only = by_key_only;
    auto database = Database::Open(options);
    auto connection = (*database)->Connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    ASSERT_TRUE(
        (*connection)
            ->ExecuteScript("CREATE TABLE t (a BIGINT, b BIGINT, c TEXT, PRIMARY KEY (a, b));"
                            "INSERT INTO t SELECT i, i, '' FROM generate_series(1, 50) i;"
                            "ANALYZE t")
            .ok());
    std::string plan;
    auto read = (*connection)
                    ->Query(
                        "EXPLAIN SELECT * FROM t WHERE (a, b) IN (SELECT * FROM"
                        " unnest($1::bigint[], $2::bigint[])) FOR UPDATE",
                        {"{1}", "{1}"}, [&](const Row& row) { plan += row.Text(0) + '\n'; });
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(plan.find("Seq Scan") == std::string::npos, by_key_only) << plan;
  }
}

}  // namespace
}  // namespace tollgate::sql
