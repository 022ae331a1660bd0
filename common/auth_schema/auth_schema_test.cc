#include "common/auth_schema/auth_schema.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/postgres.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::auth_schema {
namespace {

class AuthSchemaTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    static int databases = 0;
    std::string folder = ::testing::TempDir() + "auth_schema_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    std::string url = "sqlite:" + folder_ + "/auth.db";
    if (GetParam() == sql::Dialect::kPostgres) {
      auto* server = testing::TestPostgres::Shared();
      if (!server && testing::TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      url = server->MakeDatabase("auth_schema_" + std::to_string(++databases));
    }
    auto opened = sql::Database::Open({.url = url});
    ASSERT_TRUE(opened);
    database_ = std::move(*opened);
    Check(Migrate(*database_));
  }
  void TearDown() override {
    database_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static void Check(const sql::SqlResult<void>& result) {
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
  }
  void Run(const std::string& statements) {
    Check(database_->Transact(sql::TxMode::kWrite,
                              [&](sql::Connection& sql) { return sql.ExecuteScript(statements); }));
  }
  // "WORKSPACE USER ROLE" of each membership.
  std::vector<std::string> Members() {
    std::vector<std::string> members;
    auto connection = database_->Borrow();
    EXPECT_TRUE(connection);
    Check((*connection)
              ->Query("SELECT workspace_id, user_id, role FROM membership ORDER BY user_id", {},
                      [&](const sql::Row& row) {
                        members.push_back(row.Text(0) + " " + row.Text(1) + " " +
                                          std::to_string(row.Int(2)));
                      }));
    return members;
  }

  std::string folder_;
  std::unique_ptr<sql::Database> database_;
};

// Each replica of auth does it at its start.
TEST_P(AuthSchemaTest, MigratingAgainKeepsTheHeadOfTheAuditLog) {
  Run("UPDATE auth_head SET version = 7, audit_sequence = 3");
  Check(Migrate(*database_));
  auto connection = database_->Borrow();
  ASSERT_TRUE(connection);
  const auto head = audit::ReadHead(**connection, kAuditTables);
  ASSERT_TRUE(head && *head);
  EXPECT_EQ((*head)->sequence, 3);
  EXPECT_EQ((*head)->hash, audit::GenesisHash());
}

TEST_P(AuthSchemaTest, OnlyAPersonThereIsBecomesAnOwner) {
  Check(database_->Transact(sql::TxMode::kWrite, [](sql::Connection& sql) {
    return WithoutValue(sql.Execute(
        "INSERT INTO person VALUES ('anna', 'anna@x.org', 0, '', 1, 0, '', $1, $1, 0, 1)",
        {sql::Param::Blob("")}));
  }));
  const auto add = [&](const char* user_id) {
    bool added = false;
    Check(
        database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) -> sql::SqlResult<void> {
          auto done = AddOwner(sql, "acme", user_id, 5);
          added = done.ok() && *done;
          return WithoutValue(std::move(done));
        }));
    return added;
  };
  EXPECT_FALSE(add("nobody"));
  EXPECT_TRUE(Members().empty());
  EXPECT_TRUE(add("anna"));
  const std::vector<std::string> owner = {"acme anna " + std::to_string(common::v1::ROLE_OWNER)};
  EXPECT_EQ(Members(), owner);
  EXPECT_TRUE(add("anna")) << "again";
  EXPECT_EQ(Members(), owner);
}

TEST_P(AuthSchemaTest, AWorkspaceIsFoundByItsId) {
  Run("INSERT INTO workspace (workspace_id, name, requests_per_minute, tokens_per_minute, "
      "concurrent_requests, created_at_us) VALUES ('acme', 'Acme', 0, 0, 0, 1)");
  auto connection = database_->Borrow();
  ASSERT_TRUE(connection);
  for (const auto& [id, expected] : {std::pair("acme", true), {"Acme", false}, {"", false}}) {
    const auto found = HasWorkspace(**connection, id);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, expected) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, AuthSchemaTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "Sqlite" : "Postgres";
                         });

}  // namespace
}  // namespace tollgate::auth_schema
