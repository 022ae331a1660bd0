#include "common/admin/filter.h"

#include <gtest/gtest.h>

namespace tollgate::admin {
namespace {

constexpr std::string_view kTexts[] = {"kind", "key"};
constexpr std::string_view kTimes[] = {"create_time"};

TEST(FilterTest, TermsAreJoinedByAnd) {
  const auto terms = ParseFilter(
      R"(kind = "topup" AND create_time>="2026-11-01T00:00:00Z"  AND create_time < "2026-12-01")",
      kTexts, kTimes);
  ASSERT_TRUE(terms.ok()) << terms.error().message;
  ASSERT_EQ(terms->size(), 3U);
  EXPECT_EQ((*terms)[0].field, "kind");
  EXPECT_EQ((*terms)[0].value, "topup");
  EXPECT_EQ((*terms)[1].op, FilterTerm::Op::kAtLeast);
  EXPECT_EQ(*FilterTime((*terms)[1]), 1'793'491'200'000'000);
  EXPECT_EQ((*terms)[2].op, FilterTerm::Op::kBefore);
  EXPECT_TRUE(ParseFilter("", kTexts)->empty());
  EXPECT_EQ(ParseFilter(R"(key="a\"b\\")", kTexts)->front().value, R"(a"b\)");
}

TEST(FilterTest, AnythingElseNamesTheFilter) {
  for (const char* text :
       {"kind", "kind =", "kind = topup", "kind = \"a", "nope = \"a\"", "kind >= \"a\"",
        "create_time = \"2026-11-01\"", "kind = \"a\" OR kind = \"b\"", "kind = \"a\" key = \"b\"",
        "kind = \"a\" AND kind = \"b\"", "kind = \"a\" AND", "AND", "kind = \"\\"}) {
    const auto terms = ParseFilter(text, kTexts, kTimes);
    ASSERT_FALSE(terms.ok()) << text;
    EXPECT_EQ(terms.error().code, grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(terms.error().field, "filter");
  }
  EXPECT_FALSE(FilterTime({"create_time", FilterTerm::Op::kBefore, "yesterday"}).ok());
}

}  // namespace
}  // namespace tollgate::admin
