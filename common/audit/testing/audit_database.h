// A database of its own with audit entries, SQLite or PostgreSQL.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/audit/log.h"
#include "tests/support/postgres.h"

namespace tollgate::audit {

class AuditDatabaseTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    static int databases = 0;
    std::string folder = ::testing::TempDir() + "audit_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    std::string url = "sqlite:" + folder_ + "/audit.db";
    if (GetParam() == sql::Dialect::kPostgres) {
      auto* server = testing::TestPostgres::Shared();
      if (!server && testing::TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      url = server->MakeDatabase("audit_" + std::to_string(++databases));
    }
    auto opened = sql::Database::Open({.url = url});
    ASSERT_TRUE(opened.ok());
    database_ = std::move(*opened);
    auto migrated = Migrate(*database_);
    ASSERT_TRUE(migrated.ok()) << migrated.error().message;
  }
  void TearDown() override {
    database_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  sql::SqlResult<void> Add(std::vector<Record> records) {
    return database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& connection) {
      return Append(connection, kEntries, records);
    });
  }
  Page Read(int64_t after = 0, int limit = 1000) {
    Page page;
    auto connection = database_->Borrow();
    EXPECT_TRUE(connection.ok());
    auto read = ReadPage(**connection, kEntries, after, limit);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return read.ok() ? *std::move(read) : Page();
  }

  std::string folder_;
  std::unique_ptr<sql::Database> database_;
};

inline std::string NameOfDialect(const ::testing::TestParamInfo<sql::Dialect>& info) {
  return info.param == sql::Dialect::kSqlite ? "Sqlite" : "Postgres";
}

}  // namespace tollgate::audit
