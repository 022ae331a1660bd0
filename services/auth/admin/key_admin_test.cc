#include "services/auth/admin/key_admin.h"

#include <gmock/gmock.h>

#include <set>

#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "common/keys/key_format.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using ::testing::HasSubstr;

class KeyAdminTest : public AuthWorld {
 protected:
  KeyAdmin keys() { return KeyAdmin(*store_); }

  v1::VerifyKeyResponse Verify(const std::string& digest) {
    v1::VerifyKeyRequest request;
    request.set_key_digest(digest);
    auto found = store_->VerifyKey(request);
    EXPECT_TRUE(found);
    return found ? *found : v1::VerifyKeyResponse();
  }
  AdminResult<pb::Key> Disable(const std::string& name, const std::string& request_id = "",
                               const std::string& reason = "") {
    pb::DisableKeyRequest request;
    request.set_name(name);
    request.set_request_id(request_id);
    request.set_reason(reason);
    return keys().Disable(Operator(), request);
  }
  AdminResult<pb::Key> Enable(const std::string& name) {
    pb::EnableKeyRequest request;
    request.set_name(name);
    return keys().Enable(Operator(), request);
  }
  AdminResult<pb::Key> Revoke(const std::string& name, const Caller& caller = Operator()) {
    pb::RevokeKeyRequest request;
    request.set_name(name);
    return keys().Revoke(caller, request);
  }
  AdminResult<pb::RotateKeyResponse> Rotate(const std::string& name, int64_t overlap_s,
                                            const std::string& id) {
    pb::RotateKeyRequest request;
    request.set_name(name);
    request.mutable_overlap()->set_seconds(overlap_s);
    request.set_request_id(id);
    return keys().Rotate(Operator(), request);
  }
};

TEST_P(KeyAdminTest, ASecretIsInOneAnswerOnlyAndARequestIdMakesOneKey) {
  const auto first = MakeAKey("one");
  EXPECT_FALSE(first.secret().empty());
  EXPECT_FALSE(first.secret_shown());
  const auto again = MakeAKey("one");
  EXPECT_EQ(again.key().name(), first.key().name());
  EXPECT_EQ(again.secret(), "");
  EXPECT_TRUE(again.secret_shown());
  pb::CreateKeyRequest other;
  other.set_parent("workspaces/acme");
  other.set_request_id("one");
  other.mutable_key()->set_display_name("another");
  const auto reused = keys().Create(Operator(), other);
  ASSERT_FALSE(reused);
  EXPECT_EQ(reused.error().reason, "REQUEST_ID_REUSED");
  // Request ids of different callers do not collide.
  Caller another = Operator();
  another.actor = "local:other";
  EXPECT_TRUE(keys().Create(another, other));
  EXPECT_TRUE(Verify(KeyDigest(first.secret())).found());
}

// Labels are a map, whose iteration order may change.
TEST_P(KeyAdminTest, ARepeatedRequestWithLabelsIsTheSame) {
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) {
    pb::Key settings;
    for (const char* label : {"team", "stage", "region"}) (*settings.mutable_labels())[label] = "x";
    names.insert(MakeAKey("one", settings).key().name());
  }
  EXPECT_EQ(names.size(), 1u);
}

TEST_P(KeyAdminTest, TheSameRequestIsRememberedForSevenDays) {
  const auto first = MakeAKey("one");
  clock_.Advance(int64_t{7} * 24 * 3600 * kSecondUs - kSecondUs);
  MakeAKey("two");
  EXPECT_EQ(MakeAKey("one").key().name(), first.key().name());
  clock_.Advance(2 * kSecondUs);
  MakeAKey("three");  // deletes stored answers that are older
  EXPECT_NE(MakeAKey("one").key().name(), first.key().name());
}

