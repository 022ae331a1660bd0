// Creates and changes workspaces and keys as operators do, for tests of the consequences.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "common/base/id.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

inline Caller TestOperator() {
  Caller caller;
  caller.actor = "tester";
  caller.installation = true;
  return caller;
}

inline void MakeWorkspace(AuthStore& store, const std::string& id) {
  admin::v1::CreateWorkspaceRequest request;
  request.set_workspace_id(id);
  const auto made = WorkspaceAdmin(store).Create(TestOperator(), request);
  EXPECT_TRUE(made) << made.error().message;
}

// A key as gateways receive it, with its secret.
class TestKey {
 public:
  TestKey() = default;
  TestKey(v1::Key key, std::string secret) : key_(std::move(key)), secret_(std::move(secret)) {}
  const v1::Key& key() const { return key_; }
  const std::string& secret() const { return secret_; }
  std::string name() const {
    return "workspaces/" + key_.workspace_id() + "/keys/" + key_.key_id();
  }

 private:
  v1::Key key_;
  std::string secret_;
};

// An empty request_id is replaced by a new one.
inline admin::AdminResult<TestKey> TryMakeKey(AuthStore& store, const std::string& workspace,
                                              const admin::v1::Key& settings = {},
                                              const std::string& request_id = "") {
  admin::v1::CreateKeyRequest request;
  request.set_parent("workspaces/" + workspace);
  request.set_request_id(request_id.empty() ? RandomBase62(20) : request_id);
  *request.mutable_key() = settings;
  auto made = KeyAdmin(store).Create(TestOperator(), request);
  if (!made) return Fail{made.error()};
  // The key's etag is its version.
  auto changed = store.ChangedAfter(std::stoll(made->key().etag()) - 1, 1);
  if (!changed) return Fail{admin::FromError(changed.error())};
  return TestKey(changed->front().key(), made->secret());
}
inline TestKey MakeTestKey(AuthStore& store, const std::string& workspace,
                           const admin::v1::Key& settings = {}) {
  auto made = TryMakeKey(store, workspace, settings);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : TestKey();
}

inline admin::AdminResult<admin::v1::Key> TrySetState(AuthStore& store, const std::string& name,
                                                      v1::KeyState state,
                                                      const std::string& request_id = "") {
  const auto fill = [&](auto request) {
    request.set_name(name);
    request.set_reason("a test");
    request.set_request_id(request_id);
    return request;
  };
  KeyAdmin keys(store);
  if (state == v1::KEY_STATE_ACTIVE) {
    return keys.Enable(TestOperator(), fill(admin::v1::EnableKeyRequest()));
  }
  if (state == v1::KEY_STATE_DISABLED) {
    return keys.Disable(TestOperator(), fill(admin::v1::DisableKeyRequest()));
  }
  return keys.Revoke(TestOperator(), fill(admin::v1::RevokeKeyRequest()));
}
inline void SetState(AuthStore& store, const TestKey& key, v1::KeyState state) {
  const auto set = TrySetState(store, key.name(), state);
  EXPECT_TRUE(set) << set.error().message;
}

// Events of the audit log, newest first.
inline std::vector<AuditRecord> AuditEvents(AuthStore& store, const std::string& workspace = "") {
  std::vector<AuditRecord> events;
  AuditQuery query;
  query.workspace = workspace;
  query.limit = 10'000;
  EXPECT_TRUE(store.Read([&](sql::Connection& sql) {
    events.clear();
    return ReadAuditLog(sql, query, [&](AuditRecord event) { events.push_back(std::move(event)); });
  }));
  return events;
}

}  // namespace tollgate::auth
