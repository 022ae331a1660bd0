// Whole requests through all stages, with fakes of the services.
#include "gateway/pipeline/run.h"

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

using RunInferenceTest = PipelineFixture;

TEST_F(RunInferenceTest, RespondsWithOneBody) {
  PushEvents({Started(), Text("Hel")});
  PushEvents({Text("lo"), Finish(), End(5, 2)});
  const Answer answer = Send(Body(R"("temperature":0.5,"max_tokens":50)"));
  EXPECT_EQ(answer->status, 200);
  const auto document = json::Document::ParseView(answer->body);
  ASSERT_TRUE(document.ok());
  const json::Value choice = *document->root().Find("choices").begin();
  EXPECT_EQ(choice.Find("message").Find("content").string(), "Hello");
  EXPECT_EQ(document->root().Find("usage").Find("total_tokens").Integer(), 7);
  EXPECT_EQ(document->root().Find("created").Integer(), rig.clock.WallUs() / 1'000'000);
  const std::string answer_id(document->root().Find("id").string());
  EXPECT_TRUE(answer_id.starts_with("chatcmpl-"));

  ASSERT_EQ(rig.inference->started.size(), 1u);
  const pb::GenerateRequest& sent = rig.inference->started[0];
  EXPECT_EQ(sent.members_json(),
            R"("messages":[{"role":"user","content":"hi"}],"temperature":0.5)");
  EXPECT_EQ(sent.model(), "ns/model");
  EXPECT_EQ(sent.workspace_id(), "ws1");
  EXPECT_EQ(sent.key_id(), rig.key.key_id());
  EXPECT_EQ(sent.max_tokens(), 50);
  EXPECT_EQ(sent.choices(), 1);
  EXPECT_EQ(sent.prompt_tokens_bound(), 2 + 16);
  EXPECT_EQ(sent.hold().authorized_nano_usd(), 777);
  EXPECT_EQ(sent.hold().slice_nano_usd(), 55);
  EXPECT_EQ(sent.hold().price().output_pico_usd(), 4);
  EXPECT_EQ(sent.catalog_version(), 9);
  EXPECT_EQ(sent.x_request_id(), "x-1");

  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  const auto& item = rig.billing->authorized[0];
  EXPECT_EQ(item.request_id(), sent.request_id());
  EXPECT_EQ(item.request_id().size(), 16u);
  EXPECT_EQ(item.prompt_tokens_bound(), 18);
  EXPECT_EQ(item.output_tokens_bound(), 50);
  EXPECT_EQ(item.price().version(), 9);
  EXPECT_EQ(Id::FromBase62(answer_id.substr(sizeof "chatcmpl-" - 1)),
            Id::FromBytes(item.request_id()))
      << "the answer's id finds the receipt (decision 65)";
  EXPECT_EQ(item.client_request_id(), "x-1");
  EXPECT_EQ(item.surface(), billing::v1::SURFACE_CHAT_COMPLETIONS);
  EXPECT_FALSE(item.streamed());
  EXPECT_FALSE(item.has_key_quota_nano_usd());
  EXPECT_TRUE(rig.billing->voided.empty());

  ASSERT_EQ(rig.limiter->acquired.size(), 1u);
  EXPECT_EQ(rig.limiter->acquired[0].lease_id(), sent.request_id());
  EXPECT_EQ(rig.limiter->acquired[0].key_limits().requests_per_minute(), 100);
  ASSERT_EQ(rig.limiter->released.size(), 1u);
  EXPECT_FALSE(rig.limiter->released[0].refund());
  EXPECT_EQ(rig.limiter->released[0].actual_tokens(), 7);
  ExpectNoSlots();
}

// Decision 65: an x-request-id that the server made contains the request's id.
TEST_F(RunInferenceTest, ARequestHasTheIdThatTheServerMade) {
  PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
  HttpRequest request = rig.ChatRequest(Body(R"("stream":true)"));
  request.id = Id::New();
  request.x_request_id = "req_" + request.id.ToBase62();
  const Id id = request.id;
  EXPECT_EQ(rig.Run(ChatSurface(), std::move(request))->status, 200);
  ASSERT_EQ(rig.billing->authorized.size(), 1U);
  EXPECT_EQ(rig.billing->authorized[0].request_id(), id.ToBytes());
  EXPECT_EQ(rig.billing->authorized[0].client_request_id(), "");
  EXPECT_TRUE(rig.billing->authorized[0].streamed());
}

