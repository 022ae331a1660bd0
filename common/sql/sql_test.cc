// Tests that run on both drivers.
#include "common/sql/sql.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <tuple>

#include "tests/support/postgres.h"

namespace tollgate::sql {
namespace {

constexpr Migration kMigrations[] = {
    {1, "things",
     "CREATE TABLE thing (id {blob} PRIMARY KEY, name {text} NOT NULL, amount {int} NOT NULL,"
     " note {text}, CHECK (amount >= 0)) {strict};"},
    {2, "more", "ALTER TABLE thing ADD COLUMN extra {int} NOT NULL DEFAULT 7;"},
};
constexpr std::string_view kInsert = "INSERT INTO thing (id, name, amount, note) VALUES";

class SqlTest : public ::testing::TestWithParam<Dialect> {
 protected:
  void SetUp() override {
    Database::Options options;
    if (GetParam() == Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-sql-" + std::to_string(getpid()) + ".db"))
                  .string();
      Remove();
      options.url = "sqlite:" + file_;
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      options.url = server->MakeDatabase("sqltest");
    }
    options.connections = 2;
    auto opened = Database::Open(options);
    ASSERT_TRUE(opened.ok());
    database_ = std::move(*opened);
    auto migrated = database_->Migrate("test", kMigrations);
    ASSERT_TRUE(migrated.ok()) << migrated.error().message;
  }
  void TearDown() override {
    database_.reset();
    if (!file_.empty()) Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  std::unique_ptr<Connection> Connect() {
    auto connection = database_->Connect();
    EXPECT_TRUE(connection.ok());
    return std::move(*connection);
  }
  static int64_t Count(Connection& connection) {
    int64_t count = -1;
    EXPECT_TRUE(
        connection
            .Query("SELECT count(*) FROM thing", {}, [&](const Row& row) { count = row.Int(0); })
            .ok());
    return count;
  }

  std::string file_;
  std::unique_ptr<Database> database_;
};

TEST_P(SqlTest, EveryKindOfValueRoundTrips) {
  auto connection = Connect();
  const std::string id("\0\x01\xff'\\", 5);
  const std::string name = "naïve 'quote' \\ $1";
  auto done = connection->Execute(std::string(kInsert) + " ($1, $2, $3, $4)",
                                  {Param::Blob(id), name, INT64_MAX, nullptr});
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(*done, 1);
  int rows = 0;
  ASSERT_TRUE(connection
                  ->Query("SELECT id, name, amount, note, extra, -amount FROM thing WHERE id = $1",
                          {Param::Blob(id)},
                          [&](const Row& row) {
                            ++rows;
                            EXPECT_EQ(row.Text(0), id);
                            EXPECT_EQ(row.Text(1), name);
                            EXPECT_EQ(row.Int(2), INT64_MAX);
                            EXPECT_TRUE(row.IsNull(3));
                            EXPECT_FALSE(row.OptionalInt(3).has_value());
                            EXPECT_EQ(row.Int(4), 7);
                            EXPECT_EQ(row.Int(5), -INT64_MAX);
                          })
                  .ok());
  EXPECT_EQ(rows, 1);
}

TEST_P(SqlTest, AnEmptyTextIsNotNull) {
  auto connection = Connect();
  ASSERT_TRUE(connection
                  ->Execute(std::string(kInsert) + " ($1, $2, $3, $4)",
                            {Param::Blob(""), std::string_view(), 1, ""})
                  .ok());
  ASSERT_TRUE(
      connection
          ->Query("SELECT note FROM thing", {}, [](const Row& row) { EXPECT_FALSE(row.IsNull(0)); })
          .ok());
}

// A text is stored unchanged or not at all.
TEST_P(SqlTest, ATextWithNulIsNeverCut) {
  const std::string text("ab\0cd", 5);
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, $2, $3, $4)";
  auto one = connection->Execute(insert, {Param::Blob("1"), text, 1, "n"});
  const std::vector<Param> rows = {Param::Blob("2"), text, 1, "n", Param::Blob("3"), text, 1, "n"};
  auto two = connection->ExecuteRows(kInsert, 4, rows, "");
  EXPECT_EQ(one.ok(), two.ok());
  if (GetParam() == Dialect::kPostgres) {
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(one.error().kind, ErrorKind::kOther);
  }
  int found = 0;
  ASSERT_TRUE(connection
                  ->Query("SELECT name FROM thing", {},
                          [&](const Row& row) {
                            ++found;
                            EXPECT_EQ(row.Text(0), text);
                          })
                  .ok());
  EXPECT_EQ(found, one.ok() ? 3 : 0);
  // It does not match a text that equals its beginning.
  ASSERT_TRUE(connection->Execute(insert, {Param::Blob("4"), "ab", 1, "n"}).ok());
  found = 0;
  (void)connection->Query("SELECT amount FROM thing WHERE name = $1 AND id = $2",
                          {text, Param::Blob("4")}, [&](const Row&) { ++found; });
  EXPECT_EQ(found, 0);
}

TEST_P(SqlTest, ErrorsHaveTheirKind) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, $2, $3, $4)";
  ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a"), "n", 1, nullptr}).ok());
  EXPECT_EQ(connection->Execute(insert, {Param::Blob("a"), "n", 1, nullptr}).error().kind,
            ErrorKind::kUnique);
  EXPECT_EQ(connection->Execute(insert, {Param::Blob("b"), "n", -1, nullptr}).error().kind,
            ErrorKind::kConstraint);
  EXPECT_EQ(connection->Execute("SELEKT 1").error().kind, ErrorKind::kOther);
  EXPECT_TRUE(connection->healthy());
}

