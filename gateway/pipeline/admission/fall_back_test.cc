// Decision 66: the models of a request are tried in order until one answers. Each has its own
// limits and price, and the answer names the model.
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using testing::Body;
using testing::End;
using testing::Failed;
using testing::Script;
using testing::Started;
using testing::Text;
using Events = std::vector<testing::pb::Event>;

class FallBackTest : public testing::PipelineFixture {
 protected:
  void SetUp() override {
    Add("ns/second", 30, 40);
    Add("ns/third", 300, 400);
    rig.Publish();
  }
  catalog::v1::Model& Add(const std::string& id, int64_t input_pico, int64_t output_pico) {
    catalog::v1::Model& model = *rig.snapshot.add_models();
    model = rig.snapshot.models(0);
    model.set_id(id);
    model.mutable_price()->set_input_pico_usd(input_pico);
    model.mutable_price()->set_output_pico_usd(output_pico);
    return model;
  }
  catalog::v1::Model& Model(int index) { return *rig.snapshot.mutable_models(index); }

  // Sets what the routers send, one answer per attempt.
  void Routers(std::vector<Events> answers) {
    rig.inference->script->batches = {answers[0]};
    rig.inference->later.clear();
    for (size_t i = 1; i < answers.size(); ++i) {
      auto script = std::make_shared<Script>();
      rig.RunOnLoop([&](Loop& loop) { script->more = std::make_unique<Notify>(loop); });
      script->batches = {answers[i]};
      rig.inference->later.push_back(script);
    }
  }
  static Events Answer1() { return {Started(), Text("hello"), testing::Finish(), End(3, 1)}; }
  // The model fails and the router leaves the hold open.
  static Events Kept(const std::string& error) {
    testing::pb::Event event = Failed(error);
    event.mutable_end()->set_hold_kept(true);
    return {event};
  }
  static std::string Models(const std::string& list = R"(["ns/second","ns/third"])") {
    return R"("models":)" + list;
  }
  static std::string ModelOf(const Answer& answer) {
    const auto document = json::Document::ParseView(answer->body);
    return document ? document->root().Find("model").string() : "not JSON: " + answer->body;
  }
  // The models that were tried, in order.
  std::string Asked() const {
    std::string all;
    for (const auto& request : rig.inference->started) all += request.model() + " ";
    return all;
  }
};

TEST_F(FallBackTest, TheNextModelAnswersUnderTheSameHoldAtItsOwnPrice) {
  for (const bool stream : {false, true}) {
    rig.billing->authorized.clear();
    rig.inference->started.clear();
    rig.limiter->released.clear();
    rig.limiter->acquired.clear();
    Routers({Kept("model_not_serving"), Kept("upstream_error"), Answer1()});
    const Answer answer = Send(Body(Models() + (stream ? R"(,"stream":true)" : "")));
    ASSERT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(Asked(), "ns/model ns/second ns/third ");
    EXPECT_EQ(answer->header("x-tollgate-model"), "ns/third");
    EXPECT_NE(answer->body.find(R"("model":"ns/third")"), std::string::npos) << answer->body;
    EXPECT_EQ(answer->body.find("ns/second"), std::string::npos);

    ASSERT_EQ(rig.billing->authorized.size(), 3u);
    auto first = rig.billing->authorized[0];
    EXPECT_EQ(first.model(), "ns/model");
    ASSERT_EQ(first.fallbacks_size(), 2);
    EXPECT_EQ(first.fallbacks(1).model(), "ns/third");
    EXPECT_EQ(first.fallbacks(1).price().output_pico_usd(), 400);
    for (int attempt = 1; attempt < 3; ++attempt) {
      auto next = rig.billing->authorized[attempt];
      EXPECT_EQ(next.attempt(), attempt);
      EXPECT_EQ(next.candidate(), attempt);
      next.clear_attempt();
      next.clear_candidate();
      EXPECT_EQ(next.SerializeAsString(), first.SerializeAsString()) << "the body is the same";
    }
    EXPECT_TRUE(rig.billing->voided.empty());

    const auto& last = rig.inference->started[2];
    EXPECT_EQ(last.attempt(), 2);
    EXPECT_EQ(last.hold().price().input_pico_usd(), 300);
    EXPECT_EQ(last.members_json(), rig.inference->started[0].members_json());
    EXPECT_EQ(last.members_json().find("models"), std::string::npos);
    EXPECT_TRUE(rig.inference->started[1].keep_hold());
    EXPECT_FALSE(last.keep_hold()) << "nothing follows";

    ASSERT_EQ(rig.limiter->acquired.size(), 3u);
    ASSERT_EQ(rig.limiter->released.size(), 3u);
    EXPECT_TRUE(rig.limiter->released[0].refund());
    EXPECT_TRUE(rig.limiter->released[1].refund());
    EXPECT_FALSE(rig.limiter->released[2].refund());
    EXPECT_NE(rig.limiter->acquired[0].lease_id(), rig.limiter->acquired[1].lease_id());
    ExpectNoSlots();
  }
}