TEST_P(KeyAdminTest, AnUpdateChangesWhatItsMaskNames) {
  pb::Key settings;
  settings.set_display_name("robot");
  settings.add_allowed_models("acme/*");
  settings.set_monthly_quota_usd("5.00");
  (*settings.mutable_labels())["team"] = "search";
  const pb::Key made = MakeAKey("one", settings).key();
  pb::UpdateKeyRequest request;
  pb::Key& key = *request.mutable_key();
  key.set_name(made.name());
  key.set_display_name("Suche; expires: never");
  key.add_allowed_addresses("192.0.2.0/24");
  key.mutable_limits()->set_requests_per_minute(60);
  key.mutable_limits()->set_tokens_per_minute(99);
  request.mutable_update_mask()->add_paths("displayName");
  request.mutable_update_mask()->add_paths("allowed_addresses");
  request.mutable_update_mask()->add_paths("limits.requestsPerMinute");
  request.mutable_update_mask()->add_paths("monthly_quota_usd");
  const auto updated = keys().Update(Operator(), request);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->display_name(), "Suche; expires: never");
  EXPECT_EQ(updated->limits().requests_per_minute(), 60);
  EXPECT_EQ(updated->limits().tokens_per_minute(), 0);
  EXPECT_FALSE(updated->has_monthly_quota_usd());
  EXPECT_EQ(updated->allowed_models(0), "acme/*");
  EXPECT_EQ(updated->labels().at("team"), "search");
  EXPECT_EQ(Read(made.name()).SerializeAsString(), updated->SerializeAsString());
  EXPECT_THAT(Events().back().detail, HasSubstr("name: \"robot\" → \"Suche; expires: never\"; "));
  EXPECT_EQ(Events().back().address, "192.0.2.1");
  // An update that changes nothing writes no event.
  const size_t events = Events().size();
  EXPECT_TRUE(keys().Update(Operator(), request));
  EXPECT_EQ(Events().size(), events);
}

TEST_P(KeyAdminTest, AnUpdateRefusesOtherFieldsAndBadValues) {
  const pb::Key made = MakeAKey("one").key();
  const auto field_of = [&](const std::string& path, auto set) {
    pb::UpdateKeyRequest request;
    request.mutable_key()->set_name(made.name());
    set(*request.mutable_key());
    request.mutable_update_mask()->add_paths(path);
    const auto updated = keys().Update(Operator(), request);
    return updated ? "updated" : updated.error().field;
  };
  for (const char* path : {"state", "name", "*", "", "limits.nope", "labels.team", "secret"}) {
    EXPECT_EQ(field_of(path, [](pb::Key&) {}), "update_mask") << path;
  }
  EXPECT_EQ(field_of("allowed_models", [](pb::Key& key) { key.add_allowed_models("gpt"); }),
            "key.allowed_models");
  EXPECT_EQ(
      field_of("allowed_addresses", [](pb::Key& key) { key.add_allowed_addresses("::/129"); }),
      "key.allowed_addresses");
  EXPECT_EQ(field_of("monthly_quota_usd", [](pb::Key& key) { key.set_monthly_quota_usd("-1"); }),
            "key.monthly_quota_usd");
  EXPECT_EQ(field_of("expire_time",
                     [](pb::Key& key) { key.mutable_expire_time()->set_seconds(1'000'000); }),
            "key.expire_time");
  EXPECT_EQ(
      field_of("limits", [](pb::Key& key) { key.mutable_limits()->set_concurrent_requests(-1); }),
      "key.limits");
}

TEST_P(KeyAdminTest, ALateEtagIsRefused) {
  const pb::Key made = MakeAKey("one").key();
  ASSERT_TRUE(Disable(made.name()));
  pb::UpdateKeyRequest request;
  request.mutable_key()->set_name(made.name());
  request.mutable_key()->set_display_name("x");
  request.mutable_key()->set_etag(made.etag());
  const auto late = keys().Update(Operator(), request);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "ETAG_MISMATCH");
  request.mutable_key()->set_etag(Read(made.name()).etag());
  EXPECT_TRUE(keys().Update(Operator(), request));
}