TEST_P(SqlTest, WritesAndReadsManyRowsAtOnce) {
  auto connection = Connect();
  constexpr int kRows = 211;  // not a power of two
  std::vector<std::string> ids;
  for (int i = 0; i < kRows; ++i) ids.push_back("id" + std::to_string(1000 + i));
  std::vector<Param> cells;
  for (int i = 0; i < kRows; ++i) {
    cells.insert(cells.end(), {Param::Blob(ids[i]), "first", i, nullptr});
  }
  auto written = connection->ExecuteRows(kInsert, 4, cells, "");
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(*written, kRows);
  for (size_t i = 1; i < cells.size(); i += 4) cells[i] = "second";
  ASSERT_TRUE(
      connection
          ->ExecuteRows(kInsert, 4, cells, "ON CONFLICT (id) DO UPDATE SET name = excluded.name")
          .ok());
  std::vector<Param> keys;
  for (const std::string& id : ids) keys.push_back(Param::Blob(id));
  std::vector<std::string> seen;
  ASSERT_TRUE(connection->Begin(TxMode::kWrite).ok());
  auto read = connection->QueryIn("SELECT id, name FROM thing WHERE id IN", keys,
                                  "ORDER BY id FOR UPDATE", [&](const Row& row) {
                                    seen.push_back(row.Text(0));
                                    EXPECT_EQ(row.Text(1), "second");
                                  });
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(connection->Commit().ok());
  EXPECT_EQ(seen, ids);
  EXPECT_EQ(Count(*connection), kRows);
}

