#include "services/auth/storage/auth_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "common/base/crypto.h"
#include "common/keys/key_format.h"
#include "services/auth/testing/store_calls.h"
#include "tests/support/postgres.h"

namespace tollgate::auth {
namespace {

using ::testing::HasSubstr;
using ::tollgate::testing::TestPostgres;

enum class Kind { kSqlite, kPostgres };

// Every test runs on both databases.
class AuthStoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    static int databases = 0;
    std::string folder = ::testing::TempDir() + "auth_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    if (GetParam() == Kind::kSqlite) {
      url_ = "sqlite:" + folder_ + "/auth.db";
    } else {
      TestPostgres* server = TestPostgres::Shared();
      if (!server && TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      url_ = server->MakeDatabase("auth_" + std::to_string(++databases));
    }
    store_ = Open();
    ASSERT_TRUE(store_);
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<AuthStore> Open(const std::string& pepper = std::string(32, 'p')) {
    auto store =
        AuthStore::Open({.database = {.url = url_}, .pepper = pepper, .brand = "tollgate"}, clock_);
    if (!store) {
      ADD_FAILURE() << store.error().ToString();
      return nullptr;
    }
    return std::move(*store);
  }

  TestKey NewKey(const std::string& workspace = "w") { return MakeTestKey(*store_, workspace); }
  // Returns "" or the reason of the failure.
  std::string SetState(const TestKey& key, v1::KeyState state, const std::string& request_id = "") {
    const auto set = TrySetState(*store_, key.name(), state, request_id);
    return set ? "" : set.error().reason;
  }
  // An empty quota removes it.
  std::string SetQuota(const std::string& name, const std::string& usd) {
    admin::v1::UpdateKeyRequest request;
    request.mutable_key()->set_name(name);
    if (!usd.empty()) request.mutable_key()->set_monthly_quota_usd(usd);
    request.mutable_update_mask()->add_paths("monthly_quota_usd");
    const auto set = KeyAdmin(*store_).Update(TestOperator(), request);
    return set ? "" : set.error().reason;
  }
  Result<v1::VerifyKeyResponse> Verify(const std::string& secret) {
    v1::VerifyKeyRequest request;
    request.set_key_digest(KeyDigest(secret));
    return store_->VerifyKey(request);
  }
  // Creates the workspace "w" with a key.
  TestKey Prepare() {
    MakeWorkspace(*store_, "w");
    return NewKey();
  }

  ManualClock clock_;
  std::string folder_;
  std::string url_;
  std::unique_ptr<AuthStore> store_;
};

TEST_P(AuthStoreTest, ANewKeyIsFoundByItsDigestOnly) {
  MakeWorkspace(*store_, "w");
  ASSERT_TRUE(store_->UpdateLimits({.actor = "tester"}, "w",
                                   [](AuthStore::WorkspaceLimits& limits) -> Result<void> {
                                     limits.limits.requests_per_minute = 60;
                                     return {};
                                   }));
  admin::v1::Key settings;
  settings.add_allowed_models("a/b");
  settings.add_allowed_models("c/d");
  settings.mutable_limits()->set_tokens_per_minute(1000);
  *settings.mutable_expire_time() = admin::ToTimestamp(clock_.WallUs() + 1);
  const TestKey made = MakeTestKey(*store_, "w", settings);
  const auto parsed = ParseKey(made.secret(), "tollgate");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key_id, made.key().key_id());

  const auto found = Verify(made.secret());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->found());
  EXPECT_EQ(found->key().SerializeAsString(), made.key().SerializeAsString());
  EXPECT_EQ(found->key().state(), v1::KEY_STATE_ACTIVE);
  EXPECT_THAT(found->key().allowed_models(), ::testing::ElementsAre("a/b", "c/d"));
  EXPECT_EQ(found->key().key_limits().tokens_per_minute(), 1000);
  EXPECT_EQ(found->key().workspace_limits().requests_per_minute(), 60);
  EXPECT_EQ(found->key().expires_at_us(), clock_.WallUs() + 1);
}

