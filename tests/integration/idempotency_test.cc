// Idempotency-Key through the whole product (decisions 43 and 59): the same key and body never bill
// twice.
#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

class IdempotencyTest : public SystemTest {
 protected:
  HttpResponse Send(const ApiKey& key, const std::string& value, const std::string& more) {
    HeaderList headers = key.headers();
    headers.emplace_back("Idempotency-Key", value);
    return Http(cluster().port(), "POST", kChat, headers, ChatBody(more));
  }
  // Repeats the call until the void of a refused request has been booked.
  HttpResponse SendUntilRun(const ApiKey& key, const std::string& value, const std::string& more) {
    HttpResponse answer;
    (void)WaitUntil(
        [&] {
          answer = Send(key, value, more);
          return answer.status != 409;
        },
        10'000, 50);
    return answer;
  }
  static int64_t ChargeOf(const HttpResponse& answer) {
    const Json usage = answer.json()["usage"];
    return Charge(usage["prompt_tokens"].integer(), usage["completion_tokens"].integer());
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, IdempotencyTest, kSystemsAndStores,
                         [](const auto& info) { return info.param; });

TEST_P(IdempotencyTest, AFinishedAnswerIsRepeatedAndBilledOnce) {
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const std::string more = ",\"x_sim\":{\"tokens\":7,\"tag\":\"" + tag + "\"}";
  const HttpResponse first = Send(key, "same", more);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_FALSE(first.has_header("idempotent-replayed"));
  for (int i = 0; i < 3; ++i) {
    const HttpResponse again = Send(key, "same", more);
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(again.header("content-type"), first.header("content-type"));
    EXPECT_EQ(again.header("idempotent-replayed"), "true");
  }
  EXPECT_EQ(EngineRequests(tag).size(), 1u);
  EXPECT_EQ(SpentOf(key), ChargeOf(first));
  // Calls with another key, and without a key, are separate requests.
  const HttpResponse other = Send(key, "other", more);
  const HttpResponse none = Chat(key, more);
  EXPECT_EQ(SpentOf(key), ChargeOf(first) + ChargeOf(other) + ChargeOf(none));
  EXPECT_EQ(EngineRequests(tag).size(), 3u);
}

TEST_P(IdempotencyTest, AKeyBelongsToTheApiKeyThatSentIt) {
  const std::string more = R"(,"x_sim":{"tokens":3})";
  for (const ApiKey& key : {Customer(), Customer()}) {
    const HttpResponse answer = Send(key, "shared", more);
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(answer.has_header("idempotent-replayed"));
  }
}

TEST_P(IdempotencyTest, WhileTheFirstRuns409) {
  const ApiKey key = Customer();
  const std::string body = ChatBody(R"(,"stream":true,"x_sim":{"tokens":9,"hang_after_tokens":2})");
  HeaderList headers = key.headers();
  headers.emplace_back("Idempotency-Key", "running");
  {
    HttpConnection running(cluster().port());
    ASSERT_TRUE(running.SendRequest("POST", kChat, headers, body));
    ASSERT_EQ(running.ReadHead().status, 200);
    const HttpResponse again = Http(cluster().port(), "POST", kChat, headers, body);
    EXPECT_EQ(again.status, 409);
    EXPECT_EQ(again.json()["error"]["code"].str(), "idempotency_in_progress") << again.body;
    EXPECT_EQ(again.json()["error"]["type"].str(), "rate_limit_error");
    EXPECT_EQ(again.header("x-should-retry"), "true");
    EXPECT_EQ(again.header("retry-after"), "1");
  }
  // The caller disconnected: generated output is charged, and not generated again.
  EXPECT_TRUE(cluster().WaitIdle(key.workspace_id));
  const HttpResponse gone = Http(cluster().port(), "POST", kChat, headers, body);
  ExpectError(gone, 409, "idempotency_answer_gone", "invalid_request_error");
}

TEST_P(IdempotencyTest, AStreamedAnswerIsGone) {
  const ApiKey key = Customer();
  const std::string more = R"(,"stream":true,"x_sim":{"tokens":4})";
  ASSERT_EQ(Send(key, "streamed", more).status, 200);
  const int64_t spent = SpentOf(key);
  EXPECT_GT(spent, 0);
  const HttpResponse again = Send(key, "streamed", more);
  ExpectError(again, 409, "idempotency_answer_gone", "invalid_request_error");
  EXPECT_EQ(again.header("x-should-retry"), "false");
  EXPECT_FALSE(again.has_header("retry-after"));
  EXPECT_EQ(SpentOf(key), spent);
}

TEST_P(IdempotencyTest, AnotherBodyIs400) {
  const ApiKey key = Customer();
  ASSERT_EQ(Send(key, "body", "").status, 200);
  const HttpResponse answer = Send(key, "body", R"(,"temperature":0.5)");
  ExpectError(answer, 400, "bad_request", "invalid_request_error");
  EXPECT_NE(answer.body.find("Idempotency-Key"), std::string::npos);
}

TEST_P(IdempotencyTest, ARequestThatFailedBeforeOutputRunsAgain) {
  const ApiKey key = Customer();
  engine(0).SetDefaultScript(R"({"status":500})");
  engine(1).SetDefaultScript(R"({"status":500})");
  const HttpResponse failed = Send(key, "failed", "");
  EXPECT_GE(failed.status, 500) << failed.body;
  engine(0).SetDefaultScript("{}");
  engine(1).SetDefaultScript("{}");
  const HttpResponse again = SendUntilRun(key, "failed", "");
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_FALSE(again.has_header("idempotent-replayed"));
  EXPECT_EQ(SpentOf(key), ChargeOf(again));
  EXPECT_EQ(Send(key, "failed", "").body, again.body);
}

}  // namespace
}  // namespace tollgate::test
