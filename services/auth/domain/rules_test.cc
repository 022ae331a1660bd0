#include "services/auth/domain/rules.h"

#include <gtest/gtest.h>

namespace tollgate::auth {
namespace {

TEST(AuthRules, WorkspaceIds) {
  for (const char* good : {"a", "team-a", "0", "a--b"}) EXPECT_TRUE(CheckWorkspaceId(good)) << good;
  for (const char* bad : {"", "-a", "a-", "A", "a b", "a/b", "a_b", "\xc3\xa4"}) {
    EXPECT_FALSE(CheckWorkspaceId(bad)) << bad;
  }
  EXPECT_TRUE(CheckWorkspaceId(std::string(63, 'a')));
  EXPECT_FALSE(CheckWorkspaceId(std::string(64, 'a')));
}

TEST(AuthRules, NamesAndRemarksHaveNoControlCharacters) {
  EXPECT_TRUE(CheckName("Größe 1"));
  EXPECT_FALSE(CheckName("a\nb"));
  EXPECT_FALSE(CheckName("\xff"));
  EXPECT_FALSE(CheckName("a\u202eb"));
  EXPECT_FALSE(CheckName(std::string(101, 'a')));
  EXPECT_FALSE(CheckRemark(std::string("a\0b", 3), "reason"));
  EXPECT_EQ(CheckRemark(std::string(501, 'a'), "reason").error().param, "reason");
}

TEST(AuthRules, LimitsAreNotNegativeAndBounded) {
  EXPECT_TRUE(CheckLimits({}));
  EXPECT_FALSE(CheckLimits({.requests_per_minute = -1}));
  EXPECT_FALSE(CheckLimits({.tokens_per_minute = INT64_MAX}));
  EXPECT_FALSE(CheckLimits({.concurrent_requests = -1}));
}

TEST(AuthRules, ExpiryIsInTheFutureOrNever) {
  EXPECT_TRUE(CheckExpiry(0, 1000));
  EXPECT_TRUE(CheckExpiry(1001, 1000));
  EXPECT_FALSE(CheckExpiry(1000, 1000));
  EXPECT_FALSE(CheckExpiry(-1, 1000));
}

TEST(AuthRules, AllowedModels) {
  EXPECT_TRUE(CheckAllowedModels({}));
  EXPECT_TRUE(CheckAllowedModels({"a/b", "a/B", "a/*"}));
  for (const char* bad :
       {"", "a", "/b", "a/", "a/b/c", "a/b\n", "a b/c", "*", "*/*", "a/b*", "a/**"}) {
    EXPECT_FALSE(CheckAllowedModels({bad})) << bad;
  }
  EXPECT_FALSE(CheckAllowedModels({"a/b", "a/b"}));
  std::vector<std::string> many;
  for (int i = 0; i < 201; ++i) many.push_back("a/" + std::to_string(i));
  EXPECT_FALSE(CheckAllowedModels(many));
}

TEST(AuthRules, AllowedAddresses) {
  EXPECT_TRUE(CheckAllowedAddresses({"192.0.2.7", "10.0.0.0/8", "2001:db8::/32"}));
  for (const char* bad : {"", "10.0.0.0/33", "example.com", "10.0.0.1 ", "10.0.0.1\n"}) {
    EXPECT_FALSE(CheckAllowedAddresses({bad})) << bad;
  }
  EXPECT_FALSE(CheckAllowedAddresses(std::vector<std::string>(101, "192.0.2.7")));
}

TEST(AuthRules, Labels) {
  EXPECT_TRUE(CheckLabels({{"team", "Suche"}, {"cost-centre_2", ""}}));
  EXPECT_FALSE(CheckLabels({{"Team", "x"}}));
  EXPECT_FALSE(CheckLabels({{"", "x"}}));
  EXPECT_FALSE(CheckLabels({{"team", "a\nb"}}));
  EXPECT_FALSE(CheckLabels({{"team", std::string(101, 'a')}}));
}

}  // namespace
}  // namespace tollgate::auth