TEST_P(AuthStoreTest, AnUnknownKeyIsNotAnError) {
  const auto found = Verify(MakeKey("tollgate").text);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->found());
  v1::VerifyKeyRequest malformed;
  malformed.set_key_digest("short");
  ASSERT_TRUE(store_->VerifyKey(malformed));
  EXPECT_FALSE(store_->VerifyKey(malformed)->found());
}

TEST_P(AuthStoreTest, ALookupTellsTheVersionAtWhichItRead) {
  EXPECT_EQ(Verify("sk-unknown")->version(), 0);
  const TestKey created = Prepare();
  NewKey();
  EXPECT_EQ(Verify(created.secret())->version(), 3)
      << "the version of the database, not of the key";
  EXPECT_EQ(Verify(created.secret())->key().version(), 2);
  EXPECT_EQ(Verify("sk-unknown")->version(), 3);
}

// A leaked database, backup or log reveals no usable key, and without the pepper a guess cannot be
// tested.
TEST_P(AuthStoreTest, NeitherKeyNorSecretNorPlainHashIsStored) {
  const auto made = Prepare();
  const std::string secret = made.secret().substr(made.secret().size() - 49, 43);
  if (GetParam() == Kind::kSqlite) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      EXPECT_THAT(bytes, ::testing::Not(HasSubstr(secret)));
      EXPECT_THAT(bytes, ::testing::Not(HasSubstr(KeyDigest(made.secret()))));
    }
  }
  // Under another pepper the same key is unknown.
  store_ = Open(std::string(32, 'q'));
  EXPECT_FALSE(Verify(made.secret())->found());
}

TEST_P(AuthStoreTest, StatesChangeAndRevokedIsFinal) {
  const auto made = Prepare();
  ASSERT_EQ(SetState(made, v1::KEY_STATE_DISABLED), "");
  EXPECT_EQ(Verify(made.secret())->key().state(), v1::KEY_STATE_DISABLED);
  EXPECT_GT(Verify(made.secret())->key().version(), made.key().version());
  ASSERT_EQ(SetState(made, v1::KEY_STATE_ACTIVE), "");
  ASSERT_EQ(SetState(made, v1::KEY_STATE_REVOKED), "");
  EXPECT_EQ(SetState(made, v1::KEY_STATE_ACTIVE), "KEY_REVOKED");
  EXPECT_EQ(SetState(made, v1::KEY_STATE_DISABLED), "KEY_REVOKED");
  EXPECT_EQ(Verify(made.secret())->key().state(), v1::KEY_STATE_REVOKED);
  EXPECT_EQ(SetState(made, v1::KEY_STATE_REVOKED), "") << "again changes nothing";
}