TEST_P(KeyAdminTest, StatesChangeByVerbsAndRevokedIsFinal) {
  const auto made = MakeAKey("one");
  const std::string name = made.key().name();
  EXPECT_EQ(Disable(name, "", "lost")->state(), pb::KEY_STATE_DISABLED);
  EXPECT_EQ(Read(name).state_reason(), "lost");
  EXPECT_EQ(Verify(KeyDigest(made.secret())).key().state(), v1::KEY_STATE_DISABLED);
  EXPECT_EQ(Enable(name)->state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(Revoke(name)->state(), pb::KEY_STATE_REVOKED);
  EXPECT_EQ(Revoke(name)->state(), pb::KEY_STATE_REVOKED);
  for (const auto& refused : {Enable(name), Disable(name)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, "KEY_REVOKED");
  }
  const auto rotated = Rotate(name, 0, "r");
  ASSERT_FALSE(rotated);
  EXPECT_EQ(rotated.error().reason, "KEY_REVOKED");
}

TEST_P(KeyAdminTest, RotatingKeepsTheOldKeyForTheOverlap) {
  pb::Key settings;
  settings.set_display_name("robot");
  settings.add_allowed_models("acme/*");
  const auto made = MakeAKey("one", settings);
  const auto rotated = Rotate(made.key().name(), 3600, "r");
  ASSERT_TRUE(rotated) << rotated.error().message;
  EXPECT_EQ(rotated->key().rotated_from(), made.key().name());
  EXPECT_EQ(rotated->key().display_name(), "robot");
  EXPECT_EQ(rotated->key().allowed_models(0), "acme/*");
  EXPECT_EQ(rotated->rotated().expire_time().seconds(), clock_.WallUs() / kSecondUs + 3600);
  EXPECT_TRUE(Verify(KeyDigest(rotated->secret())).found());
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_ACTIVE);
  clock_.Advance(3600 * kSecondUs);
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_EXPIRED);
  EXPECT_EQ(Read(rotated->key().name()).state(), pb::KEY_STATE_ACTIVE);
  const auto again = Rotate(made.key().name(), 3600, "r");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->key().name(), rotated->key().name());
  EXPECT_EQ(again->secret(), "");
  EXPECT_TRUE(again->secret_shown());
  const auto late = Rotate(made.key().name(), 1, "s");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason, "KEY_EXPIRED");
}

TEST_P(KeyAdminTest, ARotatedKeyKeepsItsLimitsByModel) {
  const auto made = MakeAKey("one");
  ASSERT_TRUE(store_->UpdateKeyModelLimits({.actor = "tester", .address = "192.0.2.7"}, "acme",
                                           IdOf(made.key()),
                                           [](ModelLimits& limits) -> Result<void> {
                                             limits["a/b"] = {3, 0, 2};
                                             return {};
                                           }));
  EXPECT_EQ(Events().back().address, "192.0.2.7");
  const auto rotated = Rotate(made.key().name(), 0, "r");
  ASSERT_TRUE(rotated) << rotated.error().message;
  const auto limits = store_->GetKeyModelLimits("acme", IdOf(rotated->key()));
  ASSERT_TRUE(limits);
  ASSERT_TRUE(limits->contains("a/b"));
  EXPECT_EQ(limits->at("a/b").requests_per_minute, 3);
  EXPECT_EQ(limits->at("a/b").concurrent_requests, 2);
  const auto found = Verify(KeyDigest(rotated->secret()));
  EXPECT_EQ(found.key().key_model_limits().at("a/b").requests_per_minute(), 3);
}

TEST_P(KeyAdminTest, AnOverlapNeverMakesAKeyLiveLonger) {
  pb::Key settings;
  settings.mutable_expire_time()->set_seconds(clock_.WallUs() / kSecondUs + 100);
  const auto made = MakeAKey("one", settings);
  const auto rotated = Rotate(made.key().name(), 3600, "r");
  ASSERT_TRUE(rotated);
  EXPECT_EQ(rotated->rotated().expire_time().seconds(), settings.expire_time().seconds());
  EXPECT_EQ(rotated->key().expire_time().seconds(), settings.expire_time().seconds());
}

TEST_P(KeyAdminTest, ADeveloperChangesOnlyOwnKeys) {
  const Caller ann = Developer("ann");
  const std::string own = MakeAKey("one", {}, ann).key().name();
  const std::string other = MakeAKey("one", {}, Developer("bob")).key().name();
  EXPECT_EQ(Read(own).created_by(), "user:ann");
  const auto refused = Revoke(other, ann);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, grpc::StatusCode::PERMISSION_DENIED);
  // The owner may also use one of her tokens.
  Caller token = ann;
  token.actor = "token:t1";
  EXPECT_TRUE(Revoke(own, token));
}

