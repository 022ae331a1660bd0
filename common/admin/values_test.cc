#include "common/admin/values.h"

#include <gtest/gtest.h>

namespace tollgate::admin {
namespace {

TEST(AdminValuesTest, NamesHaveNonEmptyPartsAndWorkspaceIds) {
  const auto parts = MatchName("workspaces/*/payments/*", "workspaces/acme/payments/p1");
  ASSERT_TRUE(parts);
  EXPECT_EQ(*parts, (std::vector<std::string>{"acme", "p1"}));
  for (const char* name :
       {"", "workspaces/acme/payments/", "workspaces//payments/p1", "workspaces/acme/payments/p1/",
        "/workspaces/acme/payments/p1", "workspaces/acme/keys/p1", "workspaces/ACME/payments/p1",
        "workspaces/-/payments/p1", "workspaces/acme", "workspaces/acme/payments/p!",
        "workspaces/acme/payments/p 1", "workspaces/acme/payments/p:1"}) {
    EXPECT_FALSE(MatchName("workspaces/*/payments/*", name)) << name;
  }
  using namespace std::literals;
  for (const std::string_view id : {"p1\0"sv, "\0p1"sv, "p\n1"sv, "p\x7f"sv}) {
    EXPECT_FALSE(
        MatchName("workspaces/*/payments/*", "workspaces/acme/payments/" + std::string(id)))
        << "a control character";
  }
  const auto bad = NameParts("workspaces/*", "acme", "parent");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().field, "parent");
}

TEST(AdminValuesTest, AmountsAreDecimalTextsWithoutSpareDigits) {
  EXPECT_EQ(*ParseUsd("5", "f"), 5'000'000'000);
  EXPECT_EQ(*ParseUsd("-0.25", "f"), -250'000'000);
  EXPECT_EQ(*ParseUsd("0.000000001", "f"), 1);
  for (const char* text : {"", "-", "+5", "05", "5.", ".5", "1e2", " 5", "0.0000000001", "5,00",
                           "99999999999999", "0x5"}) {
    EXPECT_FALSE(ParseUsd(text, "f").ok()) << text;
  }
  EXPECT_EQ(FormatUsd(5'000'000'000), "5.00");
  EXPECT_EQ(FormatUsd(12'500'000'000), "12.50");
  EXPECT_EQ(FormatUsd(-37'500), "-0.0000375");
  EXPECT_EQ(FormatUsd(0), "0.00");
}

TEST(AdminValuesTest, RequestIdsAreShortAndPlain) {
  EXPECT_TRUE(IsRequestId("3f0c-A_9"));
  EXPECT_FALSE(IsRequestId(""));
  EXPECT_FALSE(IsRequestId("a b"));
  EXPECT_FALSE(IsRequestId(std::string(65, 'a')));
  EXPECT_EQ(RequiredRequestId("").error().field, "request_id");
}

}  // namespace
}  // namespace tollgate::admin