// Decision 64 and docs/design/keys.md: the gateway sends the quota with each authorization.
TEST_P(AuthStoreTest, AQuotaIsSetAndRemovedAndReachesGateways) {
  MakeWorkspace(*store_, "quotas");
  admin::v1::Key settings;
  settings.set_monthly_quota_usd("5");
  const TestKey made = MakeTestKey(*store_, "quotas", settings);
  EXPECT_EQ(Verify(made.secret())->key().monthly_quota_nano_usd(), 5'000'000'000);
  const int64_t before = *store_->Version();
  ASSERT_EQ(SetQuota(made.name(), "0"), "");
  const auto changes = store_->ChangedAfter(before, 10);
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_TRUE(changes->front().key().has_monthly_quota_nano_usd()) << "0 is a quota";
  EXPECT_EQ(changes->front().key().monthly_quota_nano_usd(), 0);
  ASSERT_EQ(SetQuota(made.name(), ""), "");
  EXPECT_FALSE(Verify(made.secret())->key().has_monthly_quota_nano_usd());
  EXPECT_EQ(SetQuota(made.name(), "-1"), "INVALID_FIELD");
  EXPECT_EQ(SetQuota("workspaces/quotas/keys/0123456789ab", "1"), "NOT_FOUND");
}

TEST_P(AuthStoreTest, RefusalsNameTheFieldAndChangeNothing) {
  const auto made = Prepare();
  const int64_t version = *store_->Version();
  EXPECT_EQ(TryMakeKey(*store_, "nowhere").error().reason, "NOT_FOUND");
  EXPECT_EQ(
      TrySetState(*store_, "workspaces/w/keys/abcdefghijkl", v1::KEY_STATE_DISABLED).error().reason,
      "NOT_FOUND");
  EXPECT_EQ(
      TrySetState(*store_, "workspaces/nowhere/keys/" + made.key().key_id(), v1::KEY_STATE_DISABLED)
          .error()
          .reason,
      "NOT_FOUND")
      << "the key is another workspace's";
  EXPECT_EQ(TrySetState(*store_, "workspaces/w/keys/x", v1::KEY_STATE_DISABLED).error().field,
            "name");
  admin::v1::CreateWorkspaceRequest workspace;
  workspace.set_workspace_id("w");
  EXPECT_EQ(WorkspaceAdmin(*store_).Create(TestOperator(), workspace).error().reason,
            "WORKSPACE_EXISTS");
  workspace.set_workspace_id("Not Good");
  EXPECT_EQ(WorkspaceAdmin(*store_).Create(TestOperator(), workspace).error().field,
            "workspace_id");
  admin::v1::Key expired;
  *expired.mutable_expire_time() = admin::ToTimestamp(clock_.WallUs());
  EXPECT_EQ(TryMakeKey(*store_, "w", expired).error().field, "key.expire_time");
  EXPECT_EQ(*store_->Version(), version);
  EXPECT_EQ(*store_->VerifyAudit(), 2);
}

TEST_P(AuthStoreTest, ARepeatedRequestIsAppliedOnceAndGetsTheSameResponse) {
  admin::v1::CreateWorkspaceRequest workspace;
  workspace.set_request_id("r1");
  const auto first = WorkspaceAdmin(*store_).Create(TestOperator(), workspace);
  const auto again = WorkspaceAdmin(*store_).Create(TestOperator(), workspace);
  ASSERT_TRUE(first);
  ASSERT_TRUE(again);
  EXPECT_EQ(first->name(), again->name());
  EXPECT_EQ(*store_->VerifyAudit(), 1);

  const std::string id = first->name().substr(first->name().find('/') + 1);
  const auto key = TryMakeKey(*store_, id, {}, "r2");
  ASSERT_TRUE(key);
  admin::v1::CreateKeyRequest same;
  same.set_parent(first->name());
  same.set_request_id("r2");
  same.mutable_key();
  const auto key_again = KeyAdmin(*store_).Create(TestOperator(), same);
  ASSERT_TRUE(key_again);
  EXPECT_EQ(key_again->key().name(), key->name());
  EXPECT_EQ(key_again->secret(), "") << "it was shown";
  EXPECT_EQ(store_->ChangedAfter(0, 10)->size(), 1U);

  ASSERT_EQ(SetState(*key, v1::KEY_STATE_DISABLED, "r3"), "");
  ASSERT_EQ(SetState(*key, v1::KEY_STATE_ACTIVE, "r4"), "");
  // A late retry of the first change does not undo the second.
  const auto late = TrySetState(*store_, key->name(), v1::KEY_STATE_DISABLED, "r3");
  ASSERT_TRUE(late);
  EXPECT_EQ(late->state(), admin::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(Verify(key->secret())->key().state(), v1::KEY_STATE_ACTIVE);
  EXPECT_EQ(*store_->VerifyAudit(), 4);
}

TEST_P(AuthStoreTest, AReusedRequestIdIsRefused) {
  MakeWorkspace(*store_, "w");
  ASSERT_TRUE(TryMakeKey(*store_, "w", {}, "r1"));
  admin::v1::Key other;
  other.set_display_name("other");
  EXPECT_EQ(TryMakeKey(*store_, "w", other, "r1").error().reason, "REQUEST_ID_REUSED");
  admin::v1::CreateWorkspaceRequest workspace;
  workspace.set_request_id("r1");
  EXPECT_EQ(WorkspaceAdmin(*store_).Create(TestOperator(), workspace).error().reason,
            "REQUEST_ID_REUSED");
  EXPECT_EQ(TryMakeKey(*store_, "w", {}, std::string(65, 'x')).error().field, "request_id");
}

TEST_P(AuthStoreTest, ChangesComeInOrderAndOnlyTheLatestOfEachKey) {
  const auto one = Prepare();
  const int64_t start = *store_->Version();
  const auto two = NewKey();
  ASSERT_EQ(SetState(one, v1::KEY_STATE_DISABLED), "");
  const auto changes = store_->ChangedAfter(start, 100);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0].key().key_id(), two.key().key_id());
  EXPECT_EQ((*changes)[1].key().key_id(), one.key().key_id());
  EXPECT_EQ((*changes)[1].key().state(), v1::KEY_STATE_DISABLED);
  EXPECT_EQ((*changes)[1].key().version(), *store_->Version());
  EXPECT_EQ(store_->ChangedAfter(start, 1)->size(), 1u);
  EXPECT_TRUE(store_->ChangedAfter(*store_->Version(), 100)->empty());
}

