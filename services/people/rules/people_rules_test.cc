#include "services/people/rules/people_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace tollgate::people {
namespace {

TEST(PeopleRulesTest, AddressesAreComparedInLowerCase) {
  EXPECT_EQ(*NormalEmail("Anna.Berg@Example.COM", "email"), "anna.berg@example.com");
  for (const char* bad : {"", "anna", "@example.com", "anna@", "a@b@c", "a b@c", "a\n@c", "<a@c>",
                          "a@b,c@d", "a@\xff"}) {
    const auto result = NormalEmail(bad, "email");
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.error().field, "email");
  }
  EXPECT_FALSE(NormalEmail(std::string(250, 'a') + "@b.de", "email").ok());
}

TEST(PeopleRulesTest, PasswordsHaveALengthAndAreNotTheAddress) {
  EXPECT_TRUE(CheckPassword("correct horse battery", "a@b.c", "p").ok());
  EXPECT_TRUE(CheckPassword(std::string(127, 'a') + "b", "a@b.c", "p").ok());
  for (const std::string& bad :
       {std::string("short"), std::string(257, 'x') + "y", std::string("aaaaaaaaaaaa"),
        std::string("anna@example.com"), std::string("ten bytes \xff\xff")}) {
    EXPECT_FALSE(CheckPassword(bad, "anna@example.com", "p").ok()) << bad;
  }
}

TEST(PeopleRulesTest, ScopesAreRolesThatThePersonHas) {
  const std::map<std::string, Role> roles = {{"acme", Role::ROLE_ADMIN},
                                             {"other", Role::ROLE_BILLING}};
  EXPECT_TRUE(CheckScopes({"admin"}, roles, false).ok());
  EXPECT_TRUE(CheckScopes({"viewer", "workspaces/acme"}, roles, false).ok());
  EXPECT_TRUE(CheckScopes({"billing", "developer"}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({"owner"}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({"operator"}, roles, false).ok());
  EXPECT_TRUE(CheckScopes({"operator"}, {}, true).ok());
  EXPECT_FALSE(CheckScopes({"viewer", "workspaces/foreign"}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({"workspaces/acme"}, roles, false).ok()) << "no role";
  EXPECT_FALSE(CheckScopes({"viewer", "workspaces/acme/keys/k"}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({"root"}, roles, false).ok());
  EXPECT_FALSE(CheckScopes({"viewer"}, {}, false).ok()) << "a member of nothing";
}

TEST(PeopleRulesTest, AnAdminManagesThoseBelow) {
  EXPECT_TRUE(MayManage(Role::ROLE_OWNER, Role::ROLE_OWNER));
  EXPECT_TRUE(MayManage(Role::ROLE_ADMIN, Role::ROLE_DEVELOPER));
  EXPECT_FALSE(MayManage(Role::ROLE_ADMIN, Role::ROLE_ADMIN));
  EXPECT_FALSE(MayManage(Role::ROLE_ADMIN, Role::ROLE_OWNER));
  EXPECT_FALSE(MayManage(Role::ROLE_BILLING, Role::ROLE_VIEWER));
}

TEST(PeopleRulesTest, SecretsHave256BitsAndAreNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = NewSecret();
    EXPECT_EQ(secret.size(), 43U);
    EXPECT_EQ(secret.find_first_of("+/="), std::string::npos);
    EXPECT_TRUE(seen.insert(secret).second);
  }
  EXPECT_EQ(HashSecret("x").size(), 32U);
  EXPECT_NE(CsrfToken("cookie"), CsrfToken("other"));
}

TEST(PeopleRulesTest, RecoveryCodesAreReadAsTheyAreTyped) {
  const auto codes = NewRecoveryCodes();
  EXPECT_EQ(codes.size(), 10U);
  EXPECT_EQ(std::set<std::string>(codes.begin(), codes.end()).size(), 10U);
  EXPECT_EQ(codes[0].size(), 11U);
  EXPECT_EQ(NormalRecoveryCode("ABCDE-FghiJ "), "abcdefghij");
}

TEST(PeopleRulesTest, TriesAreLimitedWithABurst) {
  const TryLimit limit{.interval_us = 60, .burst = 3};
  int64_t full = 0;
  const int64_t now = 1'000'000;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(WaitForTry(limit, full, now), 0);
    full = AfterTry(limit, full, now);
  }
  EXPECT_EQ(WaitForTry(limit, full, now), 60);
  EXPECT_EQ(WaitForTry(limit, full, now + 59), 1);
  EXPECT_EQ(WaitForTry(limit, full, now + 60), 0);
}

}  // namespace
}  // namespace tollgate::people