TEST_P(KeyAdminTest, AKeyOfAnotherWorkspaceIsNotFound) {
  pb::CreateWorkspaceRequest second;
  second.set_workspace_id("other");
  ASSERT_TRUE(WorkspaceAdmin(*store_).Create(Operator(), second));
  const std::string id = IdOf(MakeAKey("one").key());
  pb::GetKeyRequest request;
  request.set_name("workspaces/other/keys/" + id);
  const auto found = keys().Get(request);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Disable("workspaces/other/keys/" + id).error().code, grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Disable("workspaces/acme/keys/").error().code, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Disable("workspaces/acme/keys/short").error().code, grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_P(KeyAdminTest, PagesHaveEveryKeyOnceNewestFirst) {
  std::vector<std::string> names;
  for (int i = 0; i < 7; ++i) {
    // Pairs of keys have the same creation time.
    if (i % 2 == 0) clock_.Advance(kSecondUs);
    names.push_back(MakeAKey("k" + std::to_string(i)).key().name());
  }
  std::vector<std::string> listed;
  pb::ListKeysRequest request;
  request.set_parent("workspaces/acme");
  request.set_page_size(2);
  do {
    const auto page = keys().List(Operator(), request);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_LE(page->keys_size(), 2);
    for (const pb::Key& key : page->keys()) listed.push_back(key.name());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(listed, ::testing::UnorderedElementsAreArray(names));
  EXPECT_THAT((std::vector<std::string>{listed[0]}), ::testing::ElementsAre(names[6]));
  // A page token is valid for one list only.
  request.set_page_size(2);
  request.clear_page_token();
  request.set_page_token(keys().List(Operator(), request)->next_page_token());
  request.set_query("other");
  const auto foreign = keys().List(Operator(), request);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().field, "page_token");
}

TEST_P(KeyAdminTest, ListsAreFoundByPrefixStateAndLabel) {
  pb::Key settings;
  settings.set_display_name("Größe 50% A");
  (*settings.mutable_labels())["team"] = "search";
  const pb::Key first = MakeAKey("one", settings).key();
  settings.set_display_name("other");
  (*settings.mutable_labels())["team"] = "Search";
  const pb::Key second = MakeAKey("two", settings).key();
  ASSERT_TRUE(Disable(second.name()));
  const auto found = [&](const std::string& query, const std::string& filter) {
    pb::ListKeysRequest request;
    request.set_parent("workspaces/acme");
    request.set_query(query);
    request.set_filter(filter);
    const auto list = keys().List(Operator(), request);
    if (!list) return list.error().field;
    std::string text;
    for (const pb::Key& key : list->keys()) text += key.name() == first.name() ? "1" : "2";
    return text;
  };
  EXPECT_EQ(found("größe 50%", ""), "1");
  EXPECT_EQ(found("%", ""), "");
  EXPECT_EQ(found(second.last_four(), ""), "2");
  EXPECT_EQ(found(IdOf(first).substr(0, 8), ""), "1");
  EXPECT_EQ(found("", "state = \"DISABLED\""), "2");
  EXPECT_EQ(found("", "label = \"team=search\""), "1");
  EXPECT_EQ(found("", "label = \"team=sear\""), "");
  EXPECT_EQ(found("", "state = \"GONE\""), "filter");
  EXPECT_EQ(found("", "color = \"red\""), "filter");
}

TEST_P(KeyAdminTest, ImportedDigestsWorkAsKeys) {
  const std::string secret = "old-0123456789abcdef0123456789abcdef";
  pb::ImportKeysRequest request;
  request.set_parent("workspaces/acme");
  request.set_request_id("import");
  auto* imported = request.add_keys();
  imported->set_sha256(Sha256(secret));
  imported->mutable_key()->set_display_name("taken over");
  const auto keys_made = keys().Import(Operator(), request);
  ASSERT_TRUE(keys_made) << keys_made.error().message;
  EXPECT_EQ(Verify(KeyDigest(secret)).key().name(), "taken over");
  EXPECT_EQ(keys().Import(Operator(), request)->keys(0).name(), keys_made->keys(0).name());
  // All keys are imported, or none.
  request.set_request_id("again");
  auto* fresh = request.add_keys();
  fresh->set_sha256(Sha256("another"));
  const auto twice = keys().Import(Operator(), request);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().reason, "KEY_EXISTS");
  EXPECT_FALSE(Verify(Sha256("another")).found());
  fresh->set_sha256("short");
  EXPECT_EQ(keys().Import(Operator(), request).error().field, "keys[1].sha256");
}