// Two stores on one database are two replicas: no version is used twice and none is skipped.
TEST_P(AuthStoreTest, ConcurrentReplicasGiveEveryChangeItsOwnVersion) {
  MakeWorkspace(*store_, "w");
  const auto other = Open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      AuthStore& store = i % 2 == 0 ? *store_ : *other;
      for (int n = 0; n < 10; ++n) MakeTestKey(store, "w");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto changes = store_->ChangedAfter(0, 100);
  std::set<int64_t> versions;
  for (const v1::KeyChange& change : *changes) versions.insert(change.key().version());
  EXPECT_EQ(versions.size(), 40u);
  EXPECT_EQ(*versions.begin(), 2);
  EXPECT_EQ(*versions.rbegin(), 41);
  EXPECT_EQ(*store_->VerifyAudit(), 41);
}

TEST_P(AuthStoreTest, StateSurvivesARestart) {
  const auto made = Prepare();
  const int64_t version = *store_->Version();
  store_.reset();
  store_ = Open();
  EXPECT_EQ(*store_->Version(), version);
  EXPECT_TRUE(Verify(made.secret())->found());
  EXPECT_TRUE(store_->VerifyAudit());
}

// A restart of the database closes all connections; the lookup of a valid key must not fail.
TEST_P(AuthStoreTest, ReconnectsAfterADatabaseRestart) {
  if (GetParam() == Kind::kSqlite) GTEST_SKIP() << "SQLite has no server";
  // A server of its own: recovery takes long on the shared one, which holds the databases of all
  // tests.
  const auto server = TestPostgres::Start();
  ASSERT_TRUE(server);
  url_ = server->MakeDatabase("auth");
  store_ = Open();
  ASSERT_TRUE(store_);
  const auto made = Prepare();
  std::vector<std::thread> threads;  // fill the pool
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_TRUE(Verify(made.secret())); });
  for (std::thread& thread : threads) thread.join();
  server->Kill();
  const auto unreachable = Verify(made.secret());
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().id, ErrorId::kServiceUnavailable);  // never "no such key"
  const auto refused = TryMakeKey(*store_, "w", {}, "during");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(server->Run());
  const auto back = Verify(made.secret());
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_TRUE(back->found());
  EXPECT_TRUE(TryMakeKey(*store_, "w", {}, "during"));
  EXPECT_EQ(*store_->VerifyAudit(), 3);
  store_.reset();
}

TEST_P(AuthStoreTest, TheAuditLogRecordsActorActionAndReason) {
  const auto made = Prepare();
  ASSERT_EQ(SetState(made, v1::KEY_STATE_DISABLED), "");
  const auto events = AuditEvents(*store_);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].action, "key.disable");
  EXPECT_EQ(events[0].subject, made.key().key_id());
  EXPECT_EQ(events[0].actor, "tester");
  EXPECT_EQ(events[0].detail, "a test");
  EXPECT_EQ(events[2].action, "workspace.create");
  EXPECT_TRUE(AuditEvents(*store_, "other").empty());
}