TEST_F(FallBackTest, WhenAllFailTheLastErrorIsReturnedAndTheHoldIsVoided) {
  Routers({Kept("model_not_serving"), {Failed("rate_limited", 3'000)}});
  const Answer answer = Send(Body(Models(R"(["ns/second"])")));
  EXPECT_EQ(ErrorOf(answer), "429 rate_limited rate_limit_error retry=3");
  EXPECT_TRUE(rig.billing->voided.empty()) << "the last router has released it";
  ExpectAllRefunded();
}

TEST_F(FallBackTest, AFailureThatTheRouterHasSettledIsNotTriedElsewhere) {
  Routers({{Failed("bad_request")}, Answer1()});
  EXPECT_EQ(Send(Body(Models()))->status, 400);
  EXPECT_EQ(Asked(), "ns/model ");
}

TEST_F(FallBackTest, NothingIsTriedOnceAnyOfTheAnswerWasSent) {
  Routers({{Started(), Text("hel"), Kept("upstream_error")[0]}, Answer1()});
  const Answer answer = Send(Body(Models() + R"(,"stream":true)"));
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(Asked(), "ns/model ");
}

TEST_F(FallBackTest, BillingThatDoesNotLetItMoveOnEndsTheRequestFree) {
  Routers({Kept("upstream_error"), Answer1()});
  int calls = 0;
  rig.billing->on_call = [&] {
    if (++calls == 2) rig.billing->answer = Fail{Error{ErrorId::kServiceUnavailable}};
  };
  EXPECT_EQ(Send(Body(Models()))->status, 503);
  EXPECT_EQ(Asked(), "ns/model ");
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_TRUE(rig.billing->voided[0].refused());
  ExpectAllRefunded();
}

TEST_F(FallBackTest, ACallerWhoLeavesBetweenTwoModelsPaysNothing) {
  Routers({Kept("upstream_error"), Answer1()});
  testing::FakeExchange* caller = nullptr;
  int calls = 0;
  rig.billing->on_call = [&] {
    if (++calls == 2) caller->Disconnect();
  };
  Send(Body(Models()), [&](testing::FakeExchange& exchange) { caller = &exchange; });
  EXPECT_EQ(Asked(), "ns/model ");
  ASSERT_EQ(rig.billing->voided.size(), 1u) << "no router settles it";
  ExpectAllRefunded();
}

TEST_F(FallBackTest, AModelAtItsLimitsIsPassedOverBeforeAnyHold) {
  for (int i = 0; i < 3; ++i) Model(i).mutable_capacity()->set_requests_per_minute(1);
  rig.Publish();
  rig.limiter->model_at_limit = "ns/model";
  Routers({Answer1()});
  const Answer answer = Send(Body(Models()));
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(ModelOf(answer), "ns/second");
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].model(), "ns/second")
      << "the first one can no longer answer";
  EXPECT_EQ(rig.billing->authorized[0].fallbacks_size(), 1);
  EXPECT_EQ(rig.limiter->acquired[1].model(), "ns/second");
  // The limit also skips a model that is tried later.
  rig.limiter->model_at_limit = "ns/second";
  rig.inference->started.clear();
  Routers({Kept("upstream_error"), Answer1()});
  EXPECT_EQ(ModelOf(Send(Body(Models()))), "ns/third");
  EXPECT_EQ(Asked(), "ns/model ns/third ");
}

TEST_F(FallBackTest, ALimitOfTheCallerIsFinal) {
  ratelimit::v1::AcquireResult denied;
  denied.set_denied_by(ratelimit::v1::LIMIT_KIND_REQUESTS);
  denied.set_denied_subject(ratelimit::v1::LIMIT_SUBJECT_KEY);
  rig.limiter->answer = denied;
  EXPECT_EQ(Send(Body(Models()))->status, 429);
  EXPECT_EQ(rig.limiter->acquired.size(), 1u);
}

TEST_F(FallBackTest, ListedModelsMustExistAndBeAllowed) {
  EXPECT_EQ(ErrorOf(Send(Body(Models(R"(["ns/second","ns/none"])")))),
            "404 model_unavailable not_found_error");
  EXPECT_NE(Send(Body(Models(R"(["ns/second","ns/none"])")))->body.find("(models[1])"),
            std::string::npos)
      << "only a 400 has a param";
  Model(2).set_workspace_id("other");
  rig.Publish();
  EXPECT_EQ(Send(Body(Models()))->status, 401);
  Model(2).set_workspace_id("");
  Model(2).clear_capabilities();
  Model(2).add_capabilities(catalog::v1::CAPABILITY_EMBEDDING);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send(Body(Models()))), "400 bad_request invalid_request_error param=models[1]");
  rig.key.add_allowed_models("ns/model");
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send(Body(Models()))), "403 model_blocked permission_error");
  EXPECT_TRUE(rig.billing->authorized.empty());
}

