#include "services/people/storage/people_store.h"

#include <gmock/gmock.h>

#include "services/people/testing/people_world.h"

namespace tollgate::people {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class PeopleStoreTest : public PeopleTest {};
INSTANTIATE_TEST_SUITE_P(Databases, PeopleStoreTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgres), [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

TEST_P(PeopleStoreTest, APersonIsMadeOncePerRequestId) {
  const PeopleStore::NewPerson anna = {
      .email = "Anna@Example.com", .display_name = "Anna", .request_id = "r1"};
  auto made = store_->CreatePerson(kOperator, anna);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->view.person.email, "anna@example.com");
  EXPECT_FALSE(made->link_token.empty());
  auto again = store_->CreatePerson(kOperator, anna);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->view.person.user_id, made->view.person.user_id);
  EXPECT_TRUE(again->link_token.empty()) << "a secret is shown once";
  PeopleStore::NewPerson other = anna;
  other.display_name = "Other";
  EXPECT_EQ(ReasonOf(store_->CreatePerson(kOperator, other)), "REQUEST_ID_REUSED");
  other.request_id = "r2";
  EXPECT_EQ(ReasonOf(store_->CreatePerson(kOperator, other)), "USER_EXISTS");
  EXPECT_THAT(Actions(), Contains("user.create").Times(1));
}

TEST_P(PeopleStoreTest, PersonsAreListedInPagesNewestFirst) {
  std::vector<std::string> made;
  for (int i = 0; i < 5; ++i) made.push_back(Make("p" + std::to_string(i) + "@x.org").user_id);
  std::vector<std::string> seen;
  std::string after;
  while (true) {
    auto page = store_->ListPersons(2, after);
    ASSERT_TRUE(page.ok());
    if (page->empty()) break;
    for (const auto& view : *page) seen.push_back(view.person.user_id);
    after = seen.back();
  }
  std::sort(made.rbegin(), made.rend());
  EXPECT_EQ(seen, made);
}

TEST_P(PeopleStoreTest, AWorkspaceKeepsItsLastOwner) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org", "", Role::ROLE_ADMIN);
  EXPECT_EQ(ReasonOf(store_->SetRole(kOperator, "acme", anna.user_id, Role::ROLE_ADMIN)),
            "LAST_OWNER");
  EXPECT_EQ(ReasonOf(store_->RemoveMember(kOperator, "acme", anna.user_id, Role::ROLE_OWNER)),
            "LAST_OWNER");
  EXPECT_EQ(ReasonOf(store_->RemoveMember({.name = "user:" + anna.user_id}, "acme", anna.user_id,
                                          std::nullopt)),
            "LAST_OWNER")
      << "leaving, too";
  ASSERT_TRUE(store_->SetRole(kOperator, "acme", bert.user_id, Role::ROLE_OWNER).ok());
  EXPECT_TRUE(store_->SetRole(kOperator, "acme", anna.user_id, Role::ROLE_VIEWER).ok());
  EXPECT_EQ(ReasonOf(store_->RemoveMember(kOperator, "acme", bert.user_id, Role::ROLE_OWNER)),
            "LAST_OWNER");
  // An owner who cannot sign in does not count.
  ASSERT_TRUE(store_->SetRole(kOperator, "acme", anna.user_id, Role::ROLE_OWNER).ok());
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, anna.user_id, {.state = PersonState::kDisabled}).ok());
  EXPECT_EQ(ReasonOf(store_->SetRole(kOperator, "acme", bert.user_id, Role::ROLE_ADMIN)),
            "LAST_OWNER");
}

TEST_P(PeopleStoreTest, AnAdminRemovesOnlyThoseBelow) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org", "", Role::ROLE_ADMIN);
  const Person carl = Make("carl@x.org", "", Role::ROLE_DEVELOPER);
  const Actor admin = {.name = "user:x"};
  EXPECT_EQ(ReasonOf(store_->RemoveMember(admin, "acme", anna.user_id, Role::ROLE_ADMIN)),
            "PERMISSION_DENIED");
  EXPECT_EQ(ReasonOf(store_->RemoveMember(admin, "acme", bert.user_id, Role::ROLE_ADMIN)),
            "PERMISSION_DENIED");
  EXPECT_EQ(ReasonOf(store_->RemoveMember(admin, "acme", carl.user_id, Role::ROLE_ADMIN)), "");
  EXPECT_EQ(ReasonOf(store_->RemoveMember(admin, "acme", carl.user_id, Role::ROLE_ADMIN)),
            "NOT_FOUND");
  EXPECT_EQ(ReasonOf(store_->GetMember("other", anna.user_id)), "NOT_FOUND");
}