TEST_P(AuthStoreTest, TamperingWithTheAuditLogIsDetected) {
  const auto made = Prepare();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(SetState(made, i % 2 == 0 ? v1::KEY_STATE_DISABLED : v1::KEY_STATE_ACTIVE), "");
  }
  ASSERT_EQ(*store_->VerifyAudit(), 6);
  auto database = sql::Database::Open({.url = url_});
  ASSERT_TRUE(database);
  const auto tampered = [&](const std::string& sql, const std::string& undo) {
    auto connection = (*database)->Borrow();
    ASSERT_TRUE((*connection)->ExecuteScript(sql)) << sql;
    EXPECT_FALSE(store_->VerifyAudit()) << sql;
    ASSERT_TRUE((*connection)->ExecuteScript(undo)) << undo;
    EXPECT_TRUE(store_->VerifyAudit()) << undo;
  };
  tampered("UPDATE audit_event SET actor = 'nobody' WHERE sequence = 3",
           "UPDATE audit_event SET actor = 'tester' WHERE sequence = 3");
  tampered("UPDATE audit_event SET at_us = at_us + 1 WHERE sequence = 1",
           "UPDATE audit_event SET at_us = at_us - 1 WHERE sequence = 1");
  // A truncated end, a gap, and two swapped events.
  tampered("UPDATE audit_event SET sequence = 1000 WHERE sequence = 6",
           "UPDATE audit_event SET sequence = 6 WHERE sequence = 1000");
  tampered("UPDATE audit_event SET sequence = 1000 WHERE sequence = 2",
           "UPDATE audit_event SET sequence = 2 WHERE sequence = 1000");
  const std::string swap =
      "UPDATE audit_event SET sequence = 1000 WHERE sequence = 4;"
      "UPDATE audit_event SET sequence = 4 WHERE sequence = 5;"
      "UPDATE audit_event SET sequence = 5 WHERE sequence = 1000";
  tampered(swap, swap);
  auto connection = (*database)->Borrow();
  ASSERT_TRUE((*connection)->ExecuteScript("DELETE FROM audit_event WHERE sequence = 6"));
  EXPECT_THAT(store_->VerifyAudit().error(), HasSubstr("ends with event 5"));
}