TEST_F(FallBackTest, ModelsThatCannotServeTheRequestAreLeftOut) {
  Model(0).set_serving(false);
  Model(1).set_context_window(10);
  Model(1).set_max_output_tokens(10);
  rig.Publish();
  Routers({Answer1()});
  const Answer answer = Send(Body(Models() + R"(,"max_tokens":100)"));
  EXPECT_EQ(ModelOf(answer), "ns/third");
  EXPECT_EQ(answer->header("x-tollgate-model"), "ns/third");
  EXPECT_EQ(rig.billing->authorized[0].fallbacks_size(), 0) << "the hold need not cover them";
  Model(2).set_serving(false);
  rig.Publish();
  EXPECT_EQ(ErrorOf(Send(Body(Models() + R"(,"max_tokens":100)"))),
            "503 model_unavailable not_found_error")
      << "the error of the first model";
}

TEST_F(FallBackTest, ModelMayBeLeftOut) {
  Routers({Answer1()});
  const Answer answer =
      Send(R"({"models":["ns/second","ns/model"],"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(ModelOf(answer), "ns/second");
}

TEST_F(FallBackTest, TheCatalogsFallBacksServeCallersWhoListNone) {
  Model(0).add_fallbacks("ns/second");
  Model(0).add_fallbacks("ns/third");
  Model(1).set_workspace_id("other");
  rig.Publish();
  Routers({Kept("upstream_error"), Answer1()});
  const Answer answer = Send(Body());
  EXPECT_EQ(ModelOf(answer), "ns/third") << "the other one is not this caller's";
  EXPECT_EQ(answer->header("x-tollgate-model"), "ns/third");
  rig.inference->started.clear();
  Routers({{Failed("upstream_error")}});
  EXPECT_EQ(Send(Body(R"("provider":{"allow_fallbacks":false})"))->status, 502);
  EXPECT_EQ(Asked(), "ns/model ");
  EXPECT_FALSE(rig.inference->started[0].keep_hold());
}

TEST_F(FallBackTest, APriceLimitRefusesDearerModels) {
  const auto capped = [](const std::string& prices) {
    return R"("provider":{"max_price":{)" + prices + "}}";
  };
  Routers({Answer1()});
  // 3, 30 and 300 pico-USD per token are 0.000003, 0.00003 and 0.0003 USD per million.
  const Answer answer =
      Send(R"({"models":["ns/third","ns/second","ns/model"],)" + capped(R"("prompt":0.00003)") +
           R"(,"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(ModelOf(answer), "ns/second") << "exactly the allowed price";
  EXPECT_EQ(rig.billing->authorized[0].fallbacks_size(), 1);
  EXPECT_EQ(ErrorOf(Send(Body(capped(R"("completion":"0.0000039")")))),
            "400 bad_request invalid_request_error param=provider.max_price.completion");
}

TEST_F(FallBackTest, ParametersAndRetentionAreAskedOfEachModel) {
  Model(1).add_capabilities(catalog::v1::CAPABILITY_TOOLS);
  Model(2).set_zero_retention(true);
  rig.Publish();
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f"}}],"provider":{"require_parameters":true})";
  Routers({Answer1()});
  EXPECT_EQ(ModelOf(Send(Body(Models() + "," + tools))), "ns/second");
  EXPECT_EQ(ErrorOf(Send(Body(tools))),
            "400 bad_request invalid_request_error param=provider.require_parameters");
  const std::string strange(10'000, 'x');
  EXPECT_EQ(
      Send(Body("\"" + strange + R"(":1,"provider":{"require_parameters":true})"))->body.find("xx"),
      std::string::npos);
  EXPECT_EQ(ErrorOf(Send(Body(R"("foo":1,"provider":{"require_parameters":true})"))),
            "400 bad_request invalid_request_error param=provider.require_parameters");
  Routers({Answer1()});
  EXPECT_EQ(ModelOf(Send(Body(Models() + R"(,"provider":{"zdr":true})"))), "ns/third");
  EXPECT_EQ(ErrorOf(Send(Body(R"("provider":{"data_collection":"deny"})"))),
            "400 bad_request invalid_request_error param=provider.data_collection");
}

TEST_F(FallBackTest, TheOnlyProviderIsTheBrand) {
  for (const char* named : {R"("only":["Tollgate"])", R"("order":["openai","tollgate"])",
                            R"("ignore":["openai"])", R"("only":[])"}) {
    Routers({Answer1()});
    EXPECT_EQ(Send(Body(std::string(R"("provider":{)") + named + "}"))->status, 200) << named;
  }
  const std::pair<const char*, const char*> rows[] = {
      {R"("only":["openai"])", "provider.only"},
      {R"("order":["openai"])", "provider.order"},
      {R"("ignore":["tollgate"])", "provider.ignore"}};
  for (const auto& [named, param] : rows) {
    EXPECT_EQ(ErrorOf(Send(Body(std::string(R"("provider":{)") + named + "}"))),
              std::string("400 bad_request invalid_request_error param=") + param);
  }
}

TEST_F(FallBackTest, TheRequestIsWrittenSoThatTheEnginesOfEveryModelUnderstandIt) {
  const std::string late =
      R"("messages":[{"role":"user","content":"a"},{"role":"system","content":"late"}]})";
  const auto sent = [&](const std::string& members) {
    rig.inference->started.clear();
    Routers({Answer1()});
    EXPECT_EQ(Send("{" + members + "," + late)->status, 200);
    return rig.inference->started.empty() ? "" : rig.inference->started[0].members_json();
  };
  const std::string folded = sent(R"("model":"ns/model")");
  Model(0).set_keep_system_messages(true);
  rig.Publish();
  const std::string kept = sent(R"("model":"ns/model")");
  EXPECT_NE(kept, folded);
  EXPECT_EQ(sent(R"("model":"ns/model","models":["ns/second"])"), folded);
  Model(1).set_keep_system_messages(true);
  rig.Publish();
  EXPECT_EQ(sent(R"("model":"ns/model","models":["ns/second"])"), kept);
  Model(0).add_fallbacks("ns/third");
  rig.Publish();
  EXPECT_EQ(sent(R"("model":"ns/model")"), folded) << "the catalog's fall-backs count, too";
}

TEST_F(FallBackTest, ARequestWithOneModelIsAsBefore) {
  Routers({Answer1()});
  const Answer answer = Send();
  EXPECT_EQ(answer->header("x-tollgate-model"), "");
  EXPECT_EQ(rig.billing->authorized[0].fallbacks_size(), 0);
  EXPECT_EQ(rig.billing->authorized[0].candidate(), 0);
  EXPECT_FALSE(rig.inference->started[0].keep_hold());
}

TEST_F(FallBackTest, AModelThatIsTriedLaterMayLoseItsRouterAndMove) {
  Routers({Kept("upstream_error"), {}, Answer1()});
  rig.inference->later[0]->batches.clear();
  rig.inference->later[0]->broken = Error{ErrorId::kServiceUnavailable, "", "", 1000};
  const Answer answer = Send(Body(Models(R"(["ns/second"])")));
  EXPECT_EQ(answer->status, 200) << answer->body;
  EXPECT_EQ(Asked(), "ns/model ns/second ns/second ");
  ASSERT_EQ(rig.billing->authorized.size(), 3u);
  EXPECT_EQ(rig.billing->authorized[2].attempt(), 2);
  EXPECT_EQ(rig.billing->authorized[2].candidate(), 1);
}

}  // namespace
}  // namespace tollgate::gateway