TEST_P(SqlTest, ReadsManyRowsByKeysOfSeveralColumns) {
  auto connection = Connect();
  std::vector<std::string> ids;
  for (int i = 0; i < 70; ++i) ids.push_back("id" + std::to_string(i));
  std::vector<Param> cells;
  for (int i = 0; i < 70; ++i) {
    const Param note = i % 2 == 0 ? Param(nullptr) : Param("n\\\"{},");
    cells.insert(cells.end(), {Param::Blob(ids[i]), i % 3 == 0 ? "a" : "b", i, note});
  }
  auto written = connection->ExecuteRows(kInsert, 4, cells);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(*written, 70);
  static constexpr Connection::KeyColumn kKey[] = {
      {"amount", Param::Kind::kInt}, {"name", Param::Kind::kText}, {"id", Param::Kind::kBlob}};
  for (const int count : {0, 1, 2, 70}) {
    std::vector<Param> keys;
    for (int i = 0; i < count; ++i) {
      // Every third key names another row's text.
      keys.insert(keys.end(), {i, i % 3 == 0 ? "a" : "b", Param::Blob(ids[i])});
      if (i % 3 == 1) keys[keys.size() - 2] = "a";
    }
    std::vector<int64_t> seen;
    auto read = connection->QueryKeys("SELECT amount, note FROM thing WHERE", kKey, keys,
                                      "ORDER BY amount FOR UPDATE", [&](const Row& row) {
                                        seen.push_back(row.Int(0));
                                        EXPECT_EQ(row.IsNull(1), row.Int(0) % 2 == 0);
                                      });
    ASSERT_TRUE(read.ok()) << read.error().message;
    std::vector<int64_t> expected;
    for (int i = 0; i < count; ++i) {
      if (i % 3 != 1) expected.push_back(i);
    }
    EXPECT_EQ(seen, expected);
  }
}

// Statements are cached by the addresses of their texts, which may hold other texts later.
TEST_P(SqlTest, TextsThatChangeInTheirPlacesAreOtherStatements) {
  auto connection = Connect();
  const std::string id(16, 'i');
  const Param cells[] = {Param::Blob(id), "a", 7, "note"};
  ASSERT_TRUE(connection->ExecuteRows(kInsert, 4, cells).ok());
  std::string head = "SELECT note FROM thing WHERE";
  std::string name = "name";
  std::string tail = "ORDER BY name";
  const auto read = [&](const Param& value) {
    const Connection::KeyColumn key[] = {{name, value.kind()}};
    std::string seen;
    auto done = connection->QueryKeys(head, key, std::span(&value, 1), tail,
                                      [&](const Row& row) { seen = row.Bytes(0); });
    EXPECT_TRUE(done.ok()) << done.error().message;
    return seen;
  };
  EXPECT_EQ(read("a"), "note");
  head.replace(7, 4, "name");
  EXPECT_EQ(read("a"), "a");
  name = "note";
  EXPECT_EQ(read("a"), "");
  EXPECT_EQ(read("note"), "a");
  tail = "LIMIT 0";
  EXPECT_EQ(read("note"), "");
}

TEST_P(SqlTest, APipelineReadsAndWritesInOrder) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, $2, 1, NULL)";
  static constexpr Connection::KeyColumn kKey[] = {{"id", Param::Kind::kBlob}};
  const std::vector<Param> keys = {Param::Blob("a"), Param::Blob("b"), Param::Blob("c")};
  std::vector<std::string> before, after;
  const auto read = [&](std::vector<std::string>& seen) {
    return connection->QueryKeys("SELECT name FROM thing WHERE", kKey, keys, "ORDER BY id",
                                 [&seen](const Row& row) { seen.push_back(row.Text(0)); });
  };
  for (int round = 0; round < 2; ++round) {  // the second with prepared statements
    connection->Pipeline();
    auto tx = Transaction::Begin(*connection);
    ASSERT_TRUE(tx.ok());
    ASSERT_TRUE(connection->Execute("DELETE FROM thing").ok());
    {
      const std::string name = "first";  // may end before the pipeline does
      ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a"), name}).ok());
    }
    ASSERT_TRUE(read(before).ok());
    auto flushed = connection->Flush();
    ASSERT_TRUE(flushed.ok()) << flushed.error().message;
    EXPECT_EQ(before, std::vector<std::string>({"first"}));
    connection->Pipeline();
    const std::vector<Param> cells = {Param::Blob("b"), "second", 2, nullptr,
                                      Param::Blob("c"), "third",  3, "note"};
    ASSERT_TRUE(connection->ExecuteRows(kInsert, 4, cells).ok());
    ASSERT_TRUE(read(after).ok());
    auto committed = tx->Commit();
    ASSERT_TRUE(committed.ok()) << committed.error().message;
    EXPECT_EQ(after, std::vector<std::string>({"first", "second", "third"}));
    before.clear();
    after.clear();
  }
  EXPECT_EQ(Count(*connection), 3);
}