TEST_P(KeyAdminTest, AReportedLeakDisablesByPolicyAndTellsNothing) {
  const auto made = MakeAKey("one");
  pb::ReportLeakedKeyRequest report;
  report.set_secret(made.secret());
  report.set_source("a public repository");
  ASSERT_TRUE(keys().ReportLeak(Operator(), report));
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_DISABLED);
  const AuditRecord event = Events().back();
  EXPECT_EQ(event.actor, "policy:leak");
  EXPECT_EQ(event.action, "key.disable");
  EXPECT_THAT(event.detail, HasSubstr("local:test"));
  EXPECT_THAT(event.detail, ::testing::Not(HasSubstr(made.secret())));
  const size_t events = Events().size();
  report.set_secret("sk-tollgate-unknown");
  EXPECT_TRUE(keys().ReportLeak(Operator(), report));
  report.set_secret(made.secret());
  EXPECT_TRUE(keys().ReportLeak(Operator(), report));
  EXPECT_EQ(Events().size(), events);
}

// --- use and policy

v1::ReportKeyUseRequest UseOf(const std::string& reporter, const std::string& key_id,
                              int64_t used_us, int64_t requests, int64_t refusals) {
  v1::ReportKeyUseRequest report;
  report.set_reporter(reporter);
  v1::KeyUse& use = *report.add_uses();
  use.set_key_id(key_id);
  use.set_last_used_us(used_us);
  use.set_hour(used_us / (3600 * kSecondUs));
  use.set_requests_in_hour(requests);
  use.set_minute(used_us / (60 * kSecondUs));
  use.set_refusals_in_minute(refusals);
  return report;
}

TEST_P(KeyAdminTest, UseOfAllReportersAddsUpAndRepeatedReportsDoNot) {
  const pb::Key key = MakeAKey("one").key();
  const int64_t now = clock_.WallUs();
  for (const char* reporter : {"a", "b", "a"}) {
    ASSERT_TRUE(StoreUse(*store_, {}, UseOf(reporter, IdOf(key), now - 5, 10, 0)));
  }
  ASSERT_TRUE(StoreUse(*store_, {}, UseOf("a", IdOf(key), now - 9, 12, 0)));
  EXPECT_EQ(Read(key.name()).requests_24h(), 22);
  EXPECT_EQ(Read(key.name()).last_used_time().nanos(), (now - 5) % kSecondUs * 1000);
  EXPECT_EQ(Read(key.name()).etag(), key.etag());  // use does not change the etag
  clock_.Advance(int64_t{26} * 3600 * kSecondUs);
  ASSERT_TRUE(PruneUse(*store_));
  EXPECT_EQ(Read(key.name()).requests_24h(), 0);
}

TEST_P(KeyAdminTest, RefusalsOfAllReportersDisableAKeyOnce) {
  const pb::Key key = MakeAKey("one").key();
  const PolicyOptions policy{.refusals_per_minute = 100};
  const int64_t now = clock_.WallUs();
  ASSERT_TRUE(StoreUse(*store_, policy, UseOf("a", IdOf(key), now, 60, 60)));
  ASSERT_TRUE(StoreUse(*store_, policy, UseOf("b", IdOf(key), now, 40, 40)));
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_ACTIVE);
  // Two replicas receive reports above the threshold at the same time.
  auto replica = Open(kPepper);
  ASSERT_TRUE(replica);
  ASSERT_TRUE(StoreUse(*store_, policy, UseOf("b", IdOf(key), now, 41, 41)));
  ASSERT_TRUE(StoreUse(*replica, policy, UseOf("a", IdOf(key), now, 61, 61)));
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_DISABLED);
  EXPECT_EQ(Events().back().actor, "policy:abuse");
  EXPECT_THAT(Events().back().detail, HasSubstr("more than 100 refused requests in a minute"));
  const size_t events = Events().size();
  // After a person has enabled the key, reports about the same minute do not disable it again.
  // Reports about the next minute do.
  ASSERT_TRUE(Enable(key.name()));
  ASSERT_TRUE(StoreUse(*replica, policy, UseOf("a", IdOf(key), now, 70, 70)));
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(Events().size(), events + 1);
  ASSERT_TRUE(StoreUse(*replica, policy, UseOf("a", IdOf(key), now + 60 * kSecondUs, 90, 101)));
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_DISABLED);
}

