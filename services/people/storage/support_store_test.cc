#include "services/people/storage/support_store.h"

#include <gmock/gmock.h>

#include "common/base/time_units.h"
#include "services/people/testing/people_world.h"

namespace tollgate::people {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

class SupportStoreTest : public PeopleTest {
 protected:
  void SetUp() override {
    PeopleTest::SetUp();
    if (!store_) return;
    support_ = std::make_unique<SupportStore>(store_->database());
    operator_ = Make("op@x.org", "", Role::ROLE_UNSPECIFIED, true);
    actor_ = {.name = "user:" + operator_.user_id, .address = "192.0.2.7"};
  }
  void TearDown() override {
    support_.reset();
    PeopleTest::TearDown();
  }
  AdminResult<SupportStore::Made> Create(const std::string& reason, const std::string& id,
                                         int64_t expires_us = 0) {
    SupportSession session;
    session.workspace = "acme";
    session.user_id = operator_.user_id;
    session.reason = reason;
    session.expires_us = expires_us;
    return support_->Create(actor_, session, id);
  }
  bool Works(const std::string& secret) {
    auto used = support_->Use(secret, "192.0.2.7", "GET /admin/v1/workspaces/acme");
    EXPECT_TRUE(used.ok());
    return used->has_value();
  }

  std::unique_ptr<SupportStore> support_;
  Person operator_;
  Actor actor_;
};
INSTANTIATE_TEST_SUITE_P(Databases, SupportStoreTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgres), [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

// A support session reads as an owner, and each use is in the workspace's log by its id.
TEST_P(SupportStoreTest, ItReadsAsTheOwnerAndEachUseIsAudited) {
  auto made = Create("ticket 12: the balance looks wrong", "s1");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(made->secret.starts_with("tgs_"));
  EXPECT_EQ(made->session.expires_us, clock_.WallUs() + 3600 * kSecondUs);
  auto used = support_->Use(made->secret, "192.0.2.7", "GET /admin/v1/workspaces/acme/balance\n");
  ASSERT_TRUE(used.ok() && used->has_value());
  const common::v1::Identity& identity = **used;
  EXPECT_EQ(identity.actor(), "support:" + made->session.id);
  EXPECT_TRUE(identity.support());
  EXPECT_FALSE(identity.platform_operator());
  EXPECT_EQ(identity.user_id(), "") << "it belongs to no account";
  EXPECT_EQ(identity.signed_in_us(), 0) << "never a fresh sign-in";
  ASSERT_EQ(identity.memberships_size(), 1);
  EXPECT_EQ(identity.memberships(0).workspace(), "acme");
  EXPECT_EQ(identity.memberships(0).role(), Role::ROLE_OWNER);

  std::vector<std::string> lines;
  for (const AuditRecord& event : AuditEvents()) {
    lines.push_back(event.actor + " " + event.action + " " + event.subject + " " + event.detail);
  }
  const std::string subject = "support_session:" + made->session.id;
  EXPECT_THAT(lines, Contains(actor_.name + " support_session.create " + subject +
                              " ticket 12: the balance looks wrong"));
  EXPECT_THAT(lines, Contains("support:" + made->session.id + " support_session.use " + subject +
                              " GET /admin/v1/workspaces/acme/balance "));
}

TEST_P(SupportStoreTest, ItEndsByItselfAndWhenItIsEnded) {
  const int64_t now = clock_.WallUs();
  for (const int64_t bad : {now, now - 1, now + 3600 * kSecondUs + 1}) {
    EXPECT_EQ(ReasonOf(Create("reason", "bad", bad)), "INVALID_FIELD");
  }
  auto hour = Create("reason", "s1"), minute = Create("reason", "s2", now + 60 * kSecondUs),
       ended = Create("reason", "s3");
  ASSERT_TRUE(hour.ok() && minute.ok() && ended.ok());
  EXPECT_TRUE(Works(ended->secret));
  EXPECT_EQ(ReasonOf(support_->End(actor_, "other", ended->session.id)), "NOT_FOUND");
  ASSERT_TRUE(support_->End({.name = "user:owner"}, "acme", ended->session.id).ok());
  EXPECT_FALSE(Works(ended->secret));
  EXPECT_TRUE(support_->End({.name = "user:owner"}, "acme", ended->session.id).ok()) << "again";
  EXPECT_THAT(Actions(), Contains("support_session.end").Times(1));
  clock_.Advance(61 * kSecondUs);
  EXPECT_FALSE(Works(minute->secret));
  EXPECT_TRUE(Works(hour->secret));
  clock_.Advance(3600 * kSecondUs);
  EXPECT_FALSE(Works(hour->secret));
  EXPECT_FALSE(Works("tgs_wrong"));
  auto listed = support_->List("acme", 10, "");
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 3U) << "those that ended stay in the list";
  for (const auto& session : *listed) {
    EXPECT_EQ(session.uses, session.id == minute->session.id ? 0 : 1) << session.id;
  }
  EXPECT_THAT(*support_->List("other", 10, ""), IsEmpty());
}

TEST_P(SupportStoreTest, WhoIsNoOperatorAnyMoreSeesNothing) {
  auto made = Create("reason", "s1");
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(Works(made->secret));
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, operator_.user_id, {.platform_operator = false}).ok());
  EXPECT_FALSE(Works(made->secret));
}

TEST_P(SupportStoreTest, ARequestMakesOneSessionAndShowsItsSecretOnce) {
  auto first = Create("reason", "s1"), again = Create("reason", "s1");
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(again->session.id, first->session.id);
  EXPECT_EQ(again->secret, "");
  EXPECT_EQ(ReasonOf(Create("another reason", "s1")), "REQUEST_ID_REUSED");
  for (const std::string& bad : {std::string(), std::string("a\nb"), std::string(501, 'x')}) {
    EXPECT_EQ(ReasonOf(Create(bad, "s2")), "INVALID_FIELD");
  }
  SupportSession nowhere;
  nowhere.workspace = "nowhere";
  nowhere.reason = "reason";
  EXPECT_EQ(ReasonOf(support_->Create(actor_, nowhere, "s3")), "NOT_FOUND");
}

// A program that reads in a loop must not fill the audit log.
TEST_P(SupportStoreTest, UsesAreLimited) {
  auto made = Create("reason", "s1");
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(store_->database()
                  .Write([&](PeopleTx& tx) -> AdminResult<void> {
                    auto set = tx.Execute("UPDATE support_session SET uses = $1",
                                          {SupportStore::kMostUses - 1});
                    if (!set) return Fail{set.error()};
                    return {};
                  })
                  .ok());
  EXPECT_TRUE(Works(made->secret));
  EXPECT_FALSE(Works(made->secret));
}

}  // namespace
}  // namespace tollgate::people
