// The headers that report what is left of the rate limits, in both families, and how they agree
// with Retry-After. See docs/design/wire.md 1.2, docs/design/limits.md 6.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <tuple>

#include "tests/contract/endpoint_forms.h"
#include "tests/contract/target.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;

class LimitHeadersTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (target().cluster == nullptr) GTEST_SKIP() << "needs a cluster of its own";
  }
  Target& target() const { return TargetOf(GetParam()); }
  HttpResponse Ask(const EndpointForm& form, const ApiKey& key) const {
    return Send(form, key, {});
  }
  using Asked = struct Ask;
  HttpResponse Send(const EndpointForm& form, const ApiKey& key, const Asked& ask) const {
    return Http(target().port, "POST", form.path,
                {{"Authorization", "Bearer " + key.secret}, {"Content-Type", "application/json"}},
                form.Body(ask));
  }
  static std::string Name(const EndpointForm& form, const std::string& kind,
                          const std::string& what) {
    return form.family == Family::kMessages ? "anthropic-ratelimit-" + kind + "-" + what
                                            : "x-ratelimit-" + what + "-" + kind;
  }
  // Checks a refusal; the Messages family rounds the time up to a whole second.
  static void ExpectResetIsRetryAfter(const EndpointForm& form, const HttpResponse& refused,
                                      const std::string& kind) {
    const double wait = std::atof(refused.header("retry-after").c_str());
    const double left = SecondsLeft(refused.header(Name(form, kind, "reset")));
    if (form.family == Family::kMessages) {
      // Messages sends a point in time, which a busy machine reads later.
      EXPECT_GT(left, wait - 30);
      EXPECT_LE(left, wait + 1);
    } else {
      EXPECT_EQ(left, wait);
    }
  }
  static double Now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  // The remaining time had this value at some moment since then; the tolerance covers rounding.
  static void ExpectLeft(double left, double expected, double since, double tolerance) {
    EXPECT_LE(left, expected + tolerance);
    EXPECT_GE(left, expected - tolerance - (Now() - since));
  }
  // Seconds from now until the reset in the header.
  static double SecondsLeft(const std::string& reset) {
    std::tm utc{};
    if (const char* end = strptime(reset.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc)) {
      EXPECT_EQ(*end, '\0') << reset;
      return static_cast<double>(timegm(&utc)) - Now();
    }
    double seconds = 0;
    for (size_t at = 0; at < reset.size();) {
      char* end = nullptr;
      const double number = std::strtod(reset.c_str() + at, &end);
      at = static_cast<size_t>(end - reset.c_str());
      const std::string unit = reset.substr(at, reset.substr(at).starts_with("ms") ? 2 : 1);
      EXPECT_TRUE(unit == "ms" || unit == "s" || unit == "m") << reset;
      if (unit != "ms" && unit != "s" && unit != "m") return -1;
      seconds += number * (unit == "m" ? 60 : unit == "s" ? 1 : 0.001);
      at += unit.size();
    }
    return seconds;
  }
};
INSTANTIATE_TEST_SUITE_P(Limits, LimitHeadersTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

// A limit of one request a minute has nothing left, and is full again when the next request is
// admitted: reset and Retry-After are the same time.
TEST_P(LimitHeadersTest, RemainingAndResetAgreeWithRetryAfter) {
  for (const EndpointForm& form : EndpointForms()) {
    SCOPED_TRACE(form.path);
    const ApiKey key = target().cluster->NewCustomer(kUsd, {.limits = {.requests_per_minute = 1}});
    const double began = Now();
    const HttpResponse first = Ask(form, key);
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(first.header(Name(form, "requests", "limit")), "1");
    EXPECT_EQ(first.header(Name(form, "requests", "remaining")), "0");
    ExpectLeft(SecondsLeft(first.header(Name(form, "requests", "reset"))), 60, began, 1.5);
    EXPECT_FALSE(first.has_header(Name(form, "tokens", "limit")));
    EXPECT_FALSE(first.has_header("retry-after"));

    const double asked = Now();
    const HttpResponse second = Ask(form, key);
    ASSERT_EQ(second.status, 429) << second.body;
    EXPECT_EQ(second.header("x-should-retry"), "true");
    EXPECT_EQ(second.header(Name(form, "requests", "remaining")), "0");
    const double wait = std::atof(second.header("retry-after").c_str());
    ExpectLeft(wait, 60, began, 1);
    ExpectLeft(SecondsLeft(second.header(Name(form, "requests", "reset"))), wait, asked, 1.1);
  }
}

// A limit above one: after its burst GCRA admits one request each 60 s / limit, and is full again
// later. The reset of the refusal is the same time as its Retry-After.
TEST_P(LimitHeadersTest, TheResetOfARefusalIsItsRetryAfter) {
  for (const int64_t limit : {2, 60}) {
    for (const EndpointForm& form : EndpointForms()) {
      for (const bool stream : {false, true}) {
        if (stream && !form.streams) continue;
        SCOPED_TRACE(form.path + " " + std::to_string(limit) + (stream ? " streamed" : ""));
        const ApiKey key =
            target().cluster->NewCustomer(kUsd, {.limits = {.requests_per_minute = limit}});
        const double started = Now();
        HttpResponse answer = Send(form, key, {.stream = stream});
        ASSERT_EQ(answer.status, 200) << answer.body;
        // The limit is full again.
        ExpectLeft(SecondsLeft(answer.header(Name(form, "requests", "reset"))),
                   60.0 / static_cast<double>(limit), started, 1.1);
        int64_t admitted = 0;
        for (; answer.status == 200 && admitted < 4 * limit; ++admitted) {
          answer = Send(form, key, {.stream = stream});
        }
        ASSERT_EQ(answer.status, 429) << answer.body;
        const double elapsed = Now() - started;
        EXPECT_GE(admitted, limit);
        EXPECT_LE(static_cast<double>(admitted), static_cast<double>(limit) * (1 + elapsed / 60));
        const double wait = std::atof(answer.header("retry-after").c_str());
        EXPECT_LE(wait, std::ceil(60.0 / static_cast<double>(limit)));
        EXPECT_GE(wait, 60.0 / static_cast<double>(limit) - elapsed);
        EXPECT_EQ(answer.header(Name(form, "requests", "remaining")), "0");
        ExpectResetIsRetryAfter(form, answer, "requests");
      }
    }
  }
}

// Token refusals below and above the longest Retry-After.
TEST_P(LimitHeadersTest, TheResetOfARefusalForTokensIsItsRetryAfter) {
  for (const EndpointForm& form : EndpointForms()) {
    if (!form.generates || form.limit.empty()) continue;
    for (const bool stream : {false, true}) {
      // A request may take more than a whole limit; the debt then lasts longer than a minute.
      for (const auto& [limit, words, least, most] :
           {std::tuple<int64_t, int64_t, double, double>{1000, 900, 1, 59}, {100, 170, 60, 60}}) {
        SCOPED_TRACE(form.path + " " + std::to_string(limit) + (stream ? " streamed" : ""));
        const ApiKey key =
            target().cluster->NewCustomer(kUsd, {.limits = {.tokens_per_minute = limit}});
        const Asked ask = {.stream = stream, .limit = "5", .words = words};
        ASSERT_EQ(Send(form, key, ask).status, 200);
        ASSERT_TRUE(target().cluster->WaitIdle(key.workspace_id));
        const HttpResponse refused = Send(form, key, ask);
        ASSERT_EQ(refused.status, 429) << refused.body;
        const double wait = std::atof(refused.header("retry-after").c_str());
        EXPECT_GE(wait, least);
        EXPECT_LE(wait, most);
        ExpectResetIsRetryAfter(form, refused, "tokens");
      }
    }
  }
}

// Input and output tokens share one limit: the official headers for separate limits are not sent.
TEST_P(LimitHeadersTest, TokenLimitsAreToldWhereTheyExist) {
  for (const EndpointForm& form : EndpointForms()) {
    if (!form.generates) continue;
    SCOPED_TRACE(form.path);
    const ApiKey key =
        target().cluster->NewCustomer(kUsd, {.limits = {.tokens_per_minute = 100'000}});
    const HttpResponse answer = Ask(form, key);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.header(Name(form, "tokens", "limit")), "100000");
    EXPECT_LT(std::atoll(answer.header(Name(form, "tokens", "remaining")).c_str()), 100'000);
    EXPECT_GT(std::atoll(answer.header(Name(form, "tokens", "remaining")).c_str()), 90'000);
    EXPECT_LT(SecondsLeft(answer.header(Name(form, "tokens", "reset"))), 7);
    EXPECT_FALSE(answer.has_header(Name(form, "requests", "limit")));
    for (const char* other :
         {"anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-output-tokens-limit"}) {
      EXPECT_FALSE(answer.has_header(other));
    }
    // Never the names of the other family.
    const bool messages = form.family == Family::kMessages;
    EXPECT_FALSE(answer.has_header(messages ? "x-ratelimit-limit-tokens"
                                            : "anthropic-ratelimit-tokens-limit"));
  }
}

}  // namespace
}  // namespace tollgate::test
