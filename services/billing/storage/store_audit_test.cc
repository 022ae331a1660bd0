// Every command that changes something writes an audit entry in the same transaction: to the audit
// log, or on a distributed ledger to the outbox.
#include "services/billing/storage/store.h"

#include "common/audit/log.h"
#include "services/billing/storage/audit_outbox.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class StoreAuditTest : public LedgerDatabaseTest {
 protected:
  std::vector<audit::Record> Entries() {
    if (connection_->distributed()) {
      const auto moved = MoveAuditEntries(*connection_);
      EXPECT_TRUE(moved.ok()) << moved.error().message;
    }
    auto page = audit::ReadPage(*connection_, audit::kEntries, 0, 1000);
    EXPECT_TRUE(page.ok()) << page.error().message;
    if (!page.ok()) return {};
    audit::Verifier chain;
    for (const audit::Record& record : page->records) EXPECT_TRUE(chain.Add(record));
    EXPECT_TRUE(chain.Finish(page->head.sequence, page->head.hash));
    return page->records;
  }
  // Texts of the entries after the first count ones: "action subject: detail".
  std::vector<std::string> After(size_t count) {
    std::vector<std::string> texts;
    for (const audit::Record& entry : Entries()) {
      if (static_cast<size_t>(entry.sequence) <= count) continue;
      texts.push_back(entry.action + " " + entry.subject + ": " + entry.detail);
    }
    return texts;
  }
  static Correct MakeCorrect(const std::string& id, CommandKind kind, int64_t usd) {
    Correct correct;
    correct.workspace = "ws";
    correct.command_id = id;
    correct.kind = kind;
    correct.amount_nano_usd = usd * kNanoPerUsd;
    correct.actor = "user:ann";
    correct.reason = "why";
    correct.address = "192.0.2.7";
    return correct;
  }
};

TEST_P(StoreAuditTest, AnEntrySaysWhoDidWhatWithWhichCallAndFromWhere) {
  AddCredit credit;
  credit.workspace = "ws";
  credit.command_id = "c1";
  credit.amount_nano_usd = 12 * kNanoPerUsd + kNanoPerUsd / 2;
  credit.actor = "user:ann";
  credit.reason = "invoice 7";
  credit.address = "192.0.2.7";
  Run({OpenWallet{"ws", "service:auth", "", "w1"}, credit});
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].actor, "service:auth");
  EXPECT_EQ(entries[0].action, "wallet.open");
  EXPECT_EQ(entries[0].request_id, "w1");
  EXPECT_EQ(entries[1].at_us, kNowUs);
  EXPECT_EQ(entries[1].actor, "user:ann");
  EXPECT_EQ(entries[1].address, "192.0.2.7");
  EXPECT_EQ(entries[1].action, "credit.add");
  EXPECT_EQ(entries[1].workspace_id, "ws");
  EXPECT_EQ(entries[1].subject, "c1");
  EXPECT_EQ(entries[1].request_id, "c1");
  EXPECT_EQ(entries[1].detail, "12.5 USD: invoice 7");
}

TEST_P(StoreAuditTest, ACommandHasOneEntryHoweverOftenItIsRepeatedAndNoneWhenItIsRefused) {
  SetCap cap;
  cap.workspace = "ws";
  cap.command_id = "cap1";
  cap.cap_nano_usd = 5 * kNanoPerUsd;
  cap.actor = "user:ann";
  Run({OpenWallet{"ws"}, OpenWallet{"ws"}, cap, cap});
  Run({OpenWallet{"ws"}, cap});
  EXPECT_EQ(After(0), (std::vector<std::string>{"wallet.open ws: ", "cap.update ws: 5 USD"}));
  SetCap other = cap;
  other.cap_nano_usd = 6 * kNanoPerUsd;
  SetCap elsewhere = cap;
  elsewhere.workspace = "other";
  elsewhere.open_only = true;
  const Applied applied = Run({other, elsewhere, MakeCorrect("r", CommandKind::kRefund, 5)});
  for (const Reply& reply : applied.replies) EXPECT_FALSE(reply.ok);
  EXPECT_EQ(Entries().size(), 2U);
}

