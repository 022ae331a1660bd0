#include "services/auth/storage/audit_log.h"

#include <gmock/gmock.h>

#include <fstream>

#include "services/auth/testing/audit_world.h"

namespace tollgate::auth {
namespace {

using ::testing::HasSubstr;

class AuditLogTest : public AuditWorld {
 protected:
  AuditFinding Verify(const AuditCheckpoints& checkpoints = {}) {
    AuditFinding finding;
    EXPECT_TRUE(store_->Read([&](sql::Connection& sql) -> sql::SqlResult<void> {
      auto found = VerifyAuditLog(sql, checkpoints);
      if (!found) return Fail{found.error()};
      finding = *found;
      return {};
    }));
    return finding;
  }
};

TEST_P(AuditLogTest, EventsFromBeforeTheAddressStayProvable) {
  // An event in the format of an older version.
  AuditRecord old;
  old.sequence = 2;
  old.at_us = 5;
  old.actor = "tester";
  old.action = "key.create";
  old.workspace_id = "acme";
  old.format = 1;
  const std::string hash = audit::HashOf(Events()[0].hash, old);
  Sql("INSERT INTO audit_event (sequence, at_us, actor, action, workspace_id, subject, detail, "
      "hash)"
      " SELECT 2, 5, 'tester', 'key.create', 'acme', '', '', hash FROM audit_event");
  EXPECT_TRUE(store_->Read([&](sql::Connection& sql) -> sql::SqlResult<void> {
    for (const char* text : {"UPDATE audit_event SET hash = $1 WHERE sequence = 2",
                             "UPDATE auth_head SET audit_sequence = 2, audit_hash = $1"}) {
      auto done = sql.Execute(text, {sql::Param::Blob(hash)});
      if (!done) return Fail{done.error()};
    }
    return {};
  }));
  Append("key.disable");
  EXPECT_EQ(Verify().problem, "");
  EXPECT_EQ(Verify().sequence, 3);
  // The old format does not cover the address, so setting one must be found.
  Sql("UPDATE audit_event SET address = '192.0.2.66' WHERE sequence = 2");
  EXPECT_EQ(Verify().problem, "event 2 was changed");
  Sql("UPDATE audit_event SET address = '' WHERE sequence = 2");
  Sql("UPDATE audit_event SET format = 1, address = '' WHERE sequence = 3");
  EXPECT_EQ(Verify().problem, "event 3 was changed");
}

TEST_P(AuditLogTest, ACheckpointFindsAChainThatWasRewritten) {
  MakeKeys();
  auto writer = AuditCheckpointWriter::Open(folder_ + "/checkpoints", folder_ + "/key.pem");
  ASSERT_TRUE(writer.ok()) << writer.error();
  EXPECT_NE(Verify(Checkpoints()).problem, "");  // no file yet
  for (int i = 0; i < 5; ++i) {
    Append("key.update");
    EXPECT_EQ(writer->Write(*store_), "");
  }
  EXPECT_EQ(writer->Write(*store_), "");  // unchanged: no new line
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  EXPECT_EQ(Verify(Checkpoints()).checkpoints, 5);
  // Without checkpoints a rewritten chain looks valid.
  Sql("UPDATE audit_event SET actor = 'user:bob' WHERE sequence = 3");
  RewriteChain();
  EXPECT_EQ(Verify().problem, "");
  EXPECT_THAT(Verify(Checkpoints()).problem, HasSubstr("has another hash than its checkpoint"));
  Sql("UPDATE audit_event SET actor = 'user:ann' WHERE sequence = 3");
  RewriteChain();
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  // The end is cut off and the head moved back.
  Sql("DELETE FROM audit_event WHERE sequence > 4");
  RewriteChain();
  EXPECT_EQ(Verify().problem, "");
  EXPECT_THAT(Verify(Checkpoints()).problem, HasSubstr("events were removed"));
}

TEST_P(AuditLogTest, AWriterContinuesTheFileAfterARestart) {
  MakeKeys();
  for (int i = 0; i < 3; ++i) {
    Append("key.update");
    auto writer = AuditCheckpointWriter::Open(folder_ + "/checkpoints", folder_ + "/key.pem");
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(writer->Write(*store_), "");
  }
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  std::ifstream in(folder_ + "/checkpoints");
  std::string first, second, third;
  std::getline(in, first);
  std::getline(in, second);
  std::getline(in, third);
  in.close();
  std::ofstream(folder_ + "/checkpoints") << first << "\n" << third << "\n";
  EXPECT_THAT(Verify(Checkpoints()).problem, HasSubstr("does not follow"));
  second[30] = second[30] == '1' ? '2' : '1';
  std::ofstream(folder_ + "/checkpoints") << first << "\n" << second << "\n" << third << "\n";
  EXPECT_NE(Verify(Checkpoints()).problem, "");
}

INSTANTIATE_TEST_SUITE_P(Databases, AuditLogTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

}  // namespace
}  // namespace tollgate::auth
