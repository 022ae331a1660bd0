#include "gateway/pipeline/limit_headers.h"

#include <gtest/gtest.h>

#include <utility>

namespace tollgate::gateway {
namespace {

TEST(LimitHeaders, FormatsResetsAsDurations) {  // docs/design/wire.md 1.2
  const std::pair<int64_t, std::string> kCases[] = {
      {-5, "0s"},       {0, "0s"},         {1, "1ms"},        {250, "250ms"},
      {999, "999ms"},   {1000, "1s"},      {1001, "2s"},      {59'500, "1m0s"},
      {60'000, "1m0s"}, {360'000, "6m0s"}, {362'001, "6m3s"}, {3'600'000, "60m0s"}};
  for (const auto& [ms, text] : kCases) EXPECT_EQ(FormatReset(ms), text) << ms;
}

TEST(LimitHeaders, OmitsLimitsThatAreNotSet) {
  ratelimit::v1::AcquireResult result;
  EXPECT_TRUE(MakeLimitHeaders(Family::kOpenAi, result).empty());
  result.mutable_tokens()->set_limit(1000);
  result.mutable_tokens()->set_remaining(-3);  // debt
  result.mutable_tokens()->set_reset_ms(360'000);
  const Headers expected = {{"x-ratelimit-limit-tokens", "1000"},
                            {"x-ratelimit-remaining-tokens", "0"},
                            {"x-ratelimit-reset-tokens", "6m0s"}};
  EXPECT_EQ(MakeLimitHeaders(Family::kOpenAi, result), expected);
  EXPECT_TRUE(MakeLimitHeaders(Family::kMessages, result).empty());
}

}  // namespace
}  // namespace tollgate::gateway
