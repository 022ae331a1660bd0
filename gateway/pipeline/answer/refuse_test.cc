// Why a request was refused, as the access log, the trace and the metric get it.
#include "gateway/pipeline/answer/refuse.h"

#include "gateway/pipeline/checks/authenticate.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class RefuseTest : public PipelineFixture {
 protected:
  std::string Caller() const { return " " + rig.key.key_id() + " ws1"; }
  std::string WithHeaders(Headers headers) {
    HttpRequest request = rig.ChatRequest(Body());
    request.headers = std::move(headers);
    return WhyOf(rig.Run(ChatSurface(), std::move(request)));
  }
  // The router ends the request with this error.
  std::string WithEngineError(const std::string& error, Reason reason) {
    std::vector<pb::Event> batch = {Failed(error, 1000)};
    batch[0].mutable_end()->mutable_error()->set_reason(std::string(NameOf(reason)));
    PushEvents(std::move(batch));
    return WhyOf(Send());
  }
};

TEST_F(RefuseTest, AnAcceptedRequestKeepsNothing) {
  PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
  const Answer answer = Send();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->request().attachment, nullptr);
}

TEST_F(RefuseTest, KeysThatDoNotExistAreToldApart) {
  EXPECT_EQ(WithHeaders({}), "no_key");
  EXPECT_EQ(WithHeaders({{"authorization", "Bearer x"}}), "malformed_key");
  EXPECT_EQ(WithHeaders({{"authorization", "Bearer " + MakeKey("tollgate").text}}), "unknown_key");
  rig.auth->down = true;
  EXPECT_EQ(WhyOf(Send()), "auth_unavailable");
}

TEST_F(RefuseTest, AKeyThatMayNotBeUsedIsNamed) {
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(WhyOf(Send()), "disabled_key" + Caller());
}

TEST_F(RefuseTest, KeyStatesAreToldApart) {
  const auto state = [&](std::string_view expected, auto&& change) {
    auth::v1::Key key;
    key.set_state(auth::v1::KEY_STATE_ACTIVE);
    change(key);
    const Result<void> usable = CheckKey(key, 1'000, "192.0.2.1");
    ASSERT_FALSE(usable.ok());
    EXPECT_EQ(NameOf(usable.error().reason), expected);
  };
  state("disabled_key", [](auto& key) { key.set_state(auth::v1::KEY_STATE_DISABLED); });
  state("revoked_key", [](auto& key) { key.set_state(auth::v1::KEY_STATE_REVOKED); });
  state("expired_key", [](auto& key) { key.set_expires_at_us(1'000); });
  state("allowed_addresses", [](auto& key) { key.add_allowed_addresses("198.51.100.0/24"); });
}

TEST_F(RefuseTest, Models) {
  const auto of = [&](const std::string& model) {
    return WhyOf(Send("{\"model\":" + json::Quoted(model) +
                      R"(,"messages":[{"role":"user","content":"hi"}]})"));
  };
  EXPECT_EQ(of("ns/other"), "unknown_model" + Caller());
  EXPECT_EQ(of("tollgate/ns/model"), "legacy_prefix" + Caller());
  rig.snapshot.mutable_models(0)->set_serving(false);
  rig.Publish();
  EXPECT_EQ(of("ns/model"), "not_serving" + Caller());
  rig.snapshot.mutable_models(0)->set_workspace_id("ws2");
  rig.Publish();
  EXPECT_EQ(of("ns/model"), "foreign_model" + Caller());
  rig.RunOnLoop([&](Loop&) { rig.worker->catalog = nullptr; });
  EXPECT_EQ(of("ns/model"), "not_ready" + Caller());
}

TEST_F(RefuseTest, AModelOutsideTheKeysList) {
  rig.key.add_allowed_models("ns/other");
  rig.Publish();
  EXPECT_EQ(WhyOf(Send()), "allowed_models" + Caller());
}

TEST_F(RefuseTest, Limits) {
  ratelimit::v1::AcquireResult denied;
  for (const auto& [kind, reason] : {std::pair{ratelimit::v1::LIMIT_KIND_REQUESTS, "requests"},
                                     {ratelimit::v1::LIMIT_KIND_CONCURRENCY, "concurrency"},
                                     {ratelimit::v1::LIMIT_KIND_TOKENS, "tokens"}}) {
    denied.set_denied_by(kind);
    rig.limiter->answer = denied;
    EXPECT_EQ(WhyOf(Send()), reason + Caller());
  }
}

TEST_F(RefuseTest, Credit) {
  billing::v1::AuthorizeResult denied;
  for (const auto& [by, reason] :
       {std::pair{billing::v1::DENY_REASON_NO_CREDIT, "balance"},
        {billing::v1::DENY_REASON_CAP, "cap"},
        {billing::v1::DENY_REASON_QUOTA, "quota"},
        {billing::v1::DENY_REASON_HELD, "held"},
        {billing::v1::DENY_REASON_FROZEN, "frozen"},
        {billing::v1::DENY_REASON_FROZEN_BY_CHECK, "frozen_by_check"},
        {billing::v1::DENY_REASON_CLOCK, "clock"},
        {billing::v1::DENY_REASON_IDEMPOTENCY_BODY, "idempotency_body"},
        {billing::v1::DENY_REASON_IDEMPOTENCY_RUNNING, "idempotency_running"}}) {
    denied.set_denied_by(by);
    rig.billing->answer = denied;
    EXPECT_EQ(WhyOf(Send()), reason + Caller());
  }
  rig.billing->answer = Fail{Error{ErrorId::kServerError}};
  EXPECT_EQ(WhyOf(Send()), "billing_unavailable" + Caller());
}

TEST_F(RefuseTest, TheReasonOfTheRouterIsPassedOn) {
  EXPECT_EQ(WithEngineError("rate_limited", Reason::kQueueFull), "queue_full" + Caller());
  EXPECT_EQ(WithEngineError("rate_limited", Reason::kEngineFull), "engine_full" + Caller());
  EXPECT_EQ(WithEngineError("service_unavailable", Reason::kStopping), "stopping" + Caller());
  // A router that does not know reasons.
  EXPECT_EQ(WithEngineError("rate_limited", Reason::kNone), Caller());
}

TEST_F(RefuseTest, AStreamThatBreaksHasItsReason) {
  std::vector<pb::Event> batch = {Failed("service_unavailable")};
  batch[0].mutable_end()->mutable_error()->set_reason("stopping");
  PushEvents({Started(), Text("a")});
  PushEvents(std::move(batch));
  const Answer answer = Send(Body("\"stream\":true"));
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(WhyOf(answer), "stopping" + Caller());
  EXPECT_EQ(FailureOf(answer->request()).error, &RowOf(ErrorId::kServiceUnavailable));
}

}  // namespace
}  // namespace tollgate::gateway
