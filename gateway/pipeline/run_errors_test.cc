// Every error of an inference request: its status, code, type, param and Retry-After, the release
// of slot and hold, and which of several errors is returned.
#include "gateway/pipeline/run.h"

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

using RunErrors = PipelineFixture;

TEST_F(RunErrors, CredentialErrors) {
  const std::string wrong = "401 invalid_api_key authentication_error";
  const auto with = [&](Headers headers) {
    HttpRequest request = rig.ChatRequest(Body());
    request.headers = std::move(headers);
    return ErrorOf(rig.Run(ChatSurface(), std::move(request)));
  };
  const std::string good = "Bearer " + rig.key_text;
  std::string flipped = good;
  flipped[20] = flipped[20] == 'a' ? 'b' : 'a';
  EXPECT_EQ(with({}), wrong);
  EXPECT_EQ(with({{"authorization", "Bearer"}}), wrong);
  EXPECT_EQ(with({{"authorization", "Bearer "}}), wrong);
  EXPECT_EQ(with({{"authorization", "Basic dTpw"}}), wrong);
  EXPECT_EQ(with({{"authorization", rig.key_text}}), wrong);
  EXPECT_EQ(with({{"authorization", good}, {"authorization", good}}), wrong);
  EXPECT_EQ(with({{"x-api-key", rig.key_text}}), wrong);
  EXPECT_EQ(with({{"authorization", "Bearer " + std::string(10'000, 'a')}}), wrong);
  const int calls = rig.auth->calls;
  EXPECT_EQ(with({{"authorization", flipped}}), wrong);
  EXPECT_EQ(rig.auth->calls, calls) << "a bad checksum needs no lookup";  // H44
  EXPECT_EQ(with({{"authorization", "Bearer " + MakeKey("tollgate").text}}), wrong);
  EXPECT_EQ(rig.auth->calls, calls + 1);
  EXPECT_TRUE(rig.limiter->acquired.empty());
}

TEST_F(RunErrors, KeyStateErrors) {
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "403 virtual_key_blocked permission_error");
  rig.key.set_state(auth::v1::KEY_STATE_REVOKED);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "401 invalid_api_key authentication_error");
  rig.key.set_state(auth::v1::KEY_STATE_ACTIVE);
  rig.key.set_expires_at_us(rig.clock.WallUs());
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "401 invalid_api_key authentication_error");
}

TEST_F(RunErrors, AuthOutageIs503) {  // decision 14
  rig.auth->down = true;
  EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
}

TEST_F(RunErrors, BodyErrors) {
  const std::string bad = "400 bad_request invalid_request_error";
  for (const char* body : {"", "null", "[]", "\"x\"", "{", "{}x", "{'a':1}", "\xEF\xBB\xBF{}",
                           "{\"model\":\"a\",\"model\":\"b\"}", "{\"a\":NaN}"}) {
    EXPECT_EQ(ErrorOf(Send(body)), bad) << body;
  }
  EXPECT_EQ(ErrorOf(Send("{}")), bad + " param=model");
  EXPECT_EQ(ErrorOf(Send(R"({"model":"ns/model"})")), bad + " param=messages");
  EXPECT_EQ(ErrorOf(Send(Body("\"max_tokens\":-1"))), bad + " param=max_tokens");
  EXPECT_EQ(ErrorOf(Send(Body("\"max_tokens\":1.5"))), bad + " param=max_tokens");
  EXPECT_EQ(ErrorOf(Send(Body("\"temperature\":3"))), bad + " param=temperature");
  EXPECT_EQ(
      ErrorOf(Send(
          R"({"model":"ns/model","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,x"}}]}]})")),
      bad + " param=messages");
  EXPECT_TRUE(rig.limiter->acquired.empty());
  EXPECT_TRUE(rig.billing->authorized.empty());
}

TEST_F(RunErrors, StreamRequestsFailAsJsonBeforeTheStream) {  // docs/contract.md, general rule 2
  EXPECT_EQ(ErrorOf(Send(Body("\"stream\":true,\"n\":0"))),
            "400 bad_request invalid_request_error param=n");
  PushEvents({Failed("service_unavailable", 3000)});
  EXPECT_EQ(ErrorOf(Send(Body("\"stream\":true"))),
            "503 service_unavailable service_unavailable retry=3");
}

TEST_F(RunErrors, NonJsonContentTypesAreRefused) {  // H72, H73
  const auto with = [&](const char* name, const char* value) {
    HttpRequest request = rig.ChatRequest(Body());
    request.headers[1] = {name, value};
    return rig.Run(ChatSurface(), std::move(request))->status;
  };
  EXPECT_EQ(with("content-type", "text/plain"), 400);
  EXPECT_EQ(with("content-type", "application/x-www-form-urlencoded"), 400);
  EXPECT_EQ(with("content-type", "application/json; charset=utf-16"), 400);
  EXPECT_EQ(with("content-encoding", "gzip"), 400);
}

TEST_F(RunErrors, ModelErrors) {
  const auto of = [&](const std::string& model) {
    return ErrorOf(Send("{\"model\":" + json::Quoted(model) +
                        R"(,"messages":[{"role":"user","content":"hi"}]})"));
  };
  for (const char* id :
       {"", "ns/other", "NS/model", "ns/model ", "../ns/model", "tollgate/ns/model", "a\"b\\c"}) {
    EXPECT_EQ(of(id), "404 model_unavailable not_found_error") << id;
  }
  EXPECT_EQ(of(std::string(10'000, 'x')), "404 model_unavailable not_found_error");
  rig.snapshot.mutable_models(0)->set_serving(false);
  rig.Publish();
  EXPECT_EQ(of("ns/model"), "503 model_unavailable not_found_error");
  rig.snapshot.mutable_models(0)->set_workspace_id("ws2");
  rig.Publish();
  EXPECT_EQ(of("ns/model"), "401 invalid_api_key authentication_error");
  EXPECT_TRUE(rig.limiter->acquired.empty());
}

TEST_F(RunErrors, AllowList) {
  rig.key.add_allowed_models("ns/other");
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "403 model_blocked permission_error");
}

TEST_F(RunErrors, ANamespaceOfTheAllowListHasItsModelsOnly) {
  rig.key.add_allowed_models("other/*");
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "403 model_blocked permission_error");
}

TEST_F(RunErrors, AnAddressOutsideTheKeysNetworksIsRefusedAndTheMessageSaysSo) {
  rig.key.add_allowed_addresses("198.51.100.0/24");
  rig.Publish();
  const auto answer = Send();
  EXPECT_EQ(ErrorOf(answer), "403 virtual_key_blocked permission_error");
  EXPECT_NE(answer->body.find("may not be used from this client address"), std::string::npos);
}

TEST_F(RunErrors, EmbeddingOnlyModelsDoNotSupportChat) {
  rig.snapshot.mutable_models(0)->set_capabilities(0, catalog::v1::CAPABILITY_EMBEDDING);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send()), "400 bad_request invalid_request_error param=model");
}

TEST_F(RunErrors, OverflowsAreRefusedWithTheNumbers) {  // decisions 18, 32
  const Answer answer = Send(Body("\"max_completion_tokens\":1000"));
  EXPECT_EQ(ErrorOf(answer),
            "400 context_length_exceeded invalid_request_error param=max_completion_tokens");
  EXPECT_NE(answer->body.find("maximum context length is 1000 tokens"), std::string::npos);
}

// Expects the prompt's field when the prompt alone does not fit, and the field of max_tokens when
// that is at fault.
TEST_F(RunErrors, EngineOverflowsNameTheFieldAtFault) {
  const auto error_for = [&](const TokenAccounting& tokens, const std::string& more) {
    pb::Event event = Failed("context_length_exceeded");
    auto& sent = *event.mutable_end()->mutable_error()->mutable_tokens();
    sent.set_limit(tokens.limit);
    sent.set_prompt(tokens.prompt);
    sent.set_output(tokens.output);
    sent.set_prompt_is_lower_bound(tokens.prompt_is_lower_bound);
    PushEvents({event});
    return ErrorOf(Send(Body(more)));
  };
  const std::string plain = "400 context_length_exceeded invalid_request_error";
  const std::string asked = R"("max_completion_tokens":90)";
  const std::string named = plain + " param=max_completion_tokens";
  EXPECT_EQ(error_for({.limit = 100, .prompt = 20, .output = 90}, asked), named);
  EXPECT_EQ(error_for({.limit = 100, .output = 100}, asked), named)
      << "leaves no room for a prompt";
  const std::string prompt = plain + " param=messages";
  EXPECT_EQ(error_for({.limit = 100, .prompt = 120, .output = 90}, asked), prompt);
  EXPECT_EQ(error_for({.limit = 100, .prompt = 101, .prompt_is_lower_bound = true}, ""), prompt);
  EXPECT_EQ(
      error_for({.limit = 100, .prompt = 20, .output = 90, .prompt_is_lower_bound = true}, asked),
      plain);
  EXPECT_EQ(error_for({.limit = 100, .prompt = 20, .output = 80}, asked), plain);
  EXPECT_EQ(error_for({.limit = 100, .output = 90}, asked), plain);
  EXPECT_EQ(error_for({.limit = 100, .prompt = 20, .output = 90}, ""), plain)
      << "the client set no max_tokens";
  ExpectAllRefunded();
}

// Decision 16: a refusal by a later stage is sent after everything taken was released.
TEST_F(RunErrors, RefusalsReleaseBeforeTheyAreSent) {
  billing::v1::AuthorizeResult denied;
  denied.set_denied_by(billing::v1::DENY_REASON_HELD);
  rig.billing->answer = denied;
  rig.limiter->answer->mutable_requests()->set_limit(100);
  rig.limiter->answer->mutable_requests()->set_remaining(41);
  rig.RunOnLoop([&](Loop& loop) { rig.limiter->release_applied = std::make_shared<Event>(loop); });
  bool applied = false;
  const Answer answer = Send(Body(), [&](FakeExchange& exchange) {
    exchange.loop().RunAfter(30, [&] {
      EXPECT_EQ(exchange.answers, 0) << "sent before the limiter applied the release";
      applied = true;
      rig.limiter->release_applied->Set();
    });
  });
  EXPECT_TRUE(applied);
  EXPECT_EQ(ErrorOf(answer), "429 rate_limited rate_limit_error retry=1");
  EXPECT_EQ(answer->header("x-ratelimit-remaining-requests"), "")
      << "41 is the value before the refund";
  rig.RunOnLoop([&](Loop&) { rig.limiter->release_applied.reset(); });
  ExpectAllRefunded();
}

TEST_F(RunErrors, LimitErrors) {
  ratelimit::v1::AcquireResult denied;
  denied.set_retry_after_ms(1500);
  const auto by = [&](ratelimit::v1::LimitKind kind) {
    denied.set_denied_by(kind);
    rig.limiter->answer = denied;
    return ErrorOf(Send());
  };
  EXPECT_EQ(by(ratelimit::v1::LIMIT_KIND_REQUESTS), "429 rate_limited rate_limit_error retry=2");
  EXPECT_EQ(by(ratelimit::v1::LIMIT_KIND_CONCURRENCY), "429 rate_limited rate_limit_error retry=2");
  EXPECT_EQ(by(ratelimit::v1::LIMIT_KIND_TOKENS), "429 token_limited rate_limit_error retry=2");
  EXPECT_TRUE(rig.billing->authorized.empty());
  EXPECT_TRUE(rig.limiter->released.empty()) << "nothing was taken";
  ExpectNoSlots();
}

TEST_F(RunErrors, CreditErrorsReleaseTheLimits) {  // decisions 3, 16
  billing::v1::AuthorizeResult denied;
  denied.set_retry_after_ms(800);
  const auto by = [&](billing::v1::DenyReason reason) {
    denied.set_denied_by(reason);
    rig.billing->answer = denied;
    return ErrorOf(Send());
  };
  EXPECT_EQ(by(billing::v1::DENY_REASON_NO_CREDIT), "402 insufficient_credits permission_error");
  EXPECT_EQ(by(billing::v1::DENY_REASON_CAP), "402 insufficient_credits permission_error");
  EXPECT_EQ(by(billing::v1::DENY_REASON_FROZEN), "402 insufficient_credits permission_error");
  EXPECT_EQ(by(billing::v1::DENY_REASON_FROZEN_BY_CHECK),
            "503 service_unavailable service_unavailable retry=1");
  const auto clock_is_refused = [&] {
    return rig.worker->clock_check->IsRefused(rig.worker->clock.MonotonicUs());
  };
  EXPECT_FALSE(clock_is_refused());
  EXPECT_EQ(by(billing::v1::DENY_REASON_CLOCK),
            "503 service_unavailable service_unavailable retry=1");
  EXPECT_TRUE(clock_is_refused());
  EXPECT_EQ(by(billing::v1::DENY_REASON_HELD), "429 rate_limited rate_limit_error retry=1");
  EXPECT_EQ(by(billing::v1::DENY_REASON_ID_REUSE), "500 server_error server_error");
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectAllRefunded();
}

TEST_F(RunErrors, AReachedKeyQuotaIs402AndNamesTheQuota) {
  rig.key.set_monthly_quota_nano_usd(12'500'000'000);
  rig.Publish();
  billing::v1::AuthorizeResult denied;
  denied.set_denied_by(billing::v1::DENY_REASON_QUOTA);
  rig.billing->answer = denied;
  const Answer answer = Send();
  EXPECT_EQ(ErrorOf(answer), "402 insufficient_credits permission_error");
  EXPECT_NE(answer->body.find("monthly quota of 12.5 USD"), std::string::npos) << answer->body;
  ASSERT_EQ(rig.billing->authorized.size(), 1U);
  EXPECT_EQ(rig.billing->authorized[0].key_quota_nano_usd(), 12'500'000'000);
}

// Rotating a key renews neither its limits nor its quota.
TEST_F(RunErrors, ARotatedKeySharesTheLimitsAndTheQuotaOfItsLineage) {
  rig.key.set_monthly_quota_nano_usd(1'000'000'000);
  rig.key.mutable_key_limits()->set_requests_per_minute(5);
  for (const char* id : {"FirstKey0123", "SecondKey012"}) rig.key.add_lineage(id);
  rig.key.add_lineage(rig.key.key_id());
  rig.Publish();
  billing::v1::AuthorizeResult denied;
  denied.set_denied_by(billing::v1::DENY_REASON_QUOTA);
  rig.billing->answer = denied;
  EXPECT_EQ(Send()->status, 402);
  ASSERT_EQ(rig.limiter->acquired.size(), 1u);
  EXPECT_EQ(rig.limiter->acquired[0].key_id(), "FirstKey0123");
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  const auto& item = rig.billing->authorized[0];
  EXPECT_EQ(item.key_id(), rig.key.key_id()) << "usage is the key's own";
  EXPECT_EQ(std::vector<std::string>(item.quota_keys().begin(), item.quota_keys().end()),
            (std::vector<std::string>{"FirstKey0123", "SecondKey012"}));
}

TEST_F(RunErrors, BillingOutageIs503AndVoidsTheHold) {
  rig.billing->answer = Fail{Error{ErrorId::kInsufficientCredits}};  // an error, not a denial
  EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_EQ(rig.billing->voided[0].request_id(), rig.billing->authorized[0].request_id());
  EXPECT_TRUE(rig.inference->started.empty());
  ExpectAllRefunded();
}

TEST_F(RunErrors, LimiterOutageUsesLocalLimits) {
  rig.key.mutable_key_limits()->set_requests_per_minute(5);
  rig.Publish();
  rig.limiter->answer = Unavailable("limiter is down");
  int served = 0, limited = 0;
  for (int i = 0; i < 10; ++i) {
    PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
    const Answer answer = Send();
    if (answer->status == 200) {
      ++served;
    } else {
      EXPECT_TRUE(ErrorOf(answer).starts_with("429 rate_limited rate_limit_error retry="));
      ++limited;
      rig.RunOnLoop([&](Loop&) { rig.inference->script->batches.clear(); });
    }
  }
  EXPECT_EQ(served, 3);  // 60 % of five
  EXPECT_EQ(limited, 7);
  ExpectAllRefunded();  // the limiter may have granted them
}

TEST_F(RunErrors, KeysWithoutLimitsNeedNoLimiter) {
  rig.key.clear_key_limits();
  rig.Publish();
  PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
  EXPECT_EQ(Send()->status, 200);
  EXPECT_TRUE(rig.limiter->acquired.empty());
  EXPECT_TRUE(rig.limiter->released.empty());
}

TEST_F(RunErrors, EngineErrorsBeforeOutput) {
  struct Case {
    const char* name;
    const char* error;
  };
  const Case kCases[] = {
      {"bad_request", "400 bad_request invalid_request_error"},
      {"context_length_exceeded", "400 context_length_exceeded invalid_request_error"},
      {"rate_limited", "429 rate_limited rate_limit_error retry=4"},
      {"upstream_error", "502 server_error server_error retry=4"},
      {"upstream_unreachable", "502 service_unavailable service_unavailable retry=4"},
      {"service_unavailable", "503 service_unavailable service_unavailable retry=4"},
      {"model_not_serving", "503 model_unavailable not_found_error retry=4"},
      {"server_error", "500 server_error server_error retry=4"},
      {"a_row_of_a_later_version", "500 server_error server_error retry=4"},
  };
  for (const Case& c : kCases) {
    for (const char* body : {"\"stream\":true", "\"stream\":false"}) {
      PushEvents({Failed(c.name, 3500)});
      EXPECT_EQ(ErrorOf(Send(Body(body))), c.error);
    }
  }
  EXPECT_TRUE(rig.billing->voided.empty()) << "the router settles it";
  ExpectAllRefunded();
}

TEST_F(RunErrors, UnsentRequestsAreVoided) {
  rig.inference->script->sent = false;
  rig.inference->script->broken = Error{ErrorId::kServiceUnavailable, "", "", 1000};
  EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  ExpectAllRefunded();
}

// Decision 52: the caller got an error, so the request is free whatever the router does with it.
TEST_F(RunErrors, ACallThatEndsWithALostRouterIsFree) {
  rig.inference->script->broken = Error{ErrorId::kServiceUnavailable, "", "", 1000};
  EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_TRUE(rig.billing->voided[0].refused());
}

TEST_F(RunErrors, FailuresAfterOutputEndTheStreamWithoutDone) {  // decision 23
  PushEvents({Started(), Text("a")});
  PushEvents({Failed("upstream_error")});
  const Answer answer = Send(Body("\"stream\":true"));
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(answer->body.ends_with(
      "data: {\"error\":{\"message\":\"The model backend failed.\",\"type\":\"server_error\","
      "\"code\":\"server_error\"}}\n\n"))
      << answer->body;
  EXPECT_EQ(answer->body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(answer->ended);
  EXPECT_FALSE(rig.limiter->released.at(0).refund());
}

TEST_F(RunErrors, BrokenLinksInMidStreamSendAnErrorEvent) {
  PushEvents({Started(), Text("a")});
  rig.inference->script->broken = Error{ErrorId::kUpstreamUnreachable};
  const Answer answer = Send(Body("\"stream\":true"));
  EXPECT_NE(answer->body.find("data: {\"error\":"), std::string::npos);
  EXPECT_EQ(answer->body.find("[DONE]"), std::string::npos);
}

TEST_F(RunErrors, FailuresAfterOutputFailANonStreamedResponse) {
  PushEvents({Started(), Text("a")});
  PushEvents({Failed("upstream_error")});
  EXPECT_EQ(ErrorOf(Send()), "502 server_error server_error");
}

// ---- order of the stages (decision 16) ----

TEST_F(RunErrors, TheFirstFailingStageDecidesTheError) {
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.key.add_allowed_models("ns/other");
  rig.snapshot.mutable_models(0)->set_serving(false);
  billing::v1::AuthorizeResult broke;
  broke.set_denied_by(billing::v1::DENY_REASON_NO_CREDIT);
  rig.billing->answer = broke;
  ratelimit::v1::AcquireResult limited;
  limited.set_denied_by(ratelimit::v1::LIMIT_KIND_REQUESTS);
  limited.set_retry_after_ms(1);
  rig.limiter->answer = limited;
  rig.Publish();
  EXPECT_TRUE(ErrorOf(Send("{")).starts_with("403 virtual_key_blocked"));
  rig.key.set_state(auth::v1::KEY_STATE_ACTIVE);
  rig.Publish();
  const auto forget_keys = [&] {
    auth::v1::WatchKeysResponse reset;
    reset.set_reset(true);
    rig.RunOnLoop([&](Loop&) { rig.worker->keys->OnChanges(reset); });
  };
  forget_keys();
  EXPECT_TRUE(ErrorOf(Send("{")).starts_with("400 bad_request"));
  EXPECT_TRUE(ErrorOf(Send(R"({"model":"no","messages":[{"role":"user","content":"x"}]})"))
                  .starts_with("404 model_unavailable"));
  EXPECT_TRUE(ErrorOf(Send()).starts_with("403 model_blocked"));
  rig.key.clear_allowed_models();
  rig.Publish();
  forget_keys();
  EXPECT_TRUE(ErrorOf(Send()).starts_with("503 model_unavailable"));
  rig.snapshot.mutable_models(0)->set_serving(true);
  rig.Publish();
  EXPECT_TRUE(ErrorOf(Send()).starts_with("429 rate_limited"));
  limited.set_granted(true);
  rig.limiter->answer = limited;
  EXPECT_TRUE(ErrorOf(Send()).starts_with("402 insufficient_credits"));
}

// Templates need the catalog's permission (decision 45).
TEST_F(RunErrors, TemplatesNeedTheCatalogsPermission) {
  const std::string bad = "400 bad_request invalid_request_error param=";
  const std::string direct = R"("chat_template":"{{x}}")";
  const std::string inside = R"("chat_template_kwargs":{"chat_template":"{{x}}"})";
  EXPECT_EQ(ErrorOf(Send(Body(direct))), bad + "chat_template");
  EXPECT_EQ(ErrorOf(Send(Body(inside))), bad + "chat_template_kwargs");
  EXPECT_TRUE(rig.billing->authorized.empty());
  rig.snapshot.mutable_models(0)->set_allow_chat_template(true);
  rig.Publish();
  for (const std::string& members : {direct, inside}) {
    PushEvents({Started(), Text("a"), Finish(), End(5, 1)});
    EXPECT_EQ(Send(Body(members))->status, 200);
    EXPECT_NE(rig.inference->started.back().members_json().find(members), std::string::npos);
  }
  EXPECT_EQ(ErrorOf(Send(Body(R"("chat_template_kwargs":{"tokenize":true})"))),
            bad + "chat_template_kwargs");
}

// H67.
class RunErrorsWithMediaHosts : public ::testing::Test {
 protected:
  static void ExpectHosts(const std::vector<std::string>& rules,
                          const std::vector<std::string>& refused,
                          const std::vector<std::string>& allowed) {
    PipelineOptions options;
    options.media_hosts = rules;
    Rig rig(std::move(options));
    rig.snapshot.mutable_models(0)->add_capabilities(catalog::v1::CAPABILITY_VISION);
    rig.snapshot.mutable_models(0)->set_context_window(100'000);
    rig.Publish();
    const auto send = [&](const std::string& url) {
      const std::string part = R"({"type":"image_url","image_url":{"url":")" + url + R"("}})";
      return rig
          .Run(ChatSurface(),
               rig.ChatRequest(R"({"model":"ns/model","messages":[{"role":"user","content":[)" +
                               part + "]}]}"))
          ->status;
    };
    for (const std::string& url : refused) EXPECT_EQ(send(url), 400) << url;
    for (const std::string& url : allowed) {
      rig.RunOnLoop(
          [&](Loop&) { rig.inference->script->Push({Started(), Text("a"), Finish(), End(5, 1)}); });
      EXPECT_EQ(send(url), 200) << url;
    }
  }
};

TEST_F(RunErrorsWithMediaHosts, OtherHostsAreRefused) {
  ExpectHosts({"*.cdn.example"},
              {"https://evil.example/a", "https://cdn.example/", "https://10.0.0.1/"},
              {"https://a.CDN.example/a", "data:image/png;base64,AA=="});
}

TEST_F(RunErrorsWithMediaHosts, ByDefaultPrivateHostsAreRefused) {
  ExpectHosts({},
              {"https://169.254.169.254/latest", "https://[fd00::1]/", "https://LOCALHOST/",
               "https://metadata.google.internal/"},
              {"https://a.example/a", "data:image/png;base64,AA=="});
}

// A router that passes an endless answer on is cut off (H75).
TEST(RunErrorsWithEndlessAnswers, ACollectedAnswerIsBounded) {
  PipelineOptions options;
  options.max_collected_bytes = 100'000;
  Rig rig(std::move(options));
  rig.RunOnLoop([&](Loop&) {
    rig.inference->script->Push({Started()});
    for (int i = 0; i < 200; ++i) rig.inference->script->Push({Text(std::string(1000, 'x'))});
  });
  const auto answer = rig.Run(ChatSurface(), rig.ChatRequest(Body()));
  EXPECT_EQ(answer->status, 502);
  rig.RunOnLoop([&](Loop&) { EXPECT_TRUE(rig.inference->script->cancelled); });
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_TRUE(rig.billing->voided[0].refused()) << "including what the router settles";
}

}  // namespace
}  // namespace tollgate::gateway
