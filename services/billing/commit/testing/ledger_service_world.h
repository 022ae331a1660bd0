// A running ledger on a real database, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "services/billing/commit/ledger_service.h"
#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "services/billing/verify/verify.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

inline Result<std::vector<Reply>> Do(LedgerService& ledger, std::vector<Operation> operations) {
  std::promise<Result<std::vector<Reply>>> promise;
  ledger.Submit(std::move(operations), [&promise](Result<std::vector<Reply>> replies) {
    promise.set_value(std::move(replies));
  });
  return promise.get_future().get();
}

// Runs a read on a thread of the ledger.
template <typename T>
T Read(LedgerService& ledger, std::function<sql::SqlResult<T>(sql::Database&)> read) {
  std::promise<T> promise;
  ledger.Read([&](sql::Database& database) { promise.set_value(std::move(*read(database))); },
              [&](Error error) { promise.set_value(T()); });
  return promise.get_future().get();
}

inline Balance BalanceOfWs(LedgerService& ledger) {
  return Read<Balance>(
      ledger, [&](sql::Database& database) { return ReadBalance(database, "ws", ledger.NowUs()); });
}

inline void ExpectVerified(LedgerService& ledger) {
  const auto report =
      Read<VerifyReport>(ledger, [](sql::Database& database) { return VerifyLedger(database); });
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_GT(report.entries, 0);
}

// Polls, since expiry runs on another thread.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class LedgerServiceTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == sql::Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-service-" + std::to_string(getpid()) + ".db"))
                  .string();
      Remove();
      options_.sql.url = "sqlite:" + file_;
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      options_.sql.url = server->MakeDatabase("service", "ledger", MakeLedgerSchema);
    }
    options_.expiry_interval_ms = 5;
    // Long timeouts, so that calls do not end because the machine is busy.
    options_.group_commit.call_timeout_ms = options_.group_commit.part_timeout_ms = 60'000;
  }
  void TearDown() override {
    if (!file_.empty()) Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  std::string file_;
  LedgerService::Options options_;
};

}  // namespace tollgate::billing
