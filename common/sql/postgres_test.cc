// Tests that only PostgreSQL needs: lost and frozen servers, plans.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/sql/beside.h"
#include "common/sql/sql.h"
#include "tests/support/postgres.h"

namespace tollgate::sql {
namespace {

// One connection to a server that belongs to the test.
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
  // Keeps the test from hanging.
  std::promise<void> ended;
  std::thread rescue([&, end = ended.get_future()] {
    if (end.wait_for(std::chrono::seconds(20)) == std::future_status::timeout) server_->Thaw();
  });
  const auto began = std::chrono::steady_clock::now();
  int asked = 0;
  {
    const CancelScope scope([&] { return ++asked > 2; });
    const auto slept = connection_->Query("SELECT pg_sleep(60)", {}, [](const Row&) {});
    EXPECT_FALSE(slept.ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(9))
      << "not by the server's limit";
  EXPECT_FALSE(connection_->healthy()) << "its answer would be taken for another statement's";
  ended.set_value();
  rescue.join();
  server_->Thaw();
  ExpectUsableAgain();
}

// The cancel is still in transit when the statement ends by itself: it would end the connection's
// next statement.
TEST_F(PostgresTest, AConnectionIsNotUsedAgainWhileACancelIsOnItsWay) {
  server_->Freeze();
  bool cancelled = false;
  // On a busy machine the statement may end before it is cancelled.
  for (int tries = 0; tries < 10 && !cancelled; ++tries) {
    int asked = 0;
    const CancelScope scope([&] { return ++asked > 2; });
    cancelled = !connection_->Query("SELECT pg_sleep(0.8)", {}, [](const Row&) {}).ok();
  }
  EXPECT_TRUE(cancelled);
  EXPECT_FALSE(connection_->healthy());
  server_->Thaw();
  ExpectUsableAgain();
}

// The writable server is used, before a fail-over and after it.
TEST_F(PostgresTest, OfSeveralServersThePrimaryIsUsed) {
  const auto standby = server_->StartStandby();
  ASSERT_TRUE(standby);
  Database::Options options;
  options.url = testing::TestPostgres::UrlOf({standby.get(), server_.get()}, "postgres");
  const auto database = Database::Open(options);
  ASSERT_TRUE(database.ok());
  const auto connection = (*database)->Connect();
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  const auto made = (*connection)->ExecuteScript("CREATE TABLE t (a BIGINT)");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE((*connection)->Execute("INSERT INTO t VALUES (1)").ok());
  server_->Kill();
  EXPECT_EQ((*connection)->Execute("INSERT INTO t VALUES (2)").error().kind,
            ErrorKind::kConnection);
  EXPECT_FALSE((*connection)->Reconnect().ok()) << "a standby takes no writes";
  ASSERT_TRUE(standby->Promote());
  ASSERT_TRUE((*connection)->Reconnect().ok());
  int64_t rows = 0;
  auto written = (*connection)->Execute("INSERT INTO t VALUES (3)");
  for (int i = 0; i < 600 && !written.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_TRUE((*connection)->Reconnect().ok());
    written = (*connection)->Execute("INSERT INTO t VALUES (3)");
  }
  ASSERT_TRUE(written.ok()) << written.error().message;
  ASSERT_TRUE(
      (*connection)
          ->Query("SELECT count(DISTINCT a) FROM t", {}, [&](const Row& row) { rows = row.Int(0); })
          .ok());
  EXPECT_EQ(rows, 2) << "what was acknowledged is there";
}

// Commands that only read may connect to a standby.
TEST_F(PostgresTest, AStandbyThatIsNamedAloneMayBeRead) {
  const auto standby = server_->StartStandby();
  ASSERT_TRUE(standby);
  const auto connection = ConnectBeside(standby->Url("postgres"), /*read_only=*/true);
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  EXPECT_TRUE((*connection)->Query("SELECT 1", {}, [](const Row&) {}).ok());
}

// The server keeps its connections open but ends no statement: the waiting thread would hang
// forever.
TEST_F(PostgresTest, AServerThatStandsStillIsGivenUp) {
  Database::Options options;
  options.url = server_->Url("postgres");
  options.statement_timeout_ms = 1'000;
  const auto database = Database::Open(options);
  ASSERT_TRUE(database.ok());
  const auto given_up = [&](const char* what, const auto& call, ErrorKind kind) {
    SCOPED_TRACE(what);
    auto connection = (*database)->Connect();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    ASSERT_TRUE((*connection)->Begin(TxMode::kWrite).ok());
    server_->FreezeAll();
    // Keeps the test from hanging.
    std::promise<void> ended;
    std::thread rescue([&, end = ended.get_future()] {
      if (end.wait_for(std::chrono::seconds(55)) == std::future_status::timeout) server_->ThawAll();
    });
    const auto began = std::chrono::steady_clock::now();
    const SqlResult<void> done = call(**connection);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(50));
    EXPECT_FALSE((*connection)->healthy());
    ended.set_value();
    rescue.join();
    server_->ThawAll();
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, kind) << done.error().message;
    ASSERT_TRUE((*connection)->Reconnect().ok());
    EXPECT_TRUE((*connection)->Execute("SELECT 1").ok());
  };
  given_up(
      "statement",
      [](Connection& connection) { return connection.Query("SELECT 1", {}, [](const Row&) {}); },
      ErrorKind::kConnection);
  given_up(
      "script", [](Connection& connection) { return connection.ExecuteScript("SELECT 1"); },
      ErrorKind::kConnection);
  given_up(
      "pipeline",
      [](Connection& connection) {
        connection.Pipeline();
        (void)connection.Execute("SELECT 1");
        return connection.Flush();
      },
      ErrorKind::kConnection);
  given_up(
      "commit", [](Connection& connection) { return connection.Commit(); },
      ErrorKind::kCommitUnknown);
}

// Migrations and verifications have no time limit.
TEST_F(PostgresTest, AScriptThatLiftsTheServersLimitLiftsTheWaitToo) {
  Database::Options options;
  options.url = server_->Url("postgres");
  options.statement_timeout_ms = 500;
  const auto database = Database::Open(options);
  ASSERT_TRUE(database.ok());
  const auto connection = (*database)->Connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->Begin(TxMode::kWrite).ok());
  ASSERT_TRUE((*connection)->ExecuteScript("SET LOCAL statement_timeout = 0").ok());
  EXPECT_TRUE((*connection)->Query("SELECT pg_sleep(3)", {}, [](const Row&) {}).ok());
  ASSERT_TRUE((*connection)->Commit().ok());
  const auto limited = (*connection)->Query("SELECT pg_sleep(3)", {}, [](const Row&) {});
  ASSERT_FALSE(limited.ok());
  EXPECT_EQ(limited.error().kind, ErrorKind::kRetry) << "the server ends it";
}

// A plan that reads the whole table, made while it was small, would stay in use after it has grown.
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
