// See docs/contract.md "Token count result", docs/design/wire.md 6.4, decisions 7 and 16.
#include "gateway/handlers/count_tokens.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

class CountTokensTest : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<FakeExchange>;

  static std::string Body(const std::string& more = "") {
    return R"({"model":"ns/model","messages":[{"role":"user","content":"how long is this?"}])" +
           more + "}";
  }
  Answer Post(const std::string& body = Body(), Headers more = {}) {
    Answer exchange;
    const Endpoint endpoint{"POST",
                            "/v1/messages/count_tokens",
                            "count_tokens",
                            Family::kMessages,
                            CredentialRule::kBearerOrApiKey,
                            {}};
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      HttpRequest request;
      request.headers = {{"x-api-key", rig.key_text}, {"content-type", "application/json"}};
      request.headers.insert(request.headers.end(), more.begin(), more.end());
      request.body = body;
      request.x_request_id = "x-1";
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      if (prepare) prepare(*exchange);
      co_await CountTokens(*rig.worker, CountTokensSurface(), *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  }
  void SetEngineCount(int64_t tokens) {
    rig.inference->count->set_counted(true);
    rig.inference->count->set_prompt_tokens(tokens);
  }
  static std::string ErrorOf(const Answer& answer) {
    const auto document = json::Document::ParseView(answer->body);
    if (!document || !document->root().Find("error")) return answer->body;
    const json::Value error = document->root().Find("error");
    return std::to_string(answer->status) + " " + error.Find("code").string() + " " +
           error.Find("type").string();
  }

  Rig rig;
  std::function<void(FakeExchange&)> prepare;
};

// The Responses API counts the same in its own format; the output limit has no effect.
TEST_F(CountTokensTest, InputTokensOfAResponse) {
  SetEngineCount(17);
  const Endpoint endpoint{"POST",          "/v1/responses/input_tokens", "input_tokens",
                          Family::kOpenAi, CredentialRule::kBearer,      {}};
  const auto post = [&](const std::string& body) {
    Answer exchange;
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      HttpRequest request;
      request.headers = {{"authorization", "Bearer " + rig.key_text}};
      request.body = body;
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      co_await CountTokens(*rig.worker, InputTokensSurface(), *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  };
  for (const char* more : {"", R"(,"max_output_tokens":999999999)", R"(,"instructions":"be short")",
                           R"(,"max_output_tokens":0,"stream":true)"}) {
    const Answer answer =
        post(R"({"model":"ns/model","input":"how long is this?")" + std::string(more) + "}");
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(answer->body, R"({"object":"response.input_tokens","input_tokens":17})");
  }
  EXPECT_TRUE(rig.billing->authorized.empty());
  EXPECT_EQ(ErrorOf(post(R"({"model":"ns/model"})")), "400 bad_request invalid_request_error");
  EXPECT_EQ(ErrorOf(post(R"({"model":"ns/model","input":"x","previous_response_id":"resp_1"})")),
            "400 bad_request invalid_request_error");
}

TEST_F(CountTokensTest, ReturnsTheCountOfTheEngine) {
  SetEngineCount(4711);
  const Answer answer = Post();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, R"({"input_tokens":4711})");
  EXPECT_EQ(answer->header("content-type"), "application/json");
  ASSERT_EQ(rig.inference->counted.size(), 1u);
  const auto& asked = rig.inference->counted[0];
  EXPECT_EQ(asked.model(), "ns/model");
  EXPECT_EQ(asked.kind(), inference::v1::REQUEST_KIND_CHAT);
  EXPECT_EQ(asked.x_request_id(), "x-1");
  EXPECT_NE(asked.members_json().find("how long is this?"), std::string::npos);
}