// On SQLite the failed statement itself reports the error.
TEST_P(SqlTest, AFailedStatementOfAPipelineFailsItsCommit) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, 'n', $2, NULL)";
  ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a"), 1}).ok());
  for (const auto& [id, amount, kind] :
       {std::tuple("a", 1, ErrorKind::kUnique), std::tuple("b", -1, ErrorKind::kConstraint)}) {
    SqlResult<void> failed;
    {
      connection->Pipeline();
      auto tx = Transaction::Begin(*connection);
      ASSERT_TRUE(tx.ok());
      ASSERT_TRUE(connection->Execute(insert, {Param::Blob("first"), 1}).ok());
      auto done = connection->Execute(insert, {Param::Blob(id), amount});
      if (done.ok()) {
        // It would be prepared after the failed statement, so it is not prepared at all.
        ASSERT_TRUE(
            connection->Execute("DELETE FROM thing WHERE id = $1", {Param::Blob("a")}).ok());
        failed = tx->Commit();
      } else {
        failed = Fail{std::move(done).error()};
      }
    }
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().kind, kind) << failed.error().message;
    EXPECT_TRUE(connection->healthy());
    EXPECT_EQ(Count(*connection), 1) << "nothing of it stays, and the connection works";
  }
  auto deleted = connection->Execute("DELETE FROM thing WHERE id = $1", {Param::Blob("a")});
  ASSERT_TRUE(deleted.ok()) << deleted.error().message;
  EXPECT_EQ(*deleted, 1);
}

TEST_P(SqlTest, APipelineThatIsGivenUpLeavesNothing) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, 'n', 1, NULL)";
  {
    connection->Pipeline();
    auto tx = Transaction::Begin(*connection);
    ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a")}).ok());
  }
  EXPECT_EQ(Count(*connection), 0);
}

TEST_P(SqlTest, RowsAreWrittenToATemporaryTableThatIsMadeAnew) {
  auto connection = Connect();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(
        connection
            ->ExecuteScript(ExpandScript(GetParam(), "CREATE TEMPORARY TABLE kept (id {blob})"))
            .ok());
    const std::vector<Param> cells = {Param::Blob("a"), Param::Blob("b"), Param::Blob("c")};
    auto written = connection->ExecuteRows("INSERT INTO kept (id) VALUES", 1, cells);
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(*written, 3);
    ASSERT_TRUE(connection->ExecuteScript("DROP TABLE kept").ok());
  }
}

// A newer version of the program migrates the database while this one runs.
TEST_P(SqlTest, RowsAreWrittenWhileTheTableGetsAColumn) {
  auto connection = Connect();
  const std::vector<Param> cells = {Param::Blob("a"), "n", 1, nullptr,
                                    Param::Blob("b"), "n", 1, nullptr};
  const std::string tail = "ON CONFLICT (id) DO UPDATE SET amount = excluded.amount";
  ASSERT_TRUE(connection->ExecuteRows(kInsert, 4, cells, tail).ok());
  ASSERT_TRUE(
      Connect()
          ->ExecuteScript(ExpandScript(GetParam(), "ALTER TABLE thing ADD COLUMN late {int}"))
          .ok());
  auto written = connection->ExecuteRows(kInsert, 4, cells, tail);
  if (!written.ok()) {
    EXPECT_EQ(written.error().kind, ErrorKind::kRetry) << written.error().message;
    written = connection->ExecuteRows(kInsert, 4, cells, tail);
  }
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(*written, 2);
}

