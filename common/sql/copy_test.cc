// A database is copied row by row, compared, and refused when a part of it could be lost.
#include "common/sql/copy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/postgres.h"

namespace tollgate::sql {
namespace {

SqlResult<void> AddHead(Connection& db) {
  auto done = db.Execute("INSERT INTO head (id, hash) VALUES (1, $1)", {Param::Blob("genesis")});
  if (!done.ok()) return Fail{std::move(done).error()};
  return {};
}

// "child" is before "parent" by name and after it by reference.
constexpr Migration kCopyMigrations[] = {
    {1, "tables",
     "CREATE TABLE parent (shard {int} NOT NULL, name {text} NOT NULL UNIQUE, bytes {blob} NOT "
     "NULL,"
     " cap {int}, PRIMARY KEY (shard, name)) {keyed};"
     "CREATE TABLE child (id {blob} NOT NULL PRIMARY KEY, name {text} NOT NULL REFERENCES parent"
     " (name)) {strict};"
     "CREATE TABLE head (id {int} NOT NULL PRIMARY KEY, hash {blob} NOT NULL) {strict};",
     AddHead},
    {2, "notes", "ALTER TABLE child ADD COLUMN note {text} NOT NULL DEFAULT '';"},
};
constexpr Schema kSchemas[] = {{"test", kCopyMigrations}};

class CopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* server = testing::TestPostgres::Shared();
    if (!server) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    new_url_ = server->MakeDatabase("copy");
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-copy-" + std::to_string(getpid()) + ".db"))
                .string();
    old_url_ = "sqlite:" + file_;
    RemoveFiles();
    old_ = Open(old_url_);
    ASSERT_TRUE(old_->Migrate("test", kCopyMigrations).ok());
  }
  void TearDown() override {
    old_.reset();
    if (!file_.empty()) RemoveFiles();
  }
  void RemoveFiles() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  static std::unique_ptr<Database> Open(const std::string& url) {
    return std::move(*Database::Open({.url = url}));
  }
  // 300 parents of 3 shards with all kinds of values, and a child of each.
  void Fill() {
    auto db = std::move(*old_->Connect());
    for (int i = 0; i < 300; ++i) {
      const std::string name = "näme '" + std::to_string(i);
      const std::string bytes = std::string("\0\xff\x80", 3) + std::to_string(i);
      const std::optional<int64_t> cap =
          i % 2 == 0 ? std::nullopt : std::optional<int64_t>(INT64_MAX - i);
      ASSERT_TRUE(
          db->Execute("INSERT INTO parent (shard, name, bytes, cap) VALUES ($1, $2, $3, $4)",
                      {i % 3, name, Param::Blob(bytes), cap})
              .ok());
      ASSERT_TRUE(db->Execute("INSERT INTO child (id, name, note) VALUES ($1, $2, 'n')",
                              {Param::Blob(bytes), name})
                      .ok());
    }
    ASSERT_TRUE(db->Execute("UPDATE head SET hash = $1", {Param::Blob("later")}).ok());
  }
  SqlResult<std::vector<CopiedTable>> Copy(const std::string& from, const std::string& to) {
    return CopyDatabase(
        {.from = from, .to = to, .schemas = kSchemas, .prepare = nullptr, .page_rows = 7});
  }
  static std::string Text(const std::string& url, const std::string& query) {
    std::string text;
    auto db = std::move(*Open(url)->Connect());
    EXPECT_TRUE(db->Query(query, {}, [&](const Row& row) { text += row.Text(0) + "\n"; }).ok());
    return text;
  }

  std::string file_;
  std::string old_url_;
  std::string new_url_;
  std::unique_ptr<Database> old_;
};

TEST_F(CopyTest, EveryRowArrivesAndComesBack) {
  Fill();
  const auto copied = Copy(old_url_, new_url_);
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  std::string rows;
  for (const CopiedTable& table : *copied) {
    rows += table.name + " " + std::to_string(table.rows) + ", ";
  }
  EXPECT_EQ(rows, "head 1, parent 300, child 300, ");
  const std::string back = file_ + ".back";
  const auto returned = Copy(new_url_, "sqlite:" + back);
  ASSERT_TRUE(returned.ok()) << returned.error().message;
  for (const std::string query :
       {"SELECT name || shard || coalesce(cap, 0) FROM parent ORDER BY shard, name",
        "SELECT bytes FROM parent ORDER BY bytes", "SELECT hash FROM head",
        "SELECT name || note FROM child ORDER BY id"}) {
    EXPECT_EQ(Text("sqlite:" + back, query), Text(old_url_, query)) << query;
    EXPECT_EQ(Text(new_url_, query), Text(old_url_, query)) << query;
  }
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(back + suffix);
}

TEST_F(CopyTest, ADatabaseInUseIsNotOverwritten) {
  Fill();
  ASSERT_TRUE(Copy(old_url_, new_url_).ok());
  const auto again = Copy(old_url_, new_url_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "the new database is in use: its table parent has 300 rows");
}

// A first try that failed leaves empty tables behind.
TEST_F(CopyTest, EmptyTablesAreFilled) {
  Fill();
  ASSERT_TRUE(Open(new_url_)->Migrate("test", kCopyMigrations).ok());
  EXPECT_TRUE(Copy(old_url_, new_url_).ok());
}

TEST_F(CopyTest, AnOlderSchemaIsRefused) {
  const std::string older = file_ + ".older";
  ASSERT_TRUE(Open("sqlite:" + older)->Migrate("test", std::span(kCopyMigrations).first(1)).ok());
  const auto copied = Copy("sqlite:" + older, new_url_);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().message,
            "the old database lacks migrations of test: start this version on it once");
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(older + suffix);
}

// Nothing is copied when a row cannot be written, and the next try starts again.
TEST_F(CopyTest, AFailureLeavesNothing) {
  Fill();
  ASSERT_TRUE(Open(new_url_)->Migrate("test", kCopyMigrations).ok());
  auto db = std::move(*Open(new_url_)->Connect());
  ASSERT_TRUE(db->ExecuteScript("ALTER TABLE child ADD CHECK (note <> 'n')").ok());
  EXPECT_FALSE(Copy(old_url_, new_url_).ok());
  EXPECT_EQ(Text(new_url_, "SELECT name FROM parent"), "");
  EXPECT_EQ(Text(new_url_, "SELECT hash FROM head"), "genesis\n");
  ASSERT_TRUE(db->ExecuteScript("ALTER TABLE child DROP CONSTRAINT child_note_check").ok());
  EXPECT_TRUE(Copy(old_url_, new_url_).ok());
}

}  // namespace
}  // namespace tollgate::sql
