// A ledger in a separate database, for tests: once on SQLite, once on PostgreSQL.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "services/billing/verify/verify.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {

class LedgerDatabaseTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    sql::Database::Options options;
    if (GetParam() == sql::Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-ledger-" + std::to_string(getpid()) + ".db"))
                  .string();
      RemoveFiles();
      options.url = "sqlite:" + file_;
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      options.url = server->MakeDatabase("ledger", "ledger", MakeLedgerSchema);
    }
    url_ = options.url;
    database_ = std::move(*sql::Database::Open(options));
    auto migrated = MigrateLedger(*database_);
    ASSERT_TRUE(migrated.ok()) << migrated.error().message;
    connection_ = std::move(*database_->Connect());
  }
  void TearDown() override {
    connection_.reset();
    database_.reset();
    if (!file_.empty()) RemoveFiles();
  }
  void RemoveFiles() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  Applied Run(const std::vector<Operation>& operations, int64_t now_us = kNowUs) {
    auto applied = RunBatch(*connection_, operations, now_us, policy_);
    EXPECT_TRUE(applied.ok()) << applied.error().message;
    return applied.ok() ? std::move(*applied) : Applied();
  }
  void ExpectVerified() {
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->ok()) << report->violations.front();
  }

  static constexpr int64_t kNowUs = 1'763'700'000'000'000;
  std::string file_;
  std::string url_;
  Policy policy_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<sql::Connection> connection_;
};

inline std::string DialectName(const ::testing::TestParamInfo<sql::Dialect>& info) {
  return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
}

}  // namespace tollgate::billing
