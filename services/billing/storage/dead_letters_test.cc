#include "services/billing/storage/dead_letters.h"

#include "services/billing/domain/dead_letter.h"
#include "services/billing/domain/testing/lease_world.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class DeadLettersTest : public LedgerDatabaseTest {
 protected:
  std::vector<DeadLetter> List(DeadLetterQuery query = {}) {
    auto letters = ReadDeadLetters(*database_, query);
    EXPECT_TRUE(letters.ok());
    return letters.ok() ? std::move(*letters) : std::vector<DeadLetter>();
  }
  int64_t Open() { return *CountOpenDeadLetters(*database_); }
};

TEST_P(DeadLettersTest, OneRowForEachIdAndBodyWithinABound) {
  const Id id = TestId(1, kNowUs);
  Run({MakeAddCredit("c", 1000)});
  EXPECT_EQ(Run({MakeSettle(id, 100, 5), MakeSettle(id, 100, 5)}).dead_letters.size(), 1u);
  EXPECT_TRUE(Run({MakeSettle(id, 100, 5)}).dead_letters.empty()) << "the same settle again";
  EXPECT_EQ(Run({MakeSettle(id, 100, 6)}).dead_letters.size(), 1u) << "another body";
  ASSERT_EQ(List().size(), 2u);
  EXPECT_EQ(List()[0].number, 2);
  EXPECT_EQ(List()[1].workspace, "ws");
  EXPECT_EQ(List()[1].reason, Deny::kInvalid);
  EXPECT_EQ(List()[1].at_us, kNowUs);
  for (int i = 7; i < 100; ++i) Run({MakeSettle(id, 100, i)});
  EXPECT_EQ(Open(), kMaxDeadLettersPerId);
  ExpectVerified();
}

TEST_P(DeadLettersTest, ResolvedInTheTransactionOfTheSettle) {
  const Id id = TestId(1, kNowUs), other = TestId(2, kNowUs);
  Run({MakeAddCredit("c", 1000), MakeSettle(id, 100, 5), MakeSettle(other, 100, 5)});
  ASSERT_EQ(Open(), 2);
  Run({MakeAuthorize(id, 100, 50)});
  const Applied applied =
      Run({ResolveDeadLetter{id, "ws", 1, DeadLetterState::kRetried, "ann", "hold restored"},
           ResolveDeadLetter{other, "ws", 1, DeadLetterState::kWrittenOff, "bob", "test traffic"},
           ResolveDeadLetter{other, "ws", 2, DeadLetterState::kWrittenOff, "bob", "none such"},
           ResolveDeadLetter{other, "elsewhere", 1, DeadLetterState::kWrittenOff, "bob", "no"}});
  EXPECT_EQ(applied.replies[0].charged_nano_usd, 110);
  EXPECT_TRUE(applied.replies[1].ok);
  EXPECT_EQ(applied.replies[2].denied_by, Deny::kUnknownDeadLetter);
  EXPECT_EQ(applied.replies[3].denied_by, Deny::kUnknownDeadLetter);
  EXPECT_EQ(Open(), 0);
  EXPECT_TRUE(List().empty());
  DeadLetterQuery all;
  all.resolved = true;
  const auto letters = List(all);
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[0].actor, "bob");
  EXPECT_EQ(letters[0].state, DeadLetterState::kWrittenOff);
  EXPECT_EQ(letters[1].note, "hold restored");
  EXPECT_EQ(letters[1].resolved_us, kNowUs);
  EXPECT_TRUE(Run({MakeSettle(other, 100, 5)}).dead_letters.empty())
      << "its router does not open a resolved one again";
  ExpectVerified();
}

// A request that a router admitted from a lease, whose workspace a restore has lost.
TEST_P(DeadLettersTest, ARetryOpensTheHoldOfAnAdmission) {
  const int64_t begun_us = kNowUs - kHourUs;
  Settle settle = MakeSettle(TestId(1, begun_us), 100, 5);
  settle.admission = MakeAdmission(settle.request_id, 100, 400, UtcMonth(begun_us));
  Run({settle});
  Run({MakeAddCredit("c", 1000)});
  const auto letters = List();
  ASSERT_EQ(letters.size(), 1u);
  const auto kept = DecodeSettle(letters[0].operation, letters[0].id, "ws");
  ASSERT_TRUE(kept && kept->admission);
  ResolveDeadLetter retry{settle.request_id, "ws", 1, DeadLetterState::kRetried, "ann", "restored"};
  retry.letter_admission = kept->admission;
  EXPECT_EQ(Run({retry}).replies[0].charged_nano_usd, 110);
  EXPECT_EQ(Open(), 0);
  ExpectVerified();
}

TEST_P(DeadLettersTest, OneThatCameTooLateBecomesOneAdjustment) {
  const int64_t begun_us = kNowUs - 8 * 24 * kHourUs;
  Settle settle = MakeSettle(TestId(1, begun_us), 100, 5);
  settle.admission = MakeAdmission(settle.request_id, 100, 400, UtcMonth(begun_us));
  Settle other = settle;
  other.usage.completion = 6;
  Run({MakeAddCredit("c", 1000), settle, other});
  ASSERT_EQ(Open(), 2);
  ResolveDeadLetter retry{settle.request_id, "ws", 1, DeadLetterState::kRetried, "ann", "late"};
  retry.proved = true;
  retry.letter_admission = settle.admission;
  ResolveDeadLetter second = retry;
  second.number = 2;
  const Applied applied = Run({retry, second});
  EXPECT_TRUE(applied.replies[0].ok);
  EXPECT_EQ(applied.replies[1].denied_by, Deny::kIdReuse) << "the other letter of the request";
  EXPECT_EQ(Run({second}).replies[0].denied_by, Deny::kIdReuse) << "in a later batch, too";
  EXPECT_TRUE(Run({retry}).entries.empty()) << "a repetition";
  EXPECT_EQ(Open(), 1);
  const Applied approved =
      Run({Decide{"ws", AdjustmentIdOf(settle.request_id), true, "bob", "checked"}});
  EXPECT_EQ(approved.entries.at(0).amount_nano_usd, 110);
  ExpectVerified();
}

TEST_P(DeadLettersTest, ListsPageByPageAndByWorkspace) {
  for (int i = 0; i < 25; ++i) {
    Run({MakeSettle(TestId(i, kNowUs), 100, 5, Outcome::kCompleted, i % 5 == 0 ? "five" : "ws"),
         MakeSettle(TestId(i, kNowUs), 100, 6, Outcome::kCompleted, i % 5 == 0 ? "five" : "ws")},
        kNowUs + i / 10);
  }
  std::vector<std::string> seen;
  DeadLetterQuery query;
  query.limit = 7;
  for (;;) {
    const auto page = List(query);
    if (page.empty()) break;
    for (const DeadLetter& letter : page) seen.push_back(DeadLetterKey(letter.id, letter.number));
    query.before_us = page.back().at_us;
    query.before_id = page.back().id;
    query.before_number = page.back().number;
  }
  EXPECT_EQ(seen.size(), 50u);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  DeadLetterQuery five;
  five.workspace = "five";
  EXPECT_EQ(List(five).size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Both, DeadLettersTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? std::string("sqlite")
                                                                      : std::string("postgres");
                         });

}  // namespace
}  // namespace tollgate::billing