TEST_P(SqlTest, TransactionsAreAtomic) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, 'n', 1, NULL)";
  {
    auto tx = Transaction::Begin(*connection);
    ASSERT_TRUE(tx.ok());
    ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a")}).ok());
  }
  EXPECT_EQ(Count(*connection), 0);
  {
    auto tx = Transaction::Begin(*connection);
    ASSERT_TRUE(tx.ok());
    ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a")}).ok());
    ASSERT_TRUE(tx->Commit().ok());
  }
  EXPECT_EQ(Count(*connection), 1);
}

TEST_P(SqlTest, CommitOfAFailedTransactionFails) {
  auto connection = Connect();
  const std::string insert = std::string(kInsert) + " ($1, 'n', $2, NULL)";
  ASSERT_TRUE(connection->Begin(TxMode::kWrite).ok());
  ASSERT_TRUE(connection->Execute(insert, {Param::Blob("a"), 1}).ok());
  ASSERT_FALSE(connection->Execute(insert, {Param::Blob("a"), 1}).ok());
  // SQLite undoes only the failed statement; PostgreSQL fails the whole transaction.
  EXPECT_EQ(connection->Commit().ok(), GetParam() == Dialect::kSqlite);
}

TEST_P(SqlTest, ReadersSeeOneSnapshot) {
  auto reader = Connect();
  auto writer = Connect();
  ASSERT_TRUE(reader->Begin(TxMode::kRead).ok());
  EXPECT_EQ(Count(*reader), 0);
  ASSERT_TRUE(
      writer->Execute(std::string(kInsert) + " ($1, 'n', 1, NULL)", {Param::Blob("a")}).ok());
  EXPECT_EQ(Count(*reader), 0);
  ASSERT_TRUE(reader->Commit().ok());
  EXPECT_EQ(Count(*reader), 1);
}

TEST_P(SqlTest, ConcurrentMigrationsApplyOnce) {
  std::vector<std::thread> threads;
  constexpr Migration kOther[] = {
      {1, "other", "CREATE TABLE other (id {int} PRIMARY KEY) {strict};"}};
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto opened = Database::Open(database_->options());
      auto done = (*opened)->Migrate("other", kOther);
      EXPECT_TRUE(done.ok()) << done.error().message;
      good += done.ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
  auto connection = Connect();
  EXPECT_TRUE(connection
                  ->Query("SELECT version FROM schema_migration WHERE component = 'other'", {},
                          [](const Row& row) { EXPECT_EQ(row.Int(0), 1); })
                  .ok());
}

TEST_P(SqlTest, ASchemaNewerThanTheProgramIsAnError) {
  EXPECT_FALSE(database_->Migrate("test", std::span(kMigrations, 1)).ok());
}

TEST_P(SqlTest, BorrowWaitsWhenThePoolIsExhausted) {
  auto first = database_->Borrow();
  auto second = database_->Borrow();
  ASSERT_TRUE(first.ok() && second.ok());
  std::thread returner([pooled = std::move(*first)]() mutable { auto end = std::move(pooled); });
  auto third = database_->Borrow();  // waits for the returned connection
  EXPECT_TRUE(third.ok());
  returner.join();
}

TEST_P(SqlTest, TransactRetries) {
  int attempts = 0;
  auto done = database_->Transact(TxMode::kWrite, [&](Connection& connection) -> SqlResult<void> {
    auto put = connection.Execute(std::string(kInsert) + " ($1, 'n', 1, NULL)", {Param::Blob("a")});
    EXPECT_TRUE(put.ok());
    if (++attempts < 3) return Fail{SqlError{ErrorKind::kRetry, "again"}};
    return {};
  });
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(Count(*Connect()), 1);
}

INSTANTIATE_TEST_SUITE_P(Both, SqlTest, ::testing::Values(Dialect::kSqlite, Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == Dialect::kSqlite ? "sqlite" : "postgres";
                         });

TEST(Url, OtherSchemesAreErrors) {
  for (const char* url : {"", "sqlite:", "mysql://x", "/tmp/x"}) {
    Database::Options options;
    options.url = url;
    EXPECT_FALSE(Database::Open(options).ok()) << url;
  }
}

}  // namespace
}  // namespace tollgate::sql
