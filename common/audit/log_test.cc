#include "common/audit/log.h"

#include <thread>

#include "common/audit/testing/audit_database.h"

namespace tollgate::audit {
namespace {

class LogTest : public AuditDatabaseTest {};

Record Make(const std::string& action) {
  return {.at_us = 7,
          .actor = "user:ann",
          .action = action,
          .workspace_id = "acme",
          .subject = "s",
          .detail = "d",
          .address = "192.0.2.7",
          .request_id = "r"};
}

TEST_P(LogTest, EntriesAreNumberedAndChainedInTheOrderOfTheirCommits) {
  ASSERT_TRUE(Add({Make("a"), Make("b")}).ok());
  ASSERT_TRUE(Add({}).ok());
  ASSERT_TRUE(Add({Make("c")}).ok());
  const Page page = Read();
  ASSERT_EQ(page.records.size(), 3U);
  Verifier chain;
  for (const Record& record : page.records) EXPECT_TRUE(chain.Add(record)) << chain.problem();
  EXPECT_TRUE(chain.Finish(page.head.sequence, page.head.hash));
  EXPECT_TRUE(SameContent(page.records[2], Make("c")));
  EXPECT_EQ(Read(1, 1).records.at(0).action, "b");
  EXPECT_EQ(Read(3).records.size(), 0U);
}

TEST_P(LogTest, AnEntryIsThereExactlyIfItsTransactionIs) {
  const auto done = database_->Transact(
      sql::TxMode::kWrite, [](sql::Connection& connection) -> sql::SqlResult<void> {
        EXPECT_TRUE(Append(connection, kEntries, Make("a")).ok());
        return Fail{sql::SqlError{sql::ErrorKind::kOther, "refused"}};
      });
  EXPECT_FALSE(done.ok());
  EXPECT_EQ(Read().records.size(), 0U);
  EXPECT_EQ(Read().head.sequence, 0);
}

TEST_P(LogTest, WritersAtTheSameTimeLeaveNoGap) {
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([this] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(Add({Make("a")}).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  Verifier chain;
  const Page page = Read();
  for (const Record& record : page.records) EXPECT_TRUE(chain.Add(record)) << chain.problem();
  EXPECT_TRUE(chain.Finish(80, page.head.hash));
}

TEST_P(LogTest, AnEntryWithNulIsRefusedAndTheChainVerifies) {
  ASSERT_TRUE(Add({Make("a")}).ok());
  for (std::string Record::* text :
       {&Record::actor, &Record::action, &Record::workspace_id, &Record::subject, &Record::detail,
        &Record::address, &Record::request_id, &Record::source}) {
    Record record = Make("b");
    record.*text = std::string("x\0y", 3);
    EXPECT_FALSE(Add({Make("b"), record}).ok());
  }
  ASSERT_TRUE(Add({Make("c")}).ok());
  Verifier chain;
  const Page page = Read();
  EXPECT_EQ(page.records.size(), 2U);
  for (const Record& record : page.records) EXPECT_TRUE(chain.Add(record)) << chain.problem();
}

TEST_P(LogTest, MakingTheTablesAgainKeepsTheEntries) {
  ASSERT_TRUE(Add({Make("a")}).ok());
  ASSERT_TRUE(Migrate(*database_).ok());
  EXPECT_EQ(Read().head.sequence, 1);
}

INSTANTIATE_TEST_SUITE_P(Databases, LogTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         NameOfDialect);

}  // namespace
}  // namespace tollgate::audit