TEST_F(CountTokensTest, ChargesARequestButNoTokensAndNoCredit) {
  rig.key.mutable_key_limits()->set_tokens_per_minute(5);
  rig.key.mutable_workspace_limits()->set_tokens_per_minute(5);
  rig.key.mutable_key_limits()->set_concurrent_requests(1);
  rig.Publish();
  SetEngineCount(1'000'000);
  EXPECT_EQ(Post()->status, 200);
  EXPECT_TRUE(rig.billing->authorized.empty());
  ASSERT_EQ(rig.limiter->acquired.size(), 1u);
  const auto& item = rig.limiter->acquired[0];
  EXPECT_EQ(item.estimated_tokens(), 0);
  EXPECT_EQ(item.key_limits().requests_per_minute(), 100);
  EXPECT_EQ(item.key_limits().concurrent_requests(), 1);
  EXPECT_EQ(item.key_limits().tokens_per_minute(), 0) << "a token debt must not refuse it";
  EXPECT_EQ(item.workspace_limits().tokens_per_minute(), 0);
  ASSERT_EQ(rig.limiter->released.size(), 1u);
  EXPECT_FALSE(rig.limiter->released[0].refund()) << "the request counts";
  EXPECT_EQ(rig.limiter->released[0].actual_tokens(), 0);
  EXPECT_EQ(rig.worker->slots->size(), 0u);
}

TEST_F(CountTokensTest, EstimatesWhenNoEngineCanCountOrNoRouterIsReachable) {
  const Answer no_tokenizer = Post();
  EXPECT_EQ(no_tokenizer->status, 200);
  rig.inference->count = Unavailable("no router");
  const Answer no_router = Post();
  EXPECT_EQ(no_router->status, 200);
  EXPECT_EQ(no_router->body, no_tokenizer->body);
  // 17 bytes of text and one message.
  EXPECT_EQ(no_router->body, R"({"input_tokens":8})");
}

TEST_F(CountTokensTest, CountsPromptsThatDoNotFit) {  // clients learn by how much
  const std::string long_text(40'000, 'x');
  const std::string body =
      R"({"model":"ns/model","max_tokens":999999,"messages":[{"role":"user","content":")" +
      long_text + "\"}]}";
  EXPECT_EQ(Post(body)->body, R"({"input_tokens":10004})")
      << "estimates are not limited to the window";
  SetEngineCount(12'345);
  EXPECT_EQ(Post(body)->body, R"({"input_tokens":12345})");
}

TEST_F(CountTokensTest, ChecksTheKeyFirst) {
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Post("{")), "403 virtual_key_blocked permission_error");
}

TEST_F(CountTokensTest, ChecksInTheOrderOfTheOtherEndpoints) {
  EXPECT_EQ(ErrorOf(Post("{")), "400 bad_request invalid_request_error");
  EXPECT_EQ(ErrorOf(Post(R"({"model":"ns/model"})")), "400 bad_request invalid_request_error");
  EXPECT_EQ(ErrorOf(Post(R"({"model":"ns/no","messages":[{"role":"user","content":"x"}]})")),
            "404 model_unavailable not_found_error");
  rig.limiter->answer->set_granted(false);
  rig.limiter->answer->set_denied_by(ratelimit::v1::LIMIT_KIND_REQUESTS);
  EXPECT_EQ(ErrorOf(Post()), "429 rate_limited rate_limit_error");
  EXPECT_TRUE(rig.inference->counted.empty()) << "refused requests are not counted";
}

TEST_F(CountTokensTest, MaxTokensIsOptionalAndTwoDifferentKeysAreRefused) {
  SetEngineCount(3);
  EXPECT_EQ(Post(Body(R"(,"system":"s","thinking":{"type":"adaptive"})"))->status, 200);
  const MadeKey other = MakeKey("tollgate");
  EXPECT_EQ(ErrorOf(Post(Body(), {{"authorization", "Bearer " + other.text}})),
            "401 invalid_api_key authentication_error");
}

TEST_F(CountTokensTest, DisconnectedClientsCauseNoEngineCall) {
  prepare = [](FakeExchange& exchange) { exchange.Disconnect(); };
  EXPECT_EQ(Post()->answers, 0);
  EXPECT_TRUE(rig.inference->counted.empty());
  EXPECT_EQ(rig.limiter->released.size(), rig.limiter->acquired.size());
}

}  // namespace
}  // namespace tollgate::gateway
