// Keys, limits and refusals before a request reaches an engine. See decisions 11 to 22.
#include <chrono>
#include <cstdlib>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

class AccessTest : public SystemTest {
 protected:
  // Makes enough calls to reach every loop of the gateway: each loop gets a change separately.
  bool Always(const ApiKey& key, int status) {
    for (int i = 0; i < 8; ++i) {
      if (Chat(key).status != status) return false;
    }
    return true;
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, AccessTest, kSystemsAndStores,
                         [](const auto& info) { return info.param; });

constexpr char kAuthType[] = "authentication_error";

TEST_P(AccessTest, KeyWithOneCharacterChangedIs401) {
  const ApiKey key = Customer();
  std::string wrong = key.secret;
  wrong[wrong.size() / 2] = wrong[wrong.size() / 2] == 'a' ? 'b' : 'a';
  ExpectError(
      Http(cluster().port(), "POST", kChat, {{"Authorization", "Bearer " + wrong}}, ChatBody()),
      401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, DisabledKeyIs403WithinASecondAndWorksAgainWhenEnabled) {
  const ApiKey key = Customer();
  ASSERT_EQ(Chat(key).status, 200);
  cluster().SetKeyState(key, Cluster::KeyState::kDisabled);
  EXPECT_TRUE(WaitUntil([&] { return Always(key, 403); }, 1000)) << "decision 14";
  ExpectError(Chat(key), 403, "virtual_key_blocked", "permission_error");
  cluster().SetKeyState(key, Cluster::KeyState::kActive);
  EXPECT_TRUE(WaitUntil([&] { return Always(key, 200); }, 1000));
  cluster().SetKeyState(key, Cluster::KeyState::kRevoked);
  EXPECT_TRUE(WaitUntil([&] { return Always(key, 401); }, 1000));
  ExpectError(Chat(key), 401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, ExpiredKeyIs401) {
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  const ApiKey key = Customer(kUsd, {.expires_at_us = now_us + 8'000'000});
  EXPECT_EQ(Chat(key).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 401; }, 4000, 50));
  ExpectError(Chat(key), 401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, ModelsThatAreUnknownUnavailableOrNotAllowedAreRefused) {
  const ApiKey key = Customer();
  ExpectError(Chat(key, "", "sim/nothing"), 404, "model_unavailable", "not_found_error");
  ExpectError(Chat(key, "", "SIM/model"), 404, "model_unavailable", "not_found_error");
  ExpectError(Chat(key, "", "tollgate/sim"), 404, "model_unavailable", "not_found_error");
  ExpectError(Chat(key, "", "sim/suspended"), 503, "model_unavailable", "not_found_error");
  ExpectError(Chat(key, "", "sim/private"), 401, "invalid_api_key", kAuthType);
  const ApiKey narrow = Customer(kUsd, {.allowed_models = {"sim/text"}});
  ExpectError(Chat(narrow), 403, "model_blocked", "permission_error");
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(AccessTest, RequestRateIs429WithHeadersAndRetryAfter) {
  const ApiKey key = Customer(kUsd, {.limits = {.requests_per_minute = 2}});
  EXPECT_EQ(Chat(key).status, 200);
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    const HttpResponse answer = Chat(key);
    if (answer.status == 200) continue;
    ++refused;
    ExpectError(answer, 429, "rate_limited", "rate_limit_error");
  }
  EXPECT_GE(refused, 2);
}

TEST_P(AccessTest, LimitsAreReportedInHeaders) {
  const ApiKey key =
      Customer(kUsd, {.limits = {.requests_per_minute = 5, .tokens_per_minute = 100'000}});
  for (int answered = 1; answered <= 2; ++answered) {
    const HttpResponse head = answered == 1 ? Chat(key) : ChatStream(key).head;
    ASSERT_EQ(head.status, 200) << head.body;
    EXPECT_EQ(head.header("x-ratelimit-limit-requests"), "5");
    EXPECT_EQ(head.header("x-ratelimit-remaining-requests"), std::to_string(5 - answered));
    EXPECT_FALSE(head.header("x-ratelimit-reset-requests").empty());
    EXPECT_EQ(head.header("x-ratelimit-limit-tokens"), "100000");
    const int64_t left = std::atoll(head.header("x-ratelimit-remaining-tokens").c_str());
    EXPECT_GT(left, 0);
    EXPECT_LT(left, 100'000);
    EXPECT_FALSE(head.header("x-ratelimit-reset-tokens").empty());
  }
  const HttpResponse unlimited = Chat(Customer());
  for (const auto& [name, value] : unlimited.headers) {
    EXPECT_FALSE(name.starts_with("x-ratelimit-")) << name;
  }
}

TEST_P(AccessTest, ConcurrencyIs429UntilTheRunningRequestEnds) {
  const ApiKey key = Customer(kUsd, {.limits = {.concurrent_requests = 1}});
  {
    HttpConnection connection(cluster().port());
    connection.SendRequest(
        "POST", kChat, key.headers(),
        ChatBody(R"(,"stream":true,"x_sim":{"tokens":9,"hang_after_tokens":1})"));
    ASSERT_EQ(connection.ReadHead().status, 200);
    ExpectError(Chat(key), 429, "rate_limited", "rate_limit_error");
  }
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 200; }, 2000))
      << "the slot is released when the client disconnects";
}

TEST_P(AccessTest, TokenRateIs429TokenLimited) {
  const ApiKey key = Customer(kUsd, {.limits = {.tokens_per_minute = 500}});
  EXPECT_EQ(Chat(key, R"(,"max_tokens":400,"x_sim":{"tokens":400})").status, 200);
  ExpectError(Chat(key, R"(,"max_tokens":400)"), 429, "token_limited", "rate_limit_error");
}

TEST_P(AccessTest, LaterRefusalRestoresTheRateLimits) {
  const ApiKey key = Customer(0, {.limits = {.requests_per_minute = 2, .concurrent_requests = 1}});
  for (int i = 0; i < 6; ++i) {
    // The slot is released in the background, not before the response: a caller on the same machine
    // can be faster.
    HttpResponse answer;
    EXPECT_TRUE(WaitUntil(
        [&] {
          answer = Chat(key);
          return answer.status != 429;
        },
        200, 1));
    ExpectError(answer, 402, "insufficient_credits", "permission_error");
  }
  cluster().AddCredit(key.workspace_id, kUsd);
  EXPECT_EQ(Chat(key).status, 200) << "decision 16";
}

}  // namespace
}  // namespace tollgate::test
