// Tampering that checkpoints reveal and one database cannot: a recomputed chain, deleted entries or
// workspaces, a standby that lost entries.
#include "services/billing/verify/verify_checkpoints.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "services/billing/domain/chain.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/verify/checkpoint_writer.h"

namespace tollgate::billing {
namespace {

class VerifyCheckpointsTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    folder_ = std::filesystem::temp_directory_path() /
              ("tollgate-checkpoints-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    MakeKey("key");
    MakeKey("other");
    Run({MakeAddCredit("c", 100'000), AddTo("second", "c")});
    Checkpoint();
    Run({MakeAddCredit("d", 1'000)});
    Checkpoint();
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    LedgerDatabaseTest::TearDown();
  }
  static AddCredit AddTo(const std::string& workspace, const std::string& id) {
    AddCredit op = MakeAddCredit(id, 500);
    op.workspace = workspace;
    return op;
  }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }
  void MakeKey(const std::string& name) {
    EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    std::FILE* out = std::fopen(File(name + ".pem").c_str(), "w");
    PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    out = std::fopen(File(name + ".pub").c_str(), "w");
    PEM_write_PUBKEY(out, key);
    std::fclose(out);
    EVP_PKEY_free(key);
  }
  // Writes a checkpoint like a restarted process, which continues the file.
  void Checkpoint() {
    CheckpointWriter::Options options;
    options.sql = database_->options();
    options.key_file = File("key.pem");
    options.file = File("checkpoints");
    options.interval_ms = 3'600'000;
    options.payments = payments_;
    const size_t before = Lines().size();
    CheckpointWriter writer(options, SystemClock::Get());
    ASSERT_TRUE(writer.Start().ok());
    // The thread writes the first checkpoint at once.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Lines().size() == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    writer.Stop();
    ASSERT_GT(Lines().size(), before);
  }
  std::vector<std::string> Lines() const {
    std::ifstream in(File("checkpoints"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(line);
    return lines;
  }
  void WriteLines(const std::vector<std::string>& lines) const {
    std::ofstream out(File("checkpoints"), std::ios::trunc);
    for (const std::string& line : lines) out << line << '\n';
  }
  // All violations, of the checkpoints and of the ledger itself, one per line.
  std::string Found(const std::string& key = "key.pub") {
    VerifyReport report;
    auto anchors = Anchors::Read(File("checkpoints"), File(key), report);
    EXPECT_TRUE(anchors.ok());
    if (!anchors.ok()) return anchors.error();
    auto compared = anchors->Compare(*connection_, "", report);
    EXPECT_TRUE(compared.ok());
    std::string all;
    for (const std::string& violation : report.violations) all += violation + '\n';
    return all;
  }
  void ExpectNamed(const std::string& words, const std::string& key = "key.pub") {
    const std::string found = Found(key);
    EXPECT_NE(found.find(words), std::string::npos) << words << "\nfound:\n" << found;
  }
  void Must(const std::string& script) {
    auto done = connection_->ExecuteScript(script);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  bool payments_ = false;
  std::filesystem::path folder_;
};

TEST_P(VerifyCheckpointsTest, AnHonestLedgerMatches) {
  EXPECT_EQ(Found(), "");
  EXPECT_EQ(Lines().size(), 2u);
  Run({MakeAddCredit("later", 1)});
  EXPECT_EQ(Found(), "") << "the ledger may be ahead";
}

// All hashes and balances match again, so the verification of the database alone finds nothing.
TEST_P(VerifyCheckpointsTest, ARewrittenChainIsFound) {
  std::vector<Entry> entries;
  auto read =
      connection_->Query("SELECT " + std::string(kEntryColumns) +
                             " FROM entry WHERE workspace = 'ws' ORDER BY sequence",
                         {}, [&](const sql::Row& row) { entries.push_back(ReadEntry(row)); });
  ASSERT_TRUE(read.ok());
  Must("DELETE FROM entry WHERE workspace = 'ws'");
  std::string head(32, '\0');
  Cells cells(entries.size(), kEntryCount);
  for (Entry& entry : entries) {
    entry.at_us += 1;
    entry.hash = EntryHash(head, entry);
    head = entry.hash;
    cells.Add(entry);
  }
  ASSERT_TRUE(connection_
                  ->ExecuteRows("INSERT INTO entry (" + std::string(kEntryColumns) + ") VALUES",
                                kEntryCount, cells.view())
                  .ok());
  ASSERT_TRUE(connection_
                  ->Execute("UPDATE wallet SET clock_us = clock_us + 1, head = $1 WHERE"
                            " workspace = 'ws'",
                            {sql::Param::Blob(head)})
                  .ok());
  Must("UPDATE command SET at_us = at_us + 1 WHERE workspace = 'ws'");
  ExpectVerified();
  ExpectNamed("workspace ws: the chain was rewritten: checkpoint 1 has entry 1 with another hash");
}

// A standby became the primary without the last commits: its chain is too short at first, then it
// continues.
TEST_P(VerifyCheckpointsTest, AStandbyThatLostEntriesIsFound) {
  Must(
      "DELETE FROM entry WHERE workspace = 'ws' AND sequence = 2;"
      "DELETE FROM command WHERE workspace = 'ws' AND id = 'd';"
      "UPDATE wallet SET paid = 100000, sequence = 1,"
      " head = (SELECT hash FROM entry WHERE entry.shard = wallet.shard AND"
      " entry.workspace = wallet.workspace AND sequence = 1)"
      " WHERE workspace = 'ws'");
  ExpectVerified();
  ExpectNamed("workspace ws: entries were removed: the last one is 1, checkpoint 2 has entry 2");
  Run({MakeAddCredit("e", 1'000), MakeAddCredit("f", 1'000)}, kNowUs + kSecondUs);
  ExpectVerified();
  ExpectNamed("workspace ws: the chain was rewritten: checkpoint 2 has entry 2 with another hash");
  Checkpoint();
  ExpectNamed("workspace ws: the chain was rewritten: checkpoint 2 has entry 2 with another hash");
}

TEST_P(VerifyCheckpointsTest, ADeletedWorkspaceIsFound) {
  for (const char* table : {"wallet", "entry", "command", "cap_month"}) {
    Must("DELETE FROM " + std::string(table) + " WHERE workspace = 'second'");
  }
  ExpectVerified();
  ExpectNamed("workspace second: the workspace was deleted: checkpoint 2 has 1 entries of it");
}

TEST_P(VerifyCheckpointsTest, ChangedCheckpointsAreFound) {
  const std::vector<std::string> lines = Lines();
  ExpectNamed("line 1 of the checkpoints is not signed by this key", "other.pub");

  std::string edited = lines[0];
  edited[edited.find(":1:") + 1] = '2';
  WriteLines({edited, lines[1]});
  ExpectNamed("line 1 of the checkpoints is not signed by this key");

  WriteLines({lines[1]});
  ExpectNamed("checkpoint 2 does not follow checkpoint 0");
  WriteLines({lines[0], lines[0], lines[1]});
  ExpectNamed("checkpoint 1 does not follow checkpoint 1");
  WriteLines({"no checkpoint at all"});
  ExpectNamed("there is no checkpoint in");
  WriteLines({lines[0], lines[1].substr(0, 80), "and more", lines[1]});
  ExpectNamed("line 3 of the checkpoints is not a whole checkpoint");
}

// Otherwise what was booked since the checkpoint before could be cut off until the next start.
TEST_P(VerifyCheckpointsTest, AStopWritesALastCheckpoint) {
  CheckpointWriter::Options options;
  options.sql = database_->options();
  options.sql.deferred_sync = true;
  options.key_file = File("key.pem");
  options.file = File("checkpoints");
  options.interval_ms = 3'600'000;
  CheckpointWriter writer(options, SystemClock::Get());
  ASSERT_TRUE(writer.Start().ok());
  while (Lines().size() < 3) std::this_thread::yield();
  Run({MakeAddCredit("e", 1'000)});
  writer.Stop();
  ASSERT_EQ(Lines().size(), 4u);
  EXPECT_NE(Lines()[3].find(" ws:3:"), std::string::npos) << Lines()[3];
  EXPECT_EQ(Found(), "");
}

TEST_P(VerifyCheckpointsTest, RemovedEventsOfPaymentsAreFound) {
  // The columns that checkpoints read; the tables are those of the payments.
  Must(
      "CREATE TABLE payment_head (shard BIGINT, workspace TEXT, sequence BIGINT, head BYTEA);"
      "CREATE TABLE payment_event (shard BIGINT, workspace TEXT, sequence BIGINT, hash BYTEA);"
      "INSERT INTO payment_event SELECT shard, workspace, sequence, hash FROM entry;"
      "INSERT INTO payment_head SELECT shard, workspace, sequence, head FROM wallet");
  payments_ = true;
  Checkpoint();
  EXPECT_EQ(Found(), "");
  Must(
      "UPDATE payment_event SET hash = (SELECT hash FROM entry WHERE workspace = 'ws' AND"
      " sequence = 1) WHERE sequence = 2");
  ExpectNamed("workspace ws: the chain was rewritten: checkpoint 3 has event of payments 2");
  Must("DELETE FROM payment_event WHERE sequence = 2; DELETE FROM payment_head");
  ExpectNamed("workspace ws: events of payments were removed: the last one is 1, checkpoint 3 has");
  Must("DROP TABLE payment_head; DROP TABLE payment_event");
}

// Who can write to the database can set the head of the log back, too.
TEST_P(VerifyCheckpointsTest, AuditEntriesThatWereCutOffAreFound) {
  Must("UPDATE audit_entry SET hash = (SELECT audit_hash FROM audit_head) WHERE sequence = 2");
  ExpectNamed("billing's audit log: the chain was rewritten: checkpoint 1 has entry 2");
  Must(
      "DELETE FROM audit_entry WHERE sequence > 1;"
      "UPDATE audit_head SET audit_sequence = 1, audit_hash = (SELECT hash FROM audit_entry)");
  ExpectNamed("billing's audit log: entries were removed: the last one is 1, checkpoint 1 has");
  Must("DELETE FROM audit_entry; UPDATE audit_head SET audit_sequence = 0");
  ExpectNamed("billing's audit log: entries were removed: the last one is 0, checkpoint 1 has");
}

// A crash during an append leaves a partial line; the next process continues after it.
TEST_P(VerifyCheckpointsTest, ATornLineIsNoTampering) {
  const std::vector<std::string> lines = Lines();
  WriteLines(lines);
  std::ofstream(File("checkpoints"), std::ios::app) << lines[1].substr(0, 50);
  EXPECT_EQ(Found(), "");
  CheckpointWriter::Options options;
  Run({MakeAddCredit("g", 1'000)});
  Checkpoint();
  EXPECT_EQ(Found(), "");
  const std::vector<std::string> after = Lines();
  ASSERT_EQ(after.size(), 4u);
  EXPECT_TRUE(after[3].starts_with("tollgate-checkpoint-1 3 "));
}

INSTANTIATE_TEST_SUITE_P(Both, VerifyCheckpointsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