TEST_F(RunInferenceTest, SendsTheNumberOfMediaPartsToTheRouter) {
  rig.snapshot.mutable_models(0)->add_capabilities(catalog::v1::CAPABILITY_VISION);
  rig.snapshot.mutable_models(0)->set_context_window(100'000);
  rig.Publish();
  const std::string image = R"({"type":"image_url","image_url":{"url":"data:,x"}})";
  const std::pair<std::string, int> rows[] = {{R"("\"image_url\"")", 0},
                                              {"[" + image + "," + image + "]", 2}};
  for (const auto& [content, media] : rows) {
    PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
    const std::string messages = R"([{"role":"user","content":)" + content + "}]";
    EXPECT_EQ(Send(R"({"model":"ns/model","messages":)" + messages + "}")->status, 200);
    EXPECT_EQ(rig.inference->started.back().prompt_media_parts(), media);
  }
}

TEST_F(RunInferenceTest, EveryResponseHasRateLimitHeaders) {  // docs/design/wire.md 1.2
  auto& limits = *rig.limiter->answer;
  limits.mutable_requests()->set_limit(100);
  limits.mutable_requests()->set_remaining(99);
  limits.mutable_requests()->set_reset_ms(600);
  limits.mutable_tokens()->set_limit(5000);
  limits.mutable_tokens()->set_remaining(4000);
  limits.mutable_tokens()->set_reset_ms(12'000);
  const auto expect_headers = [](const Answer& answer, int status, const char* reset = "600ms") {
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(answer->header("x-ratelimit-limit-requests"), "100");
    EXPECT_EQ(answer->header("x-ratelimit-remaining-requests"), "99");
    EXPECT_EQ(answer->header("x-ratelimit-reset-requests"), reset);
    EXPECT_EQ(answer->header("x-ratelimit-limit-tokens"), "5000");
    EXPECT_EQ(answer->header("x-ratelimit-remaining-tokens"), "4000");
    EXPECT_EQ(answer->header("x-ratelimit-reset-tokens"), "12s");
  };
  PushEvents({Started(), Text("a"), Finish(), End(5, 1)});
  expect_headers(Send(), 200);
  PushEvents({Started(), Text("a"), Finish(), End(5, 1)});
  const Answer stream = Send(Body("\"stream\":true"));
  expect_headers(stream, 200);
  EXPECT_EQ(stream->header("content-type"), "text/event-stream; charset=utf-8");
  expect_headers(Send(Body("\"max_tokens\":0")), 200);
  expect_headers(Send(Body("\"max_tokens\":0,\"stream\":true")), 200);
  limits.set_granted(false);
  limits.set_denied_by(ratelimit::v1::LIMIT_KIND_REQUESTS);
  limits.set_retry_after_ms(2'400);
  const Answer refused = Send();
  expect_headers(refused, 429, "3s");
  EXPECT_EQ(refused->header("retry-after"), "3");
}

TEST_F(RunInferenceTest, StreamsOneWritePerBatch) {
  PushEvents({Started()});
  PushEvents({Text("a"), Text("b")});
  PushEvents({Finish(), End(5, 2)});
  const Answer answer = Send(Body("\"stream\":true"));
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer->header("cache-control"), "no-cache");
  EXPECT_EQ(answer->header("x-accel-buffering"), "no");
  ASSERT_EQ(answer->writes.size(), 3u);
  EXPECT_NE(answer->writes[1].find("\"a\""), std::string::npos);
  EXPECT_NE(answer->writes[1].find("\"b\""), std::string::npos);
  for (const std::string& bytes : answer->writes) {
    EXPECT_TRUE(bytes.starts_with("data: ") && bytes.ends_with("\n\n")) << bytes;
  }
  EXPECT_TRUE(answer->writes[2].ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(answer->ended);
  EXPECT_EQ(rig.limiter->released.at(0).actual_tokens(), 7);
}

// Clients that split a stream at every line break of Unicode would break the event there.
TEST_F(RunInferenceTest, LineBreaksOfUnicodeAreEscapedInStreams) {
  PushEvents({Started(), Text("a\xE2\x80\xA8"
                              "b\xE2\x80\xA9"
                              "c\xC2\x85"
                              "d \xE2\x80\x94")});
  PushEvents({Finish(), End(1, 1)});
  const Answer answer = Send(Body(R"("stream":true)"));
  EXPECT_NE(answer->body.find("\"a\\u2028b\\u2029c\\u0085d \xE2\x80\x94\""), std::string::npos)
      << answer->body;
}

TEST_F(RunInferenceTest, DoneFollowsTheEndEvent) {  // decision 24
  PushEvents({Started(), Text("a"), Finish()});
  bool done_early = false;
  const Answer answer = Send(Body("\"stream\":true"), [&](FakeExchange& exchange) {
    exchange.on_write = [&] {
      done_early = exchange.body.find("[DONE]") != std::string::npos;
      exchange.on_write = {};
      rig.inference->script->Push({End(1, 1)});
    };
  });
  EXPECT_FALSE(done_early);
  EXPECT_TRUE(answer->body.ends_with("data: [DONE]\n\n"));
}

// ---- disconnects ----

TEST_F(RunInferenceTest, DisconnectInMidStreamCancelsAtOnce) {
  PushEvents({Started(), Text("a")});
  const Answer answer = Send(Body("\"stream\":true"), [&](FakeExchange& exchange) {
    exchange.on_write = [&] {
      rig.worker->loop.Post([&] { exchange.Disconnect(); });
      exchange.on_write = {};
    };
  });
  EXPECT_TRUE(rig.inference->script->cancelled);
  EXPECT_FALSE(answer->ended);
  EXPECT_TRUE(rig.billing->voided.empty());
  ASSERT_EQ(rig.limiter->released.size(), 1u);
  EXPECT_FALSE(rig.limiter->released[0].refund());
  ExpectNoSlots();
}

TEST_F(RunInferenceTest, DisconnectBeforeANonStreamedResponse) {
  FakeExchange* caller = nullptr;
  std::function<void()> leave_once_started = [&] {
    if (!rig.inference->started.empty()) return caller->Disconnect();
    rig.worker->loop.RunAfter(1, leave_once_started);
  };
  const Answer answer = Send(Body(), [&](FakeExchange& exchange) {
    caller = &exchange;
    rig.worker->loop.RunAfter(1, leave_once_started);
  });
  EXPECT_EQ(answer->answers, 0);
  EXPECT_TRUE(rig.inference->script->cancelled);
  ExpectNoSlots();
}

TEST_F(RunInferenceTest, DisconnectBeforeTheEngineIsNotCharged) {
  FakeExchange* exchange = nullptr;
  rig.billing->on_call = [&] { exchange->Disconnect(); };
  Send(Body(), [&](FakeExchange& made) { exchange = &made; });
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_EQ(rig.billing->voided.size(), 1u);
  ExpectAllRefunded();

  rig.limiter->on_call = [&] { exchange->Disconnect(); };
  Send(Body(), [&](FakeExchange& made) { exchange = &made; });
  EXPECT_EQ(rig.billing->authorized.size(), 1u) << "only the first request was authorized";
  ExpectAllRefunded();
}

// ---- keep-alive, and responses without an engine ----

TEST(RunKeepAlive, CommentsStartTheStreamAndErrorsStayInIt) {  // decision 25
  PipelineOptions options;
  options.keep_alive_ms = 20;
  Rig rig(options);
  const auto answer =
      rig.Run(ChatSurface(), rig.ChatRequest(Body("\"stream\":true")), [&](FakeExchange& exchange) {
        exchange.on_write = [&] {
          if (exchange.writes.size() == 2) {
            rig.inference->script->Push({Failed("upstream_error")});
          }
        };
      });
  EXPECT_EQ(answer->status, 200);
  ASSERT_GE(answer->writes.size(), 3u);
  EXPECT_EQ(answer->writes[0], ": keep-alive\n\n");
  EXPECT_EQ(answer->writes[1], ": keep-alive\n\n");
  EXPECT_TRUE(answer->writes.back().starts_with("data: {\"error\":")) << answer->writes.back();
  EXPECT_TRUE(answer->ended);
}

TEST_F(RunInferenceTest, MaxTokensZeroCallsNoEngine) {  // decision 30
  const Answer folded = Send(Body("\"max_tokens\":0"));
  EXPECT_EQ(folded->status, 200);
  EXPECT_NE(
      folded->body.find(R"("content":"","refusal":null},"logprobs":null,"finish_reason":"length")"),
      std::string::npos)
      << folded->body;
  EXPECT_NE(folded->body.find(R"("completion_tokens":0)"), std::string::npos);
  const Answer streamed = Send(Body("\"max_tokens\":0,\"stream\":true"));
  EXPECT_TRUE(streamed->body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(streamed->ended);
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_TRUE(rig.billing->voided.empty()) << "nothing is held";
  ExpectNoSlots();
}

TEST_F(RunInferenceTest, MaxTokensZeroRequiresCredit) {
  billing::v1::AuthorizeResult denied;
  denied.set_denied_by(billing::v1::DENY_REASON_NO_CREDIT);
  rig.billing->answer = denied;
  EXPECT_EQ(ErrorOf(Send(Body("\"max_tokens\":0"))), "402 insufficient_credits permission_error");
}

}  // namespace
}  // namespace tollgate::gateway
