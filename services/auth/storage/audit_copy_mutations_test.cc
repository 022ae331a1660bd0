// Applies random changes to a log, to its copies of another service's entries, and to that
// service's own log, as someone with access to the database could. The verification must find every
// one. TOLLGATE_AUDIT_MUTATIONS sets how many.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "services/auth/testing/audit_world.h"

namespace tollgate::auth {
namespace {

constexpr int kEvents = 40;   // in the log, about half of them copies
constexpr int kEntries = 20;  // in billing's log

struct Mutation {
  std::string kind;
  bool of_billing = false;  // false: in auth's log
  std::string change;       // SQL
  bool rewrite = false;     // recompute the whole chain and its head
  bool checkpoints = true;  // false: only the comparison of both logs can find it
};

class AuditMutationsTest : public AuditWorld {
 protected:
  int Pick(int from, int to) {
    return static_cast<int>(from + random_() % static_cast<uint32_t>(to - from + 1));
  }
  std::string Text(int from, int to) { return std::to_string(Pick(from, to)); }

  // Fills a log with own events, copies and checkpoints. The newest event has a checkpoint, because
  // cutting off younger events would go unnoticed.
  void Fill() {
    MakeKeys();
    auto writer = AuditCheckpointWriter::Open(folder_ + "/checkpoints", folder_ + "/key.pem");
    ASSERT_TRUE(writer.ok());
    for (int entry = 0, event = 1; event < kEvents;) {
      if (entry < kEntries && Pick(0, 1) == 0) {
        AppendToBilling("cap.update" + std::to_string(++entry));
        ASSERT_EQ(CopyAll(), "");
      } else if (event - entry < kEvents - kEntries) {
        Append("key.update" + std::to_string(event));
      } else {
        continue;
      }
      ++event;
      if (Pick(0, 2) == 0) ASSERT_EQ(writer->Write(*store_), "");
    }
    ASSERT_EQ(writer->Write(*store_), "");
    ASSERT_EQ(Verify(Checkpoints()).problem(), "");
    Sql("CREATE TABLE saved_event AS SELECT * FROM audit_event;"
        "CREATE TABLE saved_head AS SELECT * FROM auth_head");
    BillingSql(
        "CREATE TABLE saved_entry AS SELECT * FROM audit_entry;"
        "CREATE TABLE saved_head AS SELECT * FROM audit_head");
  }
  void Restore(bool of_billing) {
    if (of_billing) {
      BillingSql(
          "DELETE FROM audit_entry; INSERT INTO audit_entry SELECT * FROM saved_entry;"
          "DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM saved_head");
    } else {
      Sql("DELETE FROM audit_event; INSERT INTO audit_event SELECT * FROM saved_event;"
          "DELETE FROM auth_head; INSERT INTO auth_head SELECT * FROM saved_head");
    }
  }

