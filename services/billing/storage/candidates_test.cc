// Holds with several models (decision 66) on both databases: what is stored, and what the
// verification finds after tampering.
#include "services/billing/storage/candidates.h"

#include <gtest/gtest.h>

#include "common/base/ledger_shard.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

TEST(Candidates, AreReadAsTheyWereWritten) {
  EXPECT_EQ(EncodeCandidates({}), "");
  EXPECT_TRUE(DecodeCandidates("").empty());
  const std::vector<Candidate> two = {{"a/\"b\"\\", {1, 2}, 3, 4, 5},
                                      {"ü", {100'000'000'000, 0}, INT64_MAX, 0, 6}};
  EXPECT_EQ(DecodeCandidates(EncodeCandidates(two)), two);
  EXPECT_NE(DecodeCandidates("[{}]"), DecodeCandidates(EncodeCandidates({{"", {}, 0, 0, 0}})));
  EXPECT_TRUE(DecodeCandidates("no JSON").empty());
}

class CandidatesTest : public LedgerDatabaseTest {
 protected:
  Hold Read(const Id& id) {
    Hold hold;
    const std::string bytes = id.ToBytes();
    auto read = connection_->Query(
        "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE shard = $1 AND id = $2",
        {LedgerShard("ws"), sql::Param::Blob(bytes)},
        [&](const sql::Row& row) { hold = ReadHold(row); });
    EXPECT_TRUE(read.ok());
    return hold;
  }
  std::string Violations() {
    auto report = VerifyLedger(*database_);
    EXPECT_TRUE(report.ok());
    std::string all;
    for (const std::string& violation : report->violations) all += violation + '\n';
    return all;
  }
};

TEST_P(CandidatesTest, TheModelOfTheLastTryIsStoredAndChargedAndAChangeIsFound) {
  Authorize first = MakeAuthorize(TestId(1, kNowUs), 100, 50);
  first.fallbacks = {{"other", {5000, 9000}, 4, 100, 50}};
  Authorize second = first;
  second.attempt = second.candidate = 1;
  Settle settle = MakeSettle(first.request_id, 100, 20);
  settle.attempt = 1;
  Authorize open = MakeAuthorize(TestId(2, kNowUs), 100, 50);
  open.fallbacks = first.fallbacks;
  // One operation per batch, so that each batch reads what the one before has stored.
  Run({MakeAddCredit("c", 100'000), first, open});
  Run({second}, kNowUs + 1);
  EXPECT_EQ(Run({first}, kNowUs + 2).replies[0].denied_by, Deny::kClosed);
  EXPECT_EQ(Run({second}, kNowUs + 2).replies[0].authorized_nano_usd, 100 * 5 + 50 * 9);
  const Applied settled = Run({settle}, kNowUs + 3);
  EXPECT_EQ(settled.replies[0].charged_nano_usd, 100 * 5 + 20 * 9);
  const Hold hold = Read(first.request_id);
  EXPECT_EQ(hold.model, "other");
  EXPECT_EQ(hold.price_version, 4);
  EXPECT_EQ(hold.candidate, 1);
  ASSERT_EQ(hold.candidates.size(), 2u);
  EXPECT_EQ(hold.candidates[0].model, "model");
  ExpectVerified();

  const std::string changed = EncodeCandidates({hold.candidates[0], {"other", {5, 9}, 4, 100, 50}});
  const struct {
    std::string change;
    const char* found;
  } rows[] = {
      {"candidate = 0", "a model and price that match none"},
      {"candidate = 2", "a model and price that match none"},
      {"candidate = 0, model = 'model', input_pico = 1000, output_pico = 2000, price_version = 3",
       "flags or answering model are not those"},
      {"model = 'model'", "a model and price that match none"},
      {"output_pico = output_pico - 1", "a model and price that match none"},
      {"candidates = '" + changed + "', input_pico = 5, output_pico = 9",
       "candidates or request id"},
      {"candidates = '', candidate = 0", "candidates or request id"},
  };
  for (const auto& row : rows) {
    const std::string bytes = first.request_id.ToBytes();
    auto done = connection_->Execute("UPDATE hold SET " + row.change + " WHERE id = $1",
                                     {sql::Param::Blob(bytes)});
    ASSERT_TRUE(done.ok()) << row.change;
    const std::string violations = Violations();
    EXPECT_NE(violations.find(row.found), std::string::npos) << row.change << "\n" << violations;
    done = connection_->Execute(
        "UPDATE hold SET candidates = $1, candidate = $2, model = $3, input_pico = $4,"
        " output_pico = $5, price_version = $6 WHERE id = $7",
        {EncodeCandidates(hold.candidates), hold.candidate, hold.model, hold.rates.input_pico_usd,
         hold.rates.output_pico_usd, hold.price_version, sql::Param::Blob(bytes)});
    ASSERT_TRUE(done.ok());
  }
  ExpectVerified();
}

INSTANTIATE_TEST_SUITE_P(Databases, CandidatesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