TEST_P(PeopleStoreTest, MembersAreFoundByTheStartOfNameOrAddress) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  Make("bert_1@x.org", "", Role::ROLE_VIEWER);
  ASSERT_TRUE(store_->ChangePerson(kOperator, anna.user_id, {.display_name = "Berg, Ä."}).ok());
  const auto found = [&](const std::string& query) {
    std::vector<std::string> emails;
    auto members = store_->ListMembers("acme", query, 10, "");
    EXPECT_TRUE(members.ok());
    for (const Member& member : *members) emails.push_back(member.person.email);
    return emails;
  };
  // Ordered by id, which is random for people created in the same millisecond.
  EXPECT_THAT(found(""), UnorderedElementsAre("bert_1@x.org", "anna@x.org"));
  EXPECT_THAT(found("BER"), UnorderedElementsAre("bert_1@x.org", "anna@x.org"));
  EXPECT_THAT(found("anna"), ElementsAre("anna@x.org"));
  EXPECT_THAT(found("bert_"), ElementsAre("bert_1@x.org"));
  EXPECT_THAT(found("%"), ElementsAre()) << "not a pattern";
  EXPECT_THAT(found("x.org"), ElementsAre()) << "the start only";
}

TEST_P(PeopleStoreTest, AnInvitationWorksOnceForItsAddressAndSevenDays) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org");
  const Actor owner = {.name = "user:" + anna.user_id};
  const Invitation wanted = {
      .workspace = "acme", .email = "bert@x.org", .role = Role::ROLE_BILLING};
  auto made = store_->CreateInvitation(owner, wanted, "r1");
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto again = store_->CreateInvitation(owner, wanted, "r1");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->invitation.id, made->invitation.id);
  EXPECT_EQ(again->token, "");
  std::string workspace;
  EXPECT_EQ(ReasonOf(store_->AcceptInvitation(owner, anna.user_id, made->token, &workspace)),
            "INVITATION_FOR_ANOTHER");
  auto member = store_->AcceptInvitation({.name = "user:" + bert.user_id}, bert.user_id,
                                         made->token, &workspace);
  ASSERT_TRUE(member.ok()) << member.error().message;
  EXPECT_EQ(member->role, Role::ROLE_BILLING);
  EXPECT_EQ(workspace, "acme");
  EXPECT_EQ(ReasonOf(store_->AcceptInvitation(owner, bert.user_id, made->token, &workspace)),
            "INVITATION_EXPIRED")
      << "used";
  EXPECT_EQ(ReasonOf(store_->CreateInvitation(owner, wanted, "r2")), "MEMBER_EXISTS");

  const Person carl = Make("carl@x.org");
  Invitation late = wanted;
  late.email = "carl@x.org";
  auto first = store_->CreateInvitation(owner, late, "r3");
  auto second = store_->CreateInvitation(owner, late, "r4");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(ReasonOf(store_->AcceptInvitation(owner, carl.user_id, first->token, &workspace)),
            "INVITATION_EXPIRED")
      << "replaced by the second";
  EXPECT_EQ(store_->ListInvitations("acme", 10, "")->size(), 1U);
  clock_.Advance(int64_t{7} * 24 * 3600 * 1'000'000);
  EXPECT_EQ(ReasonOf(store_->AcceptInvitation(owner, carl.user_id, second->token, &workspace)),
            "INVITATION_EXPIRED");
  EXPECT_EQ(store_->ListInvitations("acme", 10, "")->size(), 0U);
  Invitation nowhere = wanted;
  nowhere.workspace = "nowhere";
  EXPECT_EQ(ReasonOf(store_->CreateInvitation(owner, nowhere, "r5")), "NOT_FOUND");
}

// Otherwise a removed member could come back through an invitation of their own.
TEST_P(PeopleStoreTest, InvitationsGoWithTheRoleThatMadeThem) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org", "", Role::ROLE_OWNER);
  int requests = 0;
  const auto invite = [&](const Person& by, const std::string& workspace, const std::string& email,
                          Role role) {
    EXPECT_TRUE(store_
                    ->CreateInvitation({.name = "user:" + by.user_id},
                                       {.workspace = workspace, .email = email, .role = role},
                                       "r" + std::to_string(++requests))
                    .ok());
  };
  const auto open = [&](const std::string& workspace) {
    std::vector<std::string> emails;
    for (const Invitation& one : *store_->ListInvitations(workspace, 10, "")) {
      emails.push_back(one.email);
    }
    return emails;
  };
  invite(bert, "acme", "owner@x.org", Role::ROLE_OWNER);
  invite(bert, "acme", "viewer@x.org", Role::ROLE_VIEWER);
  invite(bert, "other", "elsewhere@x.org", Role::ROLE_OWNER);
  EXPECT_TRUE(store_
                  ->CreateInvitation({.name = "token:t1"},
                                     {.workspace = "acme",
                                      .email = "token@x.org",
                                      .role = Role::ROLE_ADMIN,
                                      .actor = "user:" + bert.user_id},
                                     "r")
                  .ok());
  invite(anna, "acme", "annas@x.org", Role::ROLE_OWNER);
  ASSERT_TRUE(store_->SetRole(kOperator, "acme", bert.user_id, Role::ROLE_ADMIN).ok());
  EXPECT_THAT(open("acme"), UnorderedElementsAre("annas@x.org", "viewer@x.org"))
      << "an invitation that an admin may make stays";
  ASSERT_TRUE(store_->RemoveMember(kOperator, "acme", bert.user_id, Role::ROLE_OWNER).ok());
  EXPECT_THAT(open("acme"), ElementsAre("annas@x.org"));
  EXPECT_THAT(open("other"), ElementsAre("elsewhere@x.org"));
  EXPECT_THAT(Actions(), Contains("invitation.delete").Times(3));
}

