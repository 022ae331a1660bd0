// A running ledger on SQLite or PostgreSQL, for tests of code that uses its database next to it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "services/billing/commit/ledger_service.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

class LedgerWorld : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  // name: name of the database.
  explicit LedgerWorld(std::string name) : name_(std::move(name)) {}

  void SetUp() override {
    if (GetParam() == sql::Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-" + name_ + "-" + std::to_string(getpid()) + ".db"))
                  .string();
      RemoveFiles();
      url_ = "sqlite:" + file_;
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      url_ = server->MakeDatabase(name_, "ledger", MakeLedgerSchema);
    }
    LedgerService::Options options;
    options.sql.url = url_;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    ASSERT_TRUE(ledger_->Start().ok());
    for (int i = 0; i < 6'000 && !ledger_->Ready(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(ledger_->Ready());
    database_ = *sql::Database::Open({.url = url_});
  }
  void TearDown() override {
    if (ledger_) ledger_->Stop();
    database_.reset();
    if (!file_.empty()) RemoveFiles();
  }
  // Whether the ledger runs: the test is not skipped and nothing has failed.
  bool Runs() const { return database_ != nullptr && !HasFatalFailure(); }

  std::string url_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<LedgerService> ledger_;

 private:
  void RemoveFiles() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }

  const std::string name_;
  std::string file_;
};

}  // namespace tollgate::billing
