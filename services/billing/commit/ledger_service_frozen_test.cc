// Two replicas of the ledger on one PostgreSQL. One is stopped (SIGSTOP) while it has locked a
// wallet's row: the other serves that workspace again within two seconds, and the ledger stays
// consistent when the first one resumes (docs/design/failures.md). TOLLGATE_FROZEN_ROUNDS sets the
// number of rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "services/billing/commit/testing/ledger_service_world.h"
#include "tests/support/process.h"

namespace tollgate::billing {
namespace {

constexpr const char* kUrlVariable = "TOLLGATE_TEST_LEDGER_URL";

LedgerService::Options OptionsFor(const std::string& url) {
  LedgerService::Options options;
  options.sql.url = url;
  return options;
}

Id NewId(int n) { return TestId(n, SystemClock::Get().WallUs()); }

// Not a test: the process that is stopped. It opens and settles holds until it is killed.
TEST(FrozenReplicaProcess, DISABLED_Runs) {
  const char* url = std::getenv(kUrlVariable);
  ASSERT_NE(url, nullptr);
  LedgerService ledger(OptionsFor(url), SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  for (int i = 1;; ++i) {
    const Id id = NewId(1'000'000'000 + i);
    (void)Do(ledger, {MakeAuthorize(id, 100, 50)});
    (void)Do(ledger, {MakeSettle(id, 100, 50)});
  }
}

class FrozenReplicaTest : public ::testing::Test {
 protected:
  // Whether another session has locked the wallet's row.
  bool RowIsLocked() {
    auto tx = sql::Transaction::Begin(*probe_);
    const auto read =
        probe_->Query("SELECT paid FROM wallet FOR UPDATE NOWAIT", {}, [](const sql::Row&) {});
    return !read.ok() && read.error().kind == sql::ErrorKind::kLocked;
  }
  // Stops the process at a moment when it has locked the row.
  void StopWithTheRow(test::Process& process) {
    for (int attempt = 0; attempt < 2000; ++attempt) {
      process.Signal(SIGSTOP);
      stopped_us_ = MonotonicNowUs();
      if (RowIsLocked()) {
        // A running statement ends first; after that the row must still be locked.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (RowIsLocked()) return;
      }
      process.Signal(SIGCONT);
      std::this_thread::sleep_for(std::chrono::microseconds(500 + 137 * (attempt % 20)));
    }
    FAIL() << "the process was never stopped while it had locked the row";
  }

  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<sql::Connection> probe_;
  int64_t stopped_us_ = 0;
};

TEST_F(FrozenReplicaTest, AnotherReplicaServesTheWorkspaceAgainWithinTwoSeconds) {
  auto* server = testing::TestPostgres::Shared();
  if (!server) {
    ASSERT_FALSE(testing::TestPostgres::Required());
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  const std::string url = server->MakeDatabase("frozen");
  LedgerService ledger(OptionsFor(url), SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE((*Do(ledger, {MakeAddCredit("c", 1'000'000'000)}))[0].ok);
  database_ = std::move(*sql::Database::Open({.url = url}));
  probe_ = std::move(*database_->Connect());

  ASSERT_EQ(setenv(kUrlVariable, url.c_str(), 1), 0);
  test::TempDir folder;
  test::Process replica("replica",
                        {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                         "--gtest_filter=FrozenReplicaProcess.DISABLED_Runs"},
                        folder.path() + "/replica.log");
  ASSERT_TRUE(replica.Start());
  const auto entries = [&] {
    int64_t count = 0;
    (void)probe_->Query("SELECT count(*) FROM entry", {},
                        [&](const sql::Row& row) { count = row.Int(0); });
    return count;
  };
  const int64_t at_first = entries();
  ASSERT_TRUE(Eventually([&] { return entries() > at_first + 50; })) << replica.LogTail();

  const char* variable = std::getenv("TOLLGATE_FROZEN_ROUNDS");
  const int rounds = variable ? std::atoi(variable) : 3;
  std::vector<int64_t> gaps_ms;
  int ids = 0;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(StopWithTheRow(replica));
    while (true) {
      const auto replies = Do(ledger, {MakeAuthorize(NewId(++ids), 1, 1)});
      if (replies.ok() && replies->front().ok) break;
      ASSERT_LT(MonotonicNowUs() - stopped_us_, 60 * kSecondUs) << "still stopped";
    }
    gaps_ms.push_back((MonotonicNowUs() - stopped_us_) / 1000);
    // After it resumes, it finds its transaction lost, retries and continues.
    replica.Signal(SIGCONT);
    const int64_t before = entries();
    ASSERT_TRUE(Eventually([&] { return entries() > before + 20; })) << replica.LogTail();
  }
  replica.Kill();
  std::sort(gaps_ms.begin(), gaps_ms.end());
  std::printf("without success after SIGSTOP: median %ld ms, longest %ld ms of %d\n",
              static_cast<long>(gaps_ms[gaps_ms.size() / 2]), static_cast<long>(gaps_ms.back()),
              rounds);
  // On a busy machine some take longer.
  EXPECT_LT(gaps_ms.front(), 5000);
  ExpectVerified(ledger);
}

}  // namespace
}  // namespace tollgate::billing
