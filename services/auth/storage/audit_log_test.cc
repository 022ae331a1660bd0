#include "services/auth/storage/audit_log.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "common/base/crypto.h"
#include "services/auth/storage/audit_checkpoints.h"
#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

using ::testing::HasSubstr;

class AuditLogTest : public AuthWorld {
 protected:
  void Append(const std::string& action) {
    const auto done = store_->database().Transact(
        sql::TxMode::kWrite, [&](sql::Connection& sql) -> sql::SqlResult<void> {
          AuditRecord record;
          record.at_us = clock_.WallUs();
          record.actor = "user:ann";
          record.address = "192.0.2.7";
          record.action = action;
          record.workspace_id = "acme";
          return AppendAudit(sql, std::move(record));
        });
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
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
  // Writes the keys of checkpoints as files.
  void MakeKeys() {
    ASSERT_EQ(std::system(("openssl genpkey -algorithm ed25519 -out " + folder_ +
                           "/key.pem 2>/dev/null && openssl pkey -in " + folder_ +
                           "/key.pem -pubout -out " + folder_ + "/public.pem")
                              .c_str()),
              0);
  }
  AuditCheckpoints Checkpoints() const {
    return {.file = folder_ + "/checkpoints", .key_file = folder_ + "/public.pem"};
  }
  // Makes the chain of what the table has now, as an attacker with the database would.
  void RewriteChain() {
    EXPECT_TRUE(store_->database().Transact(
        sql::TxMode::kWrite, [&](sql::Connection& sql) -> sql::SqlResult<void> {
          std::vector<AuditRecord> records;
          AuditQuery query;
          query.oldest_first = true;
          query.limit = 100'000;
          auto read =
              ReadAuditLog(sql, query, [&](AuditRecord record) { records.push_back(record); });
          if (!read) return read;
          std::string hash = AuditGenesisHash();
          int64_t sequence = 0;
          for (AuditRecord& record : records) {
            const int64_t old = record.sequence;
            record.sequence = ++sequence;
            hash = AuditHash(hash, record);
            auto done =
                sql.Execute("UPDATE audit_event SET sequence = $1, hash = $2 WHERE sequence = $3",
                            {sequence, sql::Param::Blob(hash), old});
            if (!done) return Fail{done.error()};
          }
          auto done = sql.Execute("UPDATE auth_head SET audit_sequence = $1, audit_hash = $2",
                                  {sequence, sql::Param::Blob(hash)});
          if (!done) return Fail{done.error()};
          return {};
        }));
  }
};

TEST_P(AuditLogTest, EventsFromBeforeTheAddressStayProvable) {
  // As an older version has written it.
  AuditRecord old;
  old.sequence = 2;
  old.at_us = 5;
  old.actor = "tester";
  old.action = "key.create";
  old.workspace_id = "acme";
  old.format = 1;
  const std::string hash = AuditHash(Events()[0].hash, old);
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
  // An address cannot be slipped into an event that does not cover it.
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
  EXPECT_EQ(writer->Write(*store_), "");  // nothing new: no line
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  EXPECT_EQ(Verify(Checkpoints()).checkpoints, 5);
  // With the database alone a rewritten chain looks whole.
  Sql("UPDATE audit_event SET actor = 'user:bob' WHERE sequence = 3");
  RewriteChain();
  EXPECT_EQ(Verify().problem, "");
  EXPECT_THAT(Verify(Checkpoints()).problem, HasSubstr("has another hash than its checkpoint"));
  Sql("UPDATE audit_event SET actor = 'user:ann' WHERE sequence = 3");
  RewriteChain();
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  // Truncated, with the head moved back.
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

// The proof: random logs, each changed at random in one of the ways below, all found.
// TOLLGATE_AUDIT_MUTATIONS sets how many.
TEST_P(AuditLogTest, EveryMutatedLogIsDetected) {
  MakeKeys();
  const char* size = std::getenv("TOLLGATE_AUDIT_MUTATIONS");
  const int mutations = size != nullptr ? std::atoi(size) : 60;
  const char* given = std::getenv("TOLLGATE_AUDIT_SEED");
  const auto seed = static_cast<uint32_t>(given != nullptr ? std::atoi(given) : 1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&random](int from, int to) {
    return static_cast<int>(from + random() % static_cast<uint32_t>(to - from + 1));
  };
  auto writer = AuditCheckpointWriter::Open(folder_ + "/checkpoints", folder_ + "/key.pem");
  ASSERT_TRUE(writer.ok());
  constexpr int kEvents = 30;
  while (static_cast<int>(Events().size()) < kEvents) {
    Append("key.update" + std::to_string(Events().size()));
    if (pick(0, 2) == 0) EXPECT_EQ(writer->Write(*store_), "");
  }
  // The newest event is anchored: what is younger than the last checkpoint can be cut off unseen.
  EXPECT_EQ(writer->Write(*store_), "");
  ASSERT_EQ(Verify(Checkpoints()).problem, "");
  Sql("CREATE TABLE saved_event AS SELECT * FROM audit_event");
  Sql("CREATE TABLE saved_head AS SELECT * FROM auth_head");
  const auto restore = [&] {
    Sql("DELETE FROM audit_event; INSERT INTO audit_event SELECT * FROM saved_event;"
        "DELETE FROM auth_head; INSERT INTO auth_head SELECT * FROM saved_head");
  };
  int undetected = 0;
  for (int i = 0; i < mutations; ++i) {
    const std::string n = std::to_string(pick(1, kEvents));
    const std::string other = std::to_string(pick(1, kEvents));
    const int kind = pick(0, 9);
    const bool rewrite = kind >= 6;
    std::string change;
    static constexpr const char* kTexts[] = {"actor",   "action", "workspace_id",
                                             "subject", "detail", "address"};
    const std::string text = kTexts[pick(0, 5)];
    switch (kind) {
      case 0:
      case 6:
        change = "UPDATE audit_event SET " + text + " = " + text + " || 'x' WHERE sequence = " + n;
        break;
      case 1:
      case 7:
        change = "UPDATE audit_event SET at_us = at_us + 1 WHERE sequence = " + n;
        break;
      case 2:
      case 8:
        change = "DELETE FROM audit_event WHERE sequence = " + n;
        break;
      case 3:
      case 9:
        change = "DELETE FROM audit_event WHERE sequence >= " + n;
        break;
      case 4: {
        if (n == other) continue;
        change = "UPDATE audit_event SET sequence = 100000 WHERE sequence = " + n +
                 "; UPDATE audit_event SET sequence = " + n + " WHERE sequence = " + other +
                 "; UPDATE audit_event SET sequence = " + other + " WHERE sequence = 100000";
        break;
      }
      default:
        change = "UPDATE auth_head SET audit_sequence = audit_sequence - 1";
    }
    Sql(change);
    // By an attacker who makes the whole chain and its head again.
    if (rewrite) RewriteChain();
    if (Verify(Checkpoints()).problem.empty()) {
      ++undetected;
      ADD_FAILURE() << "not detected: " << change << (rewrite ? ", chain rewritten" : "");
    }
    restore();
  }
  EXPECT_EQ(Verify(Checkpoints()).problem, "");
  std::printf("audit proof: %d mutated logs, %d not detected, seed %u\n", mutations, undetected,
              seed);
}

INSTANTIATE_TEST_SUITE_P(Databases, AuditLogTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

}  // namespace
}  // namespace tollgate::auth
