#include "services/billing/storage/credit_by_hand.h"

#include <atomic>
#include <thread>

#include "common/base/time_units.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class CreditByHandTest : public LedgerDatabaseTest {
 protected:
  bool Count(const std::string& account, const std::string& workspace, const std::string& id,
             int64_t amount, int64_t now_us = kNowUs) {
    bool alone = false;
    auto done =
        database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> sql::SqlResult<void> {
          auto counted = CountCreditByHand(db, {account, workspace, id, amount}, 100, now_us);
          if (!counted.ok()) return Fail{counted.error()};
          alone = *counted;
          return {};
        });
    EXPECT_TRUE(done.ok()) << done.error().message;
    return alone;
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, CreditByHandTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres));

TEST_P(CreditByHandTest, OneAccountHasOneLimitInAllWorkspaces) {
  EXPECT_FALSE(Count("anna", "a", "1", 101));
  EXPECT_TRUE(Count("anna", "a", "1", 60)) << "what was refused did not count";
  EXPECT_FALSE(Count("anna", "b", "1", 41));
  EXPECT_TRUE(Count("anna", "b", "1", 40));
  EXPECT_FALSE(Count("anna", "a", "2", 1));
  EXPECT_TRUE(Count("bert", "a", "2", 100));
}

TEST_P(CreditByHandTest, ARepetitionCountsOnceAndNeverLess) {
  EXPECT_TRUE(Count("anna", "a", "1", 60));
  EXPECT_TRUE(Count("anna", "a", "1", 60));
  EXPECT_TRUE(Count("anna", "a", "1", 1));
  EXPECT_FALSE(Count("anna", "a", "2", 41));
  EXPECT_TRUE(Count("anna", "a", "1", 80));
  EXPECT_FALSE(Count("anna", "a", "2", 21));
  EXPECT_TRUE(Count("anna", "a", "2", 20));
}

TEST_P(CreditByHandTest, ADayLaterItCountsNoMore) {
  EXPECT_TRUE(Count("anna", "a", "1", 60));
  EXPECT_TRUE(Count("anna", "a", "2", 40, kNowUs + 1));
  EXPECT_FALSE(Count("anna", "a", "3", 60, kNowUs + kDayUs - 1));
  EXPECT_TRUE(Count("anna", "a", "3", 60, kNowUs + kDayUs));
  EXPECT_FALSE(Count("anna", "a", "4", 1, kNowUs + kDayUs));
}

TEST_P(CreditByHandTest, CallsAtTheSameTimeDoNotPassTheLimitTogether) {
  std::atomic<int> counted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 3; ++k) {
        counted += Count("anna", std::to_string(i), std::to_string(k), 30) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted, 3);
}

}  // namespace
}  // namespace tollgate::billing
