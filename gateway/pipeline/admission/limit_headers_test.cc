#include "gateway/pipeline/admission/limit_headers.h"

#include <gtest/gtest.h>

#include <utility>

namespace tollgate::gateway {
namespace {

constexpr int64_t kNowUs = 1'770'000'000'400'000;  // 2026-02-02T02:40:00.4Z

std::string Find(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(LimitHeaders, FormatsResetsAsDurations) {  // docs/design/wire.md 1.2
  const std::pair<int64_t, std::string> kCases[] = {
      {-5, "0s"},       {0, "0s"},         {1, "1ms"},        {250, "250ms"},
      {999, "999ms"},   {1000, "1s"},      {1001, "2s"},      {59'500, "1m0s"},
      {60'000, "1m0s"}, {360'000, "6m0s"}, {362'001, "6m3s"}, {3'600'000, "60m0s"}};
  for (const auto& [ms, text] : kCases) EXPECT_EQ(FormatReset(ms), text) << ms;
}

TEST(LimitHeaders, OmitsLimitsThatAreNotSet) {
  ratelimit::v1::AcquireResult result;
  result.set_granted(true);
  EXPECT_TRUE(MakeLimitHeaders(Family::kOpenAi, result, kNowUs).empty());
  EXPECT_TRUE(MakeLimitHeaders(Family::kMessages, result, kNowUs).empty());
  result.mutable_tokens()->set_limit(1000);
  result.mutable_tokens()->set_remaining(-3);  // debt
  result.mutable_tokens()->set_reset_ms(360'000);
  const Headers openai = {{"x-ratelimit-limit-tokens", "1000"},
                          {"x-ratelimit-remaining-tokens", "0"},
                          {"x-ratelimit-reset-tokens", "6m0s"}};
  EXPECT_EQ(MakeLimitHeaders(Family::kOpenAi, result, kNowUs), openai);
  const Headers messages = {{"anthropic-ratelimit-tokens-limit", "1000"},
                            {"anthropic-ratelimit-tokens-remaining", "0"},
                            {"anthropic-ratelimit-tokens-reset", "2026-02-02T02:46:01Z"}};
  EXPECT_EQ(MakeLimitHeaders(Family::kMessages, result, kNowUs), messages);
}

// A reset in the past would let clients retry too early.
TEST(LimitHeaders, ResetTimesAreNeverEarly) {
  ratelimit::v1::AcquireResult result;
  result.set_granted(true);
  result.mutable_requests()->set_limit(5);
  const std::pair<int64_t, std::string> kCases[] = {{0, "2026-02-02T02:40:01Z"},
                                                    {600, "2026-02-02T02:40:01Z"},
                                                    {601, "2026-02-02T02:40:02Z"},
                                                    {60'000, "2026-02-02T02:41:01Z"}};
  for (const auto& [ms, text] : kCases) {
    result.mutable_requests()->set_reset_ms(ms);
    EXPECT_EQ(Find(MakeLimitHeaders(Family::kMessages, result, kNowUs),
                   "anthropic-ratelimit-requests-reset"),
              text)
        << ms;
  }
}

// docs/design/limits.md 6: the reset of the limit that refused equals the Retry-After, with its
// cap; the reset of other limits is the time until they are full.
TEST(LimitHeaders, TheResetOfARefusalIsItsRetryAfter) {
  const struct {
    int64_t retry_ms, reset_ms;
    const char *openai, *messages;
  } kCases[] = {
      {1, 60'000, "1s", "2026-02-02T02:40:02Z"},        // 60 per minute: one per second
      {29'990, 60'000, "30s", "2026-02-02T02:40:31Z"},  // 2 per minute
      {9'100, 8'000, "10s", "2026-02-02T02:40:11Z"},    // another limit of the same kind
      {59'001, 60'000, "1m0s", "2026-02-02T02:41:01Z"},
      {60'001, 90'000, "1m0s", "2026-02-02T02:41:01Z"},  // capped
      {120'000, 180'000, "1m0s", "2026-02-02T02:41:01Z"},
      {0, 60'000, "1s", "2026-02-02T02:40:02Z"},
  };
  for (const bool tokens : {false, true}) {
    for (const auto& c : kCases) {
      SCOPED_TRACE(c.retry_ms);
      ratelimit::v1::AcquireResult result;
      result.set_denied_by(tokens ? ratelimit::v1::LIMIT_KIND_TOKENS
                                  : ratelimit::v1::LIMIT_KIND_REQUESTS);
      result.set_retry_after_ms(c.retry_ms);
      for (auto* status : {result.mutable_tokens(), result.mutable_requests()}) {
        status->set_limit(10);
        status->set_reset_ms(2'000);
      }
      (tokens ? result.mutable_tokens() : result.mutable_requests())->set_reset_ms(c.reset_ms);
      const Headers openai = MakeLimitHeaders(Family::kOpenAi, result, kNowUs);
      const std::string denied = tokens ? "tokens" : "requests";
      const std::string other = tokens ? "requests" : "tokens";
      EXPECT_EQ(Find(openai, "x-ratelimit-reset-" + denied), c.openai);
      EXPECT_EQ(Find(openai, "x-ratelimit-reset-" + other), "2s");
      const Headers messages = MakeLimitHeaders(Family::kMessages, result, kNowUs);
      EXPECT_EQ(Find(messages, "anthropic-ratelimit-" + denied + "-reset"), c.messages);
      EXPECT_EQ(Find(messages, "anthropic-ratelimit-" + other + "-reset"), "2026-02-02T02:40:03Z");
      result.set_granted(true);
      EXPECT_EQ(
          Find(MakeLimitHeaders(Family::kOpenAi, result, kNowUs), "x-ratelimit-reset-" + denied),
          FormatReset(c.reset_ms))
          << "whole again";
    }
  }
}

}  // namespace
}  // namespace tollgate::gateway