TEST_P(KeyAdminTest, TooManyAddressesDisableAKey) {
  const pb::Key key = MakeAKey("one").key();
  const PolicyOptions policy{.addresses_per_hour = 3};
  auto report = UseOf("a", IdOf(key), clock_.WallUs(), 1, 0);
  for (uint64_t address : {1, 2, 3}) report.mutable_uses(0)->add_addresses(address);
  EXPECT_TRUE(StoreUse(*store_, policy, report)->wants_addresses());
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_ACTIVE);
  report.set_reporter("b");
  report.mutable_uses(0)->add_addresses(4);
  ASSERT_TRUE(StoreUse(*store_, policy, report));
  EXPECT_EQ(Read(key.name()).state(), pb::KEY_STATE_DISABLED);
}

TEST_P(KeyAdminTest, MalformedReportsAreRefused) {
  EXPECT_FALSE(StoreUse(*store_, {}, v1::ReportKeyUseRequest()));
  EXPECT_FALSE(StoreUse(*store_, {}, UseOf("a", "not an id", 1, 1, 1)));
  EXPECT_FALSE(StoreUse(*store_, {}, UseOf("a", "0123456789ab", 1, -1, 1)));
  EXPECT_TRUE(StoreUse(*store_, {}, UseOf("a", "0123456789ab", INT64_MAX, 1, 1)));
}

// --- peppers

TEST_P(KeyAdminTest, KeysOfARetiredPepperGoOnWorkingAndMoveWhenUsed) {
  const auto made = MakeAKey("one");
  const auto unused = MakeAKey("two");
  const std::string next(32, 'n');
  store_ = Open(next, {kPepper});
  ASSERT_TRUE(store_);
  EXPECT_EQ(*store_->KeysOfRetiredPeppers(), 2);
  // Before a key has moved, a filter of the new pepper has it by its id only.
  for (const auto& live : *store_->LiveKeysAfter("", 10)) EXPECT_EQ(live.filter_tag, 0u);
  EXPECT_TRUE(Verify(KeyDigest(made.secret())).found());
  EXPECT_EQ(*store_->KeysOfRetiredPeppers(), 1);
  const auto fresh = MakeAKey("three");
  // Without the old pepper, keys that were used since work and the others do not.
  store_ = Open(next);
  EXPECT_TRUE(Verify(KeyDigest(made.secret())).found());
  EXPECT_TRUE(Verify(KeyDigest(fresh.secret())).found());
  EXPECT_FALSE(Verify(KeyDigest(unused.secret())).found());
  // A roll-back of the configuration works, too.
  store_ = Open(kPepper, {next});
  EXPECT_TRUE(Verify(KeyDigest(made.secret())).found());
}

// --- workspaces

Result<bool> HasZero(const std::string&) { return true; }

// Payments may arrive while a workspace is closing; that credit must not be lost with its keys.
TEST_P(KeyAdminTest, AWorkspaceWithCreditIsNotClosedAfterAll) {
  const auto made = MakeAKey("one");
  WorkspaceAdmin workspaces(*store_);
  pb::CloseWorkspaceRequest close;
  close.set_name("workspaces/acme");
  ASSERT_TRUE(workspaces.Close(Operator(), close, true));
  clock_.Advance(int64_t{7} * 24 * 3600 * kSecondUs);
  int asked = 0;
  Result<bool> zero = false;
  const auto ask = [&](const std::string& workspace) {
    EXPECT_EQ(workspace, "acme");
    ++asked;
    return zero;
  };
  pb::GetWorkspaceRequest get;
  get.set_name("workspaces/acme");
  ASSERT_TRUE(workspaces.CloseDue(ask));
  EXPECT_EQ(workspaces.Get(get)->state(), pb::WORKSPACE_STATE_CLOSING);
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(Events().back().action, "workspace.close_put_off");
  const auto events = Events().size();
  ASSERT_TRUE(workspaces.CloseDue(ask));
  EXPECT_EQ(asked, 1) << "not before an hour is over";
  // An unknown balance counts as not zero.
  zero = Unavailable("no billing");
  clock_.Advance(3600 * kSecondUs);
  ASSERT_TRUE(workspaces.CloseDue(ask));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(workspaces.Get(get)->state(), pb::WORKSPACE_STATE_CLOSING);
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(Events().size(), events) << "audited once";
  zero = true;
  clock_.Advance(3600 * kSecondUs);
  ASSERT_TRUE(workspaces.CloseDue(ask));
  EXPECT_EQ(workspaces.Get(get)->state(), pb::WORKSPACE_STATE_CLOSED);
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_REVOKED);
}

