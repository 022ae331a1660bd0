#include "common/audit/refusal_writer.h"

#include "common/audit/testing/audit_database.h"

namespace tollgate::audit {
namespace {

class RefusalWriterTest : public AuditDatabaseTest {
 protected:
  void Note(const std::string& actor, int times = 1) {
    for (int i = 0; i < times; ++i) {
      calls_.Note({.actor = actor,
                   .address = "192.0.2.7",
                   .method = "tollgate.admin.v1.KeyService/CreateKey",
                   .workspace = "acme",
                   .reason = "PERMISSION_DENIED"},
                  clock_.WallUs());
    }
  }

  ManualClock clock_;
  RefusedCalls calls_;
};

TEST_P(RefusalWriterTest, ARefusalIsAnEntryAndThoseThatFollowAreCounted) {
  calls_.AddWriter();
  RefusalWriter writer(*database_, kEntries, clock_, calls_);
  Note("user:ann");
  writer.Step();
  Note("user:ann", 7);
  writer.Step();
  ASSERT_EQ(Read().records.size(), 1U);
  const Record first = Read().records[0];
  EXPECT_EQ(first.action, "call.refuse");
  EXPECT_EQ(first.actor, "user:ann");
  EXPECT_EQ(first.address, "192.0.2.7");
  EXPECT_EQ(first.workspace_id, "acme");
  EXPECT_EQ(first.subject, "tollgate.admin.v1.KeyService/CreateKey");
  EXPECT_EQ(first.detail, "PERMISSION_DENIED");
  clock_.Advance(60'000'000);
  writer.Step();
  ASSERT_EQ(Read().records.size(), 2U);
  EXPECT_EQ(Read().records[1].detail, "PERMISSION_DENIED; 7 calls within a minute");
}

TEST_P(RefusalWriterTest, WhatCannotBeWrittenIsWrittenLater) {
  calls_.AddWriter();
  RefusalWriter writer(*database_, kEntries, clock_, calls_);
  ASSERT_TRUE((*database_->Borrow())->ExecuteScript("ALTER TABLE audit_head RENAME TO gone").ok());
  Note("user:ann");
  writer.Step();
  Note("user:bob");
  writer.Step();
  ASSERT_TRUE((*database_->Borrow())->ExecuteScript("ALTER TABLE gone RENAME TO audit_head").ok());
  writer.Step();
  writer.Step();
  ASSERT_EQ(Read().records.size(), 2U);
  EXPECT_EQ(Read().records[0].actor, "user:ann");
  EXPECT_EQ(Read().records[1].actor, "user:bob");
}

TEST_P(RefusalWriterTest, ItsThreadWritesAndStopWritesTheRest) {
  {
    RefusalWriter writer(*database_, kEntries, clock_, calls_);
    writer.Start();
    Note("user:ann");
  }
  EXPECT_EQ(Read().records.size(), 1U);
  // Without a writer it is dropped.
  Note("user:bob");
  EXPECT_EQ(calls_.Take(0).size(), 0U);
}

// Calls of the current minute are not due yet when the process stops.
TEST_P(RefusalWriterTest, StopWritesWhatIsNotDueYet) {
  RefusalWriter writer(*database_, kEntries, clock_, calls_);
  calls_.AddWriter();
  Note("user:ann");
  writer.Step();
  Note("user:ann", 7);
  calls_.RemoveWriter();
  writer.Start();
  writer.Stop();
  ASSERT_EQ(Read().records.size(), 2U);
  EXPECT_EQ(Read().records[1].detail, "PERMISSION_DENIED; 7 calls within a minute");
}

INSTANTIATE_TEST_SUITE_P(Databases, RefusalWriterTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         NameOfDialect);

}  // namespace
}  // namespace tollgate::audit