// Limits by model and limits of a plan reach gateways with the key: a change of them changes every
// affected key in one step and is audited.
TEST_P(AuthStoreTest, LimitsByModelAndPlansReachEveryKey) {
  MakeWorkspace(*store_, "acme");
  MakeWorkspace(*store_, "other");
  const auto first = NewKey("acme");
  const auto second = NewKey("acme");
  NewKey("other");
  int64_t version = *store_->Version();
  const AuthStore::LimitChange change{.actor = "tester"};

  ASSERT_TRUE(store_->UpdatePlan(change, "free", [](AuthStore::Plan& plan) -> Result<void> {
    plan.limits.workspace = {100, 0, 0};
    plan.limits.key = {10, 0, 0};
    plan.limits.key_models["a/b"] = {5, 0, 0};
    plan.shadow = true;
    return {};
  }));
  EXPECT_TRUE(store_->ChangedAfter(version, 100)->empty()) << "nobody has the plan yet";
  version = *store_->Version();
  ASSERT_TRUE(
      store_->UpdateLimits(change, "acme", [](AuthStore::WorkspaceLimits& limits) -> Result<void> {
        limits.plan = "free";
        limits.limits.requests_per_minute = 60;
        limits.model_limits["a/b"] = {0, 700, 0};
        return {};
      }));
  auto changed = store_->ChangedAfter(version, 100);
  ASSERT_EQ(changed->size(), 2u);
  std::set<std::string> ids;
  for (const v1::KeyChange& one : *changed) {
    ids.insert(one.key().key_id());
    EXPECT_EQ(one.key().workspace_limits().requests_per_minute(), 60);  // the workspace's own limit
    EXPECT_FALSE(one.key().workspace_limits().shadow());
    EXPECT_EQ(one.key().key_limits().requests_per_minute(), 10);  // the plan's limit
    EXPECT_TRUE(one.key().key_limits().shadow());
    EXPECT_EQ(one.key().key_model_limits().at("a/b").requests_per_minute(), 5);
    EXPECT_EQ(one.key().workspace_model_limits().at("a/b").tokens_per_minute(), 700);
    EXPECT_FALSE(one.key().workspace_model_limits().at("a/b").shadow());
  }
  EXPECT_EQ(ids, (std::set<std::string>{first.key().key_id(), second.key().key_id()}));

  // A change of the plan changes the same keys; a change of one key changes only that key.
  version = *store_->Version();
  ASSERT_TRUE(store_->UpdatePlan(change, "free", [](AuthStore::Plan& plan) -> Result<void> {
    plan.shadow = false;
    return {};
  }));
  changed = store_->ChangedAfter(version, 100);
  ASSERT_EQ(changed->size(), 2u);
  EXPECT_FALSE(changed->front().key().key_limits().shadow());
  EXPECT_EQ(changed->front().key().key_limits().requests_per_minute(), 10);
  version = *store_->Version();
  ASSERT_TRUE(store_->UpdateKeyModelLimits(change, "acme", first.key().key_id(),
                                           [](ModelLimits& limits) -> Result<void> {
                                             limits["a/b"] = {0, 0, 2};
                                             return {};
                                           }));
  changed = store_->ChangedAfter(version, 100);
  ASSERT_EQ(changed->size(), 1u);
  EXPECT_EQ(changed->front().key().key_id(), first.key().key_id());
  EXPECT_EQ(changed->front().key().key_model_limits().at("a/b").concurrent_requests(), 2);
  EXPECT_EQ(changed->front().key().key_model_limits().at("a/b").requests_per_minute(), 0);

  // Invalid limits are refused and change nothing.
  version = *store_->Version();
  EXPECT_FALSE(
      store_->UpdateLimits(change, "acme", [](AuthStore::WorkspaceLimits& limits) -> Result<void> {
        limits.plan = "none-such";
        return {};
      }));
  EXPECT_FALSE(store_->UpdateLimits(
      change, "none-such", [](AuthStore::WorkspaceLimits&) -> Result<void> { return {}; }));
  EXPECT_FALSE(store_->UpdateKeyModelLimits(change, "other", first.key().key_id(),
                                            [](ModelLimits&) -> Result<void> { return {}; }))
      << "the key is in another workspace";
  EXPECT_FALSE(store_->UpdatePlan(change, "free", [](AuthStore::Plan& plan) -> Result<void> {
    plan.limits.key = {-1, 0, 0};
    return {};
  }));
  EXPECT_EQ(*store_->Version(), version);
  EXPECT_EQ(store_->GetLimits("acme")->plan, "free");
  EXPECT_EQ(store_->ListPlans(10)->size(), 1u);
  EXPECT_TRUE(store_->VerifyAudit().ok());
  EXPECT_EQ(AuditEvents(*store_).front().action, "key.model_limits");
}

TEST_P(AuthStoreTest, ALimitChangeIsAppliedOnceForItsRequestId) {
  MakeWorkspace(*store_, "acme");
  int edits = 0;
  const auto update = [&](const std::string& content, const std::string& actor = "tester") {
    return store_->UpdateLimits(
        {.request_id = "r1", .content = content, .actor = actor, .address = "192.0.2.7"}, "acme",
        [&](AuthStore::WorkspaceLimits& limits) -> Result<void> {
          ++edits;
          limits.limits.requests_per_minute += 1;
          return {};
        });
  };
  EXPECT_TRUE(update("a"));
  EXPECT_TRUE(update("a"));
  const auto reused = update("b");
  ASSERT_FALSE(reused);
  EXPECT_EQ(reused.error().reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(edits, 1);
  EXPECT_EQ(store_->GetLimits("acme")->limits.requests_per_minute, 1);
  EXPECT_TRUE(update("b", "another")) << "request ids of different callers do not collide";
  EXPECT_EQ(edits, 2);
}

INSTANTIATE_TEST_SUITE_P(Databases, AuthStoreTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgres), [](const auto& info) {
                           return info.param == Kind::kSqlite ? "Sqlite" : "Postgres";
                         });

}  // namespace
}  // namespace tollgate::auth
