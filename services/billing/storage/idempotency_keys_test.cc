// Idempotency keys and their answers in a real database (decisions 43 and 59).
#include "services/billing/storage/idempotency_keys.h"

#include <gtest/gtest.h>

#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

const std::string kDigest(32, 'k');

class IdempotencyKeysTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (database_) (void)Run({MakeAddCredit("c", 1'000'000)});
  }
  static Authorize Ask(int n, char body = 'b', int64_t now_us = kNowUs) {
    Authorize op = MakeAuthorize(TestId(n, now_us), 100, 100);
    op.idempotency_key_digest = kDigest;
    op.idempotency_body_digest = std::string(32, body);
    return op;
  }
  Deny Try(const Authorize& ask, int64_t now_us = kNowUs) {
    const Applied applied = Run({ask}, now_us);
    return applied.replies.empty() ? Deny::kInvalid : applied.replies.front().denied_by;
  }
  std::string Answer() {
    auto answer = ReadAnswer(*database_, "ws", kDigest);
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? *answer : "error";
  }
  void Store(int request, const std::string& sealed) {
    auto stored = StoreAnswer(*database_, "ws", kDigest, TestId(request, kNowUs), sealed);
    EXPECT_TRUE(stored.ok()) << stored.error().message;
  }
};

TEST_P(IdempotencyKeysTest, TheKeyIsDecidedByWhatIsStored) {
  EXPECT_EQ(Try(Ask(1)), Deny::kNone);
  EXPECT_EQ(Try(Ask(1)), Deny::kNone) << "the same request again";
  EXPECT_EQ(Try(Ask(2)), Deny::kIdempotencyRunning);
  EXPECT_EQ(Try(Ask(2, 'x')), Deny::kIdempotencyBody);
  (void)Run({MakeSettle(TestId(1, kNowUs), 0, 0, Outcome::kFailedBeforeOutput)});
  EXPECT_EQ(Try(Ask(3)), Deny::kNone) << "the first request was free";
  EXPECT_EQ(Try(Ask(4)), Deny::kIdempotencyRunning);
  (void)Run({MakeSettle(TestId(3, kNowUs), 100, 100)});
  EXPECT_EQ(Try(Ask(4)), Deny::kIdempotencyDone);
  // Each workspace has its own keys.
  Authorize other = Ask(5);
  other.workspace = "ws2";
  AddCredit credit = MakeAddCredit("c", 1'000);
  credit.workspace = "ws2";
  (void)Run({credit});
  EXPECT_EQ(Try(other), Deny::kNone);
  ExpectVerified();
}

TEST_P(IdempotencyKeysTest, ALateSettleKnowsThatItsRequestWasReplaced) {
  EXPECT_EQ(Try(Ask(1)), Deny::kNone);
  const int64_t later_us = kNowUs + policy_.hold_ttl_us + 1;
  (void)Run({MakeExpire(TestId(1, kNowUs))}, later_us);
  EXPECT_EQ(Try(Ask(2), later_us), Deny::kNone);
  (void)Run({MakeSettle(TestId(2, kNowUs), 100, 100)}, later_us);
  const Applied late = Run({MakeSettle(TestId(1, kNowUs), 100, 100)}, later_us);
  ASSERT_EQ(late.replies.size(), 1u);
  EXPECT_TRUE(late.replies[0].ok);
  EXPECT_EQ(late.replies[0].charged_nano_usd, 0);
  ExpectVerified();
}

TEST_P(IdempotencyKeysTest, AnAnswerBelongsToTheKeysRequest) {
  EXPECT_EQ(Try(Ask(1)), Deny::kNone);
  EXPECT_EQ(Answer(), "");
  Store(2, "answer of another request");
  EXPECT_EQ(Answer(), "");
  const std::string sealed = std::string("\0\xff", 2) + std::string(kMaxSealedBytes - 2, 'a');
  Store(1, sealed);
  EXPECT_EQ(Answer(), sealed);
  // The request became free (decision 52) and was run again: its answer does not belong to the new
  // request.
  (void)Run({MakeSettle(TestId(1, kNowUs), 100, 100)});
  (void)Run({MakeVoid(TestId(1, kNowUs), true)});
  EXPECT_EQ(Try(Ask(3)), Deny::kNone);
  EXPECT_EQ(Answer(), "");
}

TEST_P(IdempotencyKeysTest, OldKeysAreDeletedInBatches) {
  std::vector<Operation> asks;
  for (int n = 1; n <= 5; ++n) {
    Authorize ask = Ask(n);
    ask.idempotency_key_digest = std::string(32, static_cast<char>('a' + n));
    asks.push_back(ask);
  }
  (void)Run(asks);
  EXPECT_EQ(Try(Ask(6), kNowUs + 1000), Deny::kNone);
  const auto remove = [&](int limit) {
    auto deleted = DeleteIdempotencyKeys(*database_, kNowUs + 1, limit);
    EXPECT_TRUE(deleted.ok()) << deleted.error().message;
    return deleted.ok() ? *deleted : -1;
  };
  EXPECT_EQ(remove(3), 3);
  EXPECT_EQ(remove(3), 2);
  EXPECT_EQ(remove(3), 0);
  EXPECT_EQ(Try(Ask(7), kNowUs + 1000), Deny::kIdempotencyRunning) << "a newer row stays";
}

INSTANTIATE_TEST_SUITE_P(Databases, IdempotencyKeysTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