  // A random mutation: text or time changed, row deleted, end cut off, rows swapped, row inserted
  // or head moved back, with or without recomputing the chain.
  Mutation Any() {
    Mutation made;
    made.of_billing = Pick(0, 1) == 0;
    made.rewrite = Pick(0, 1) == 0;
    const std::string table = made.of_billing ? "audit_entry" : "audit_event";
    const int rows = made.of_billing ? kEntries : kEvents;
    const std::string n = Text(1, rows);
    const std::string where = " WHERE sequence = " + n;
    // Billing has no checkpoints; auth's copy anchors its log.
    made.checkpoints = !made.of_billing;
    static constexpr std::array<const char*, 7> kTexts = {
        "actor", "action", "workspace_id", "subject", "detail", "address", "request_id"};
    switch (Pick(0, 6)) {
      case 0: {
        const std::string text = kTexts[Pick(0, static_cast<int>(kTexts.size()) - 1)];
        made.kind = "text changed";
        made.change = "UPDATE " + table + " SET " + text + " = " + text + " || 'x'" + where;
        break;
      }
      case 1:
        made.kind = "time changed";
        made.change = "UPDATE " + table + " SET at_us = at_us - 1" + where;
        break;
      case 2:
        made.kind = "row deleted";
        made.change = "DELETE FROM " + table + where;
        break;
      case 3:
        made.kind = "end cut off";
        made.change = "DELETE FROM " + table + " WHERE sequence >= " + n;
        break;
      case 4: {
        const std::string other = std::to_string(1 + (std::stoi(n) + Pick(0, rows - 2)) % rows);
        made.kind = "rows swapped";
        made.change = "UPDATE " + table + " SET sequence = 100000" + where + "; UPDATE " + table +
                      " SET sequence = " + n + " WHERE sequence = " + other + "; UPDATE " + table +
                      " SET sequence = " + other + " WHERE sequence = 100000";
        break;
      }
      case 5:
        // Does not insert at the end: an event after the last checkpoint looks like any new one.
        made.kind = "row inserted";
        made.change = Inserted(table, made.of_billing ? n : Text(1, rows - 1), rows);
        break;
      default:
        if (Pick(0, 1) == 0 || made.of_billing) {
          made.kind = "head moved back";
          made.rewrite = false;
          made.change = made.of_billing
                            ? "UPDATE audit_head SET audit_sequence = audit_sequence - 1"
                            : "UPDATE auth_head SET audit_sequence = audit_sequence - 1";
        } else {
          // Without checkpoints only the comparison with the source can find it.
          made.kind = "copy changed, no checkpoints";
          made.rewrite = true;
          made.checkpoints = false;
          made.change = "UPDATE audit_event SET detail = detail || 'x' WHERE source_sequence = " +
                        Text(1, kEntries);
        }
    }
    return made;
  }
  // Inserts a copy of row n before it; later rows get higher numbers.
  std::string Inserted(const std::string& table, const std::string& n, int rows) {
    const std::string up = std::to_string(2 * rows);
    return "UPDATE " + table + " SET sequence = sequence + " + up + " WHERE sequence >= " + n +
           "; INSERT INTO " + table + " SELECT " + n +
           ", at_us, actor, action, workspace_id, subject, detail, hash, address, format, "
           "request_id, CASE WHEN source = '' THEN '' ELSE 'mint' END, source_sequence, "
           "source_hash FROM " +
           table + " WHERE sequence = " + n + " + " + up + "; UPDATE " + table +
           " SET sequence = sequence - " + up + " + 1 WHERE sequence > " + up;
  }

  std::mt19937 random_;
};

TEST_P(AuditMutationsTest, EveryMutatedLogIsDetected) {
  const char* size = std::getenv("TOLLGATE_AUDIT_MUTATIONS");
  const int mutations = size != nullptr ? std::atoi(size) : 60;
  const char* given = std::getenv("TOLLGATE_AUDIT_SEED");
  const auto seed = static_cast<uint32_t>(given != nullptr ? std::atoi(given) : 1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  Fill();
  if (HasFatalFailure()) return;
  int undetected = 0;
  std::map<std::string, int> kinds;
  for (int i = 0; i < mutations; ++i) {
    const Mutation mutation = Any();
    const std::string name = std::string(mutation.of_billing ? "source: " : "log: ") +
                             mutation.kind + (mutation.rewrite ? ", chain made again" : "");
    ++kinds[name];
    if (mutation.of_billing) {
      BillingSql(mutation.change);
      if (mutation.rewrite) RewriteBillingChain();
    } else {
      Sql(mutation.change);
      if (mutation.rewrite) RewriteChain();
    }
    const AuditCheckpoints checkpoints = mutation.checkpoints ? Checkpoints() : AuditCheckpoints();
    if (Verify(checkpoints).ok()) {
      ++undetected;
      ADD_FAILURE() << "not detected: " << name << ": " << mutation.change;
    }
    Restore(mutation.of_billing);
  }
  EXPECT_EQ(Verify(Checkpoints()).problem(), "");
  std::printf("audit proof: %s: %d mutated logs, %d not detected, seed %u\n",
              GetParam() == DatabaseKind::kSqlite ? "SQLite" : "PostgreSQL", mutations, undetected,
              seed);
  for (const auto& [kind, count] : kinds) {
    std::printf("audit kind: %s: %d\n", kind.c_str(), count);
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, AuditMutationsTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

}  // namespace
}  // namespace tollgate::auth