TEST_P(KeyAdminTest, AClosedWorkspaceLosesItsKeysAfterSevenDays) {
  const auto made = MakeAKey("one");
  WorkspaceAdmin workspaces(*store_);
  pb::CloseWorkspaceRequest close;
  close.set_name("workspaces/acme");
  EXPECT_EQ(workspaces.Close(Operator(), close, true)->state(), pb::WORKSPACE_STATE_CLOSING);
  ASSERT_TRUE(workspaces.CloseDue(HasZero));
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_ACTIVE);
  pb::ReopenWorkspaceRequest reopen;
  reopen.set_name("workspaces/acme");
  EXPECT_EQ(workspaces.Reopen(Operator(), reopen)->state(), pb::WORKSPACE_STATE_ACTIVE);
  clock_.Advance(int64_t{8} * 24 * 3600 * kSecondUs);
  ASSERT_TRUE(workspaces.CloseDue(HasZero));
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(workspaces.Close(Operator(), close, false).error().reason, "BALANCE_NOT_ZERO");
  ASSERT_TRUE(workspaces.Close(Operator(), close, true));
  clock_.Advance(int64_t{7} * 24 * 3600 * kSecondUs);
  ASSERT_TRUE(workspaces.CloseDue(HasZero));
  EXPECT_EQ(Read(made.key().name()).state(), pb::KEY_STATE_REVOKED);
  EXPECT_EQ(Events().back().actor, "policy:close");
  EXPECT_EQ(workspaces.Reopen(Operator(), reopen).error().reason, "WORKSPACE_CLOSED");
  pb::CreateKeyRequest request;
  request.set_parent("workspaces/acme");
  request.set_request_id("late");
  EXPECT_EQ(keys().Create(Operator(), request).error().reason, "WORKSPACE_CLOSED");
}

TEST_P(KeyAdminTest, MembersListTheirWorkspacesOperatorsAll) {
  WorkspaceAdmin workspaces(*store_);
  for (const char* id : {"b", "c"}) {
    pb::CreateWorkspaceRequest request;
    request.set_workspace_id(id);
    clock_.Advance(kSecondUs);
    ASSERT_TRUE(workspaces.Create(Operator(), request));
  }
  pb::ListWorkspacesRequest request;
  request.set_page_size(2);
  const auto page = workspaces.List(Operator(), request);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->workspaces(0).name(), "workspaces/c");
  request.set_page_token(page->next_page_token());
  EXPECT_EQ(workspaces.List(Operator(), request)->workspaces(0).name(), "workspaces/acme");
  Caller ann = Developer("ann");
  EXPECT_EQ(workspaces.List(ann, {})->workspaces_size(), 0);
  ann.roles["b"] = common::v1::ROLE_VIEWER;
  EXPECT_EQ(workspaces.List(ann, {})->workspaces_size(), 1);
  pb::CreateWorkspaceRequest taken;
  taken.set_workspace_id("b");
  taken.set_request_id("new");
  EXPECT_EQ(workspaces.Create(Operator(), taken).error().reason, "WORKSPACE_EXISTS");
  pb::UpdateWorkspaceRequest update;
  update.mutable_workspace()->set_name("workspaces/b");
  update.mutable_workspace()->set_report_time_zone("Mars/Olympus");
  EXPECT_EQ(workspaces.Update(Operator(), update).error().field, "workspace.report_time_zone");
  update.mutable_workspace()->set_report_time_zone("Europe/Berlin");
  EXPECT_EQ(workspaces.Update(Operator(), update)->report_time_zone(), "Europe/Berlin");
}

INSTANTIATE_TEST_SUITE_P(Databases, KeyAdminTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

}  // namespace
}  // namespace tollgate::auth
