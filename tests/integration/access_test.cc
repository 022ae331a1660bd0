// Keys, limits and refusals before any engine. decisions 11-22.
#include <chrono>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

class AccessTest : public SystemTest {};
INSTANTIATE_TEST_SUITE_P(Systems, AccessTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

constexpr char kAuthType[] = "authentication_error";

TEST_P(AccessTest, MissingMalformedAndUnknownKeysAre401) {
  auto with = [&](HeaderList headers) {
    return Http(cluster().port(), "POST", kChat, headers, ChatBody());
  };
  ExpectError(with({}), 401, "invalid_api_key", kAuthType);
  ExpectError(with({{"Authorization", "Bearer"}}), 401, "invalid_api_key", kAuthType);
  ExpectError(with({{"Authorization", "Basic abc"}}), 401, "invalid_api_key", kAuthType);
  ExpectError(with({{"Authorization", "Bearer sk-other-1234"}}), 401, "invalid_api_key", kAuthType);
  const ApiKey key = Customer();
  std::string wrong = key.secret;
  wrong[wrong.size() / 2] = wrong[wrong.size() / 2] == 'a' ? 'b' : 'a';
  ExpectError(with({{"Authorization", "Bearer " + wrong}}), 401, "invalid_api_key", kAuthType);
  ExpectError(with({{"x-api-key", key.secret}}), 401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, DisabledKeyIs403WithinASecondAndWorksAgainWhenEnabled) {
  const ApiKey key = Customer();
  ASSERT_EQ(Chat(key).status, 200);
  cluster().SetKeyState(key.key_id, Cluster::KeyState::kDisabled);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 403; }, 1000)) << "decision 14";
  ExpectError(Chat(key), 403, "virtual_key_blocked", "permission_error");
  cluster().SetKeyState(key.key_id, Cluster::KeyState::kActive);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 200; }, 1000));
  cluster().SetKeyState(key.key_id, Cluster::KeyState::kRevoked);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 401; }, 1000));
  ExpectError(Chat(key), 401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, ExpiredKeyIs401) {
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  const ApiKey key = Customer(kUsd, {.expires_at_us = now_us + 1'500'000});
  EXPECT_EQ(Chat(key).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return Chat(key).status == 401; }, 4000, 50));
  ExpectError(Chat(key), 401, "invalid_api_key", kAuthType);
}

TEST_P(AccessTest, ModelsThatAreNotThereNotServingOrNotAllowed) {
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

TEST_P(AccessTest, RequestsThatAreNotWellFormedNameTheFieldAtFault) {
  const ApiKey key = Customer();
  struct Case {
    const char* body;
    const char* param;
  };
  const Case cases[] = {
      {"{", ""},
      {"[]", ""},
      {R"({"model":"sim/model","model":"sim/model","messages":[{"role":"user","content":"x"}]})",
       ""},
      {R"({"messages":[{"role":"user","content":"x"}]})", "model"},
      {R"({"model":5,"messages":[{"role":"user","content":"x"}]})", "model"},
      {R"({"model":"sim/model"})", "messages"},
      {R"({"model":"sim/model","messages":[]})", "messages"},
      {R"({"model":"sim/model","messages":"x"})", "messages"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"max_tokens":-1})",
       "max_tokens"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"max_tokens":1.5})",
       "max_tokens"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"max_tokens":"7"})",
       "max_tokens"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"max_completion_tokens":-3})",
       "max_completion_tokens"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"temperature":3})",
       "temperature"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"n":0})", "n"},
      {R"({"model":"sim/model","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]})",
       "messages"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.body);
    const HttpResponse answer = cluster().Post(key, kChat, one.body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["code"].str(), "bad_request");
    EXPECT_EQ(answer.json()["error"]["type"].str(), "invalid_request_error");
    if (*one.param) EXPECT_EQ(answer.json()["error"]["param"].str(), one.param);
  }
  for (const char* fine : {"5.0", "1e1", "null"}) {
    EXPECT_EQ(Chat(key, std::string(",\"max_tokens\":") + fine).status, 200) << fine;
  }
}

TEST_P(AccessTest, UnknownPathsAre404AndEveryAnswerHasARequestId) {
  for (const char* path : {"/v1/models/sim", "/v1/nothing", "/openai/v1/nothing"}) {
    ExpectError(Http(cluster().port(), "GET", path), 404, "not_found", "not_found_error");
  }
  const HttpResponse kept =
      Http(cluster().port(), "GET", "/v1/models", {{"X-Request-Id", "my-id_1.2"}});
  EXPECT_EQ(kept.header("x-request-id"), "my-id_1.2");
  const HttpResponse replaced =
      Http(cluster().port(), "GET", "/v1/models", {{"X-Request-Id", "not good!"}});
  EXPECT_FALSE(replaced.header("x-request-id").empty());
  EXPECT_NE(replaced.header("x-request-id"), "not good!");
}

TEST_P(AccessTest, HostileFramingIs400AndTheConnectionIsClosed) {
  const char* const kHostile[] = {
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: "
      "6\r\n\r\nabcdef",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nabcde",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\nHost : x\r\n\r\n",
      "GET /v1/models HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
      "GET /v1/models HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
      "NONSENSE\r\n\r\n",
  };
  for (const char* bytes : kHostile) {
    SCOPED_TRACE(bytes);
    HttpConnection connection(cluster().port(), 5000);
    connection.Send(bytes);
    EXPECT_EQ(connection.ReadResponse().status, 400);
    EXPECT_TRUE(connection.ReadUntilClosed());
  }
  EXPECT_EQ(Chat(Customer()).status, 200);
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
      << "the slot comes back when the client goes";
}

TEST_P(AccessTest, TokenRateIs429TokenLimited) {
  const ApiKey key = Customer(kUsd, {.limits = {.tokens_per_minute = 500}});
  EXPECT_EQ(Chat(key, R"(,"max_tokens":400,"x_sim":{"tokens":400})").status, 200);
  ExpectError(Chat(key, R"(,"max_tokens":400)"), 429, "token_limited", "rate_limit_error");
}

TEST_P(AccessTest, LaterRefusalGivesBackWhatTheLimitTook) {
  const ApiKey key = Customer(0, {.limits = {.requests_per_minute = 2, .concurrent_requests = 1}});
  for (int i = 0; i < 6; ++i)
    ExpectError(Chat(key), 402, "insufficient_credits", "permission_error");
  cluster().AddCredit(key.workspace_id, kUsd);
  EXPECT_EQ(Chat(key).status, 200) << "decision 16";
}

}  // namespace
}  // namespace tollgate::test