TEST_P(StoreAuditTest, EveryKindOfCommand) {
  policy_.second_person_above_nano_usd = 100 * kNanoPerUsd;
  const Id id = TestId(1, kNowUs), other = TestId(2, kNowUs);
  Run({OpenWallet{"ws"}, MakeSettle(id, 100, 5), MakeSettle(other, 100, 5)});
  AddCredit grant;
  grant.workspace = "ws";
  grant.command_id = "g1";
  grant.amount_nano_usd = 1000 * kNanoPerUsd;
  grant.granted = true;
  grant.actor = "user:ann";
  SetCap none;
  none.workspace = "ws";
  none.command_id = "cap2";
  none.actor = "user:ann";
  const auto decide = [](const std::string& command, bool approve) {
    Decide made;
    made.workspace = "ws";
    made.command_id = command;
    made.approve = approve;
    made.actor = "user:bob";
    made.reason = "looked";
    made.call_id = "d-" + command;
    return made;
  };
  Run({grant, none, MakeCorrect("a1", CommandKind::kCreditAdjustment, 7),
       MakeCorrect("a2", CommandKind::kCreditAdjustment, 101),
       MakeCorrect("a3", CommandKind::kCreditAdjustment, 102), decide("a2", true),
       decide("a3", false), MakeCorrect("f", CommandKind::kFreeze, 0),
       MakeCorrect("u", CommandKind::kUnfreeze, 0), MakeAuthorize(id, 100, 50),
       ResolveDeadLetter{id, "ws", 1, DeadLetterState::kRetried, "user:ann", "restored", "", "z1"},
       ResolveDeadLetter{other, "ws", 1, DeadLetterState::kWrittenOff, "user:ann", "test"}});
  EXPECT_EQ(After(1), (std::vector<std::string>{
                          "credit.grant g1: 1000 USD: ", "cap.update ws: none",
                          "adjustment.create a1: credit_adjustment of 7 USD: why",
                          "adjustment.create a2: credit_adjustment of 101 USD, waits for a second "
                          "person: why",
                          "adjustment.create a3: credit_adjustment of 102 USD, waits for a second "
                          "person: why",
                          "adjustment.approve a2: looked", "adjustment.reject a3: looked",
                          "workspace.freeze f: why", "workspace.unfreeze u: why",
                          "dead_letter.retry " + id.ToHex() + ".1: restored",
                          "dead_letter.write_off " + other.ToHex() + ".1: test"}));
  EXPECT_EQ(Entries()[6].actor, "user:bob");
  EXPECT_EQ(Entries()[6].request_id, "d-a2");
  EXPECT_EQ(Entries()[10].request_id, "z1");
  // The newest entry of the workspace is dated in the future.
  Run({MakeCorrect("a4", CommandKind::kCreditAdjustment, 1)}, kNowUs + 60'000'000);
  Run({RepairClock{"ws", "rc", "user:ann", "clock was wrong", "192.0.2.7"}}, kNowUs);
  EXPECT_EQ(Entries().back().action, "clock.repair");
  EXPECT_EQ(Entries().back().detail, "60000000 us: clock was wrong");
  ExpectVerified();
}

TEST_P(StoreAuditTest, RequestsOfTheHotPathHaveNone) {
  Run({MakeAddCredit("c", 1000)});
  const size_t before = Entries().size();
  Run({MakeAuthorize(TestId(1, kNowUs), 100, 50), MakeSettle(TestId(1, kNowUs), 100, 5)});
  EXPECT_EQ(Entries().size(), before);
}

INSTANTIATE_TEST_SUITE_P(Databases, StoreAuditTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
