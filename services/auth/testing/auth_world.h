// A store on its own database, SQLite or PostgreSQL, with a clock that tests move.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/testing/auth_schema.h"
#include "tests/support/postgres.h"

namespace tollgate::auth {

enum class DatabaseKind { kSqlite, kPostgres };

class AuthWorld : public ::testing::TestWithParam<DatabaseKind> {
 protected:
  void SetUp() override {
    static int databases = 0;
    std::string folder = ::testing::TempDir() + "authworld_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    if (GetParam() == DatabaseKind::kSqlite) {
      url_ = "sqlite:" + folder_ + "/auth.db";
    } else {
      auto* server = testing::TestPostgres::Shared();
      if (!server && testing::TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      url_ =
          server->MakeDatabase("authworld_" + std::to_string(++databases), "auth", MakeAuthSchema);
    }
    store_ = Open(kPepper);
    ASSERT_TRUE(store_);
    admin::v1::CreateWorkspaceRequest request;
    request.set_workspace_id("acme");
    ASSERT_TRUE(WorkspaceAdmin(*store_).Create(Operator(), request));
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  static inline const std::string kPepper = std::string(32, 'p');

  std::unique_ptr<AuthStore> Open(const std::string& pepper,
                                  std::vector<std::string> retired = {}) {
    auto store = AuthStore::Open({.database = {.url = url_},
                                  .pepper = pepper,
                                  .brand = "tollgate",
                                  .retired_peppers = std::move(retired)},
                                 clock_);
    if (!store) {
      ADD_FAILURE() << store.error().ToString();
      return nullptr;
    }
    return std::move(*store);
  }
  static Caller Operator() {
    Caller caller;
    caller.actor = "local:test";
    caller.address = "192.0.2.1";
    caller.installation = true;
    return caller;
  }
  // A developer, who may change only their own keys.
  static Caller Developer(const std::string& id) {
    Caller caller;
    caller.actor = "user:" + id;
    caller.user_id = id;
    caller.own_only = true;
    return caller;
  }
  admin::v1::CreateKeyResponse MakeAKey(const std::string& request_id,
                                        const admin::v1::Key& key = {},
                                        const Caller& caller = Operator()) {
    admin::v1::CreateKeyRequest request;
    request.set_parent("workspaces/acme");
    request.set_request_id(request_id);
    *request.mutable_key() = key;
    auto made = KeyAdmin(*store_).Create(caller, request);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : admin::v1::CreateKeyResponse();
  }
  admin::v1::Key Read(const std::string& name) {
    admin::v1::GetKeyRequest request;
    request.set_name(name);
    auto key = KeyAdmin(*store_).Get(request);
    EXPECT_TRUE(key);
    return key ? *key : admin::v1::Key();
  }
  static std::string IdOf(const admin::v1::Key& key) {
    return key.name().substr(key.name().rfind('/') + 1);
  }
  // "action actor detail" of each event, oldest first.
  std::vector<AuditRecord> Events() {
    std::vector<AuditRecord> events;
    AuditQuery query;
    query.oldest_first = true;
    query.limit = 10'000;
    EXPECT_TRUE(store_->Read([&](sql::Connection& sql) {
      events.clear();
      return ReadAuditLog(sql, query, [&](AuditRecord event) { events.push_back(event); });
    }));
    return events;
  }
  void Sql(const std::string& statement) {
    EXPECT_TRUE(store_->Read([&](sql::Connection& sql) -> sql::SqlResult<void> {
      auto done = sql.ExecuteScript(statement);
      EXPECT_TRUE(done) << (done ? "" : done.error().message);
      return done;
    }));
  }

  std::string folder_, url_;
  ManualClock clock_{1'763'700'000'000'000};
  std::unique_ptr<AuthStore> store_;
};

inline std::string NameOfKind(const ::testing::TestParamInfo<DatabaseKind>& info) {
  return info.param == DatabaseKind::kSqlite ? "Sqlite" : "Postgres";
}

}  // namespace tollgate::auth