TEST_P(PeopleStoreTest, TheLastOwnerIsNotDisabled) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org", "", Role::ROLE_ADMIN);
  const PeopleStore::PersonChange disable = {.state = PersonState::kDisabled};
  EXPECT_EQ(ReasonOf(store_->ChangePerson(kOperator, anna.user_id, disable)), "LAST_OWNER");
  EXPECT_TRUE(store_->GetPerson(anna.user_id)->person.active());
  EXPECT_EQ(ReasonOf(store_->ChangePerson(kOperator, bert.user_id, disable)), "");
  const Person carl = Make("carl@x.org", "", Role::ROLE_OWNER);
  EXPECT_EQ(ReasonOf(store_->ChangePerson(kOperator, anna.user_id, disable)), "");
  EXPECT_EQ(ReasonOf(store_->ChangePerson(kOperator, carl.user_id, disable)), "LAST_OWNER");
}

TEST_P(PeopleStoreTest, TokensAreShownOnceAndEnd) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_DEVELOPER);
  const Actor actor = {.name = "user:" + anna.user_id};
  AccessToken token{.user_id = anna.user_id,
                    .name = "ci",
                    .scopes = {"developer", "workspaces/acme"},
                    .expires_us = clock_.WallUs() + 1000};
  auto made = store_->CreateToken(actor, token, "r1");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made->secret.starts_with("tgp_"));
  auto again = store_->CreateToken(actor, token, "r1");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->token.id, made->token.id);
  EXPECT_EQ(again->secret, "");
  auto identity = sign_in_->ResolveToken(made->secret, {.address = "192.0.2.9"});
  ASSERT_TRUE(identity.ok() && identity->has_value());
  EXPECT_EQ((*identity)->actor(), "token:" + made->token.id);
  EXPECT_TRUE((*identity)->by_token());
  EXPECT_EQ((*identity)->signed_in_us(), 0) << "never a step-up";
  EXPECT_THAT((*identity)->scopes(), ElementsAre("developer", "workspaces/acme"));
  EXPECT_EQ(store_->ListTokens(anna.user_id)->at(0).used_us, clock_.WallUs());
  EXPECT_FALSE(sign_in_->ResolveToken(made->secret + "x", {})->has_value());
  EXPECT_FALSE(sign_in_->ResolveToken("", {})->has_value());
  clock_.Advance(1000);
  EXPECT_FALSE(sign_in_->ResolveToken(made->secret, {})->has_value()) << "expired";
  EXPECT_TRUE(store_->ListTokens(anna.user_id)->empty());

  token.expires_us = clock_.WallUs() + 1'000'000;
  auto second = store_->CreateToken(actor, token, "r2");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(ReasonOf(store_->DeleteToken(actor, "other-user", second->token.id)), "NOT_FOUND");
  ASSERT_TRUE(sign_in_->ResolveToken(second->secret, {})->has_value());
  EXPECT_EQ(ReasonOf(store_->DeleteToken(actor, anna.user_id, second->token.id)), "");
  EXPECT_FALSE(sign_in_->ResolveToken(second->secret, {})->has_value());
  auto third = store_->CreateToken(actor, token, "r3");
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, anna.user_id, {.state = PersonState::kDisabled}).ok());
  EXPECT_FALSE(sign_in_->ResolveToken(third->secret, {})->has_value()) << "disabled";
}

TEST_P(PeopleStoreTest, TheDemonstrationHasOneOwnerAndOneLink) {
  auto link = store_->DemonstrationLink("acme");
  ASSERT_TRUE(link.ok());
  EXPECT_EQ(store_->DemonstrationLink("acme")->token, "") << "the first start only";
  auto signed_in = sign_in_->ByLink(link->token, "", {});
  ASSERT_TRUE(signed_in.ok());
  auto identity = sign_in_->ResolveCookie(signed_in->session.cookie, {});
  ASSERT_TRUE(identity.ok() && identity->has_value());
  ASSERT_EQ((*identity)->memberships_size(), 1);
  EXPECT_EQ((*identity)->memberships(0).workspace(), "acme");
  EXPECT_EQ((*identity)->memberships(0).role(), Role::ROLE_OWNER);
  EXPECT_EQ(ReasonOf(sign_in_->ByLink(link->token, "", {})), "LINK_INVALID") << "once";
}

// A failed change leaves nothing behind, not even an audit event.
TEST_P(PeopleStoreTest, ARefusedChangeIsNotAudited) {
  const Person anna = Make("anna@x.org", "", Role::ROLE_OWNER);
  const size_t before = Actions().size();
  EXPECT_FALSE(store_->SetRole(kOperator, "acme", anna.user_id, Role::ROLE_VIEWER).ok());
  EXPECT_FALSE(store_->DeleteSession(kOperator, anna.user_id, "none").ok());
  EXPECT_EQ(Actions().size(), before);
}

}  // namespace
}  // namespace tollgate::people
