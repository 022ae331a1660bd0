// Requests of workspaces that have leases go to a router without a hold (docs/adr/0042).
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using testing::Body;
using testing::End;
using testing::Script;
using testing::Started;
using testing::Text;

class Leases : public testing::PipelineFixture {
 protected:
  static constexpr char kStream[] = R"("stream":true)";

  static std::vector<testing::pb::Event> Whole() {
    return {Started(), Text("hello"), testing::Finish(), End(3, 1)};
  }
  static testing::pb::Event NoLease() {
    auto event = testing::Failed("service_unavailable", 1000);
    event.mutable_end()->set_not_run(true);
    event.mutable_end()->set_no_lease(true);
    return event;
  }
  // Sets the answer to the next request.
  void Answering(std::vector<std::vector<testing::pb::Event>> batches) {
    rig.RunOnLoop([&](Loop& loop) {
      rig.inference->script = std::make_shared<Script>();
      rig.inference->script->more = std::make_unique<Notify>(loop);
      rig.inference->script->batches.assign(batches.begin(), batches.end());
    });
  }
  // Sets the answer to the request after it, which is sent again.
  void Then(std::vector<std::vector<testing::pb::Event>> batches) {
    auto script = std::make_shared<Script>();
    rig.RunOnLoop([&](Loop& loop) { script->more = std::make_unique<Notify>(loop); });
    script->batches.assign(batches.begin(), batches.end());
    rig.inference->later.push_back(script);
  }
  // Sends a first request, which is authorized. Billing reports that the workspace has leases.
  void Begin() {
    rig.RunOnLoop([&](Loop&) { rig.worker->leased = LeasedWorkspaces(); });
    rig.billing->authorized.clear();
    rig.inference->started.clear();
    rig.billing->answer->set_lease(true);
    Answering({Whole()});
    ASSERT_EQ(Send()->status, 200);
    ASSERT_EQ(rig.billing->authorized.size(), 1u);
    ASSERT_FALSE(rig.inference->started.at(0).has_admission());
    rig.billing->authorized.clear();
    rig.inference->started.clear();
  }
};

TEST_F(Leases, ARequestGoesWithWhatItWouldBeAuthorizedBy) {
  for (const char* stream : {"", kStream}) {
    Begin();
    Answering({Whole()});
    const Answer answer = Send(Body(stream));
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_TRUE(rig.billing->authorized.empty());
    ASSERT_EQ(rig.inference->started.size(), 1u);
    const auto& sent = rig.inference->started[0];
    EXPECT_EQ(sent.admission().request_id(), sent.request_id());
    EXPECT_EQ(sent.admission().workspace_id(), sent.workspace_id());
    EXPECT_EQ(sent.admission().streamed(), *stream != 0);
    EXPECT_GT(sent.admission().prompt_tokens_bound(), 0);
    EXPECT_EQ(sent.hold().authorized_nano_usd(), 0);
    EXPECT_EQ(sent.hold().price().SerializeAsString(),
              sent.admission().price().SerializeAsString());
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(Leases, WithoutALeaseAtTheRouterItIsAuthorizedAndSentAgain) {
  for (const char* stream : {"", kStream}) {
    Begin();
    Answering({{NoLease()}});
    Then({Whole()});
    const Answer answer = Send(Body(stream));
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_NE(answer->body.find("hello"), std::string::npos);
    ASSERT_EQ(rig.billing->authorized.size(), 1u);
    EXPECT_EQ(rig.billing->authorized[0].attempt(), 0);
    ASSERT_EQ(rig.inference->started.size(), 2u);
    EXPECT_FALSE(rig.inference->started[1].has_admission());
    EXPECT_EQ(rig.inference->started[1].hold().authorized_nano_usd(), 777);
    EXPECT_EQ(rig.inference->started[1].request_id(), rig.inference->started[0].request_id());
    // During the pause the router takes a lease, and later requests are not sent to it in vain.
    Answering({Whole()});
    EXPECT_EQ(Send(Body(stream))->status, 200);
    EXPECT_EQ(rig.billing->authorized.size(), 2u);
  }
  EXPECT_TRUE(rig.billing->voided.empty()) << "there was no hold to void";
  ExpectNoSlots();
}

// Billing may have reported a lease to another loop or gateway.
TEST_F(Leases, WhileTheLedgerIsUnreachableARouterIsAskedOnceBeforeItIsWaitedFor) {
  for (const char* stream : {"", kStream}) {
    Begin();
    rig.RunOnLoop([&](Loop&) { rig.worker->leased.OnAuthorized("ws1", false); });
    const auto granted = rig.billing->answer;
    rig.billing->answer = Unavailable("billing: the database is unreachable");
    Answering({Whole()});
    EXPECT_EQ(Send(Body(stream))->status, 200);
    ASSERT_EQ(rig.billing->authorized.size(), 1u);
    ASSERT_EQ(rig.inference->started.size(), 1u);
    EXPECT_EQ(rig.inference->started[0].admission().SerializeAsString(),
              rig.billing->authorized[0].SerializeAsString())
        << "the same request, in case the hold was placed";
    Answering({Whole()});
    EXPECT_EQ(Send(Body(stream))->status, 200);
    EXPECT_EQ(rig.billing->authorized.size(), 1u) << "the router has a lease";
    // No lease covers the next request, and the ledger is back at the second attempt.
    rig.billing->on_call = [&] {
      if (rig.billing->authorized.size() == 3) rig.billing->answer = granted;
    };
    Answering({{NoLease()}});
    Then({Whole()});
    EXPECT_EQ(Send(Body(stream))->status, 200);
    EXPECT_EQ(rig.billing->authorized.size(), 3u);
    ASSERT_EQ(rig.inference->started.size(), 4u);
    EXPECT_FALSE(rig.inference->started[3].has_admission());
    rig.billing->on_call = nullptr;
    EXPECT_TRUE(rig.billing->voided.empty());
  }
  ExpectNoSlots();
}

TEST_F(Leases, WhatTheLedgerThenRefusesIsRefused) {
  for (const char* stream : {"", kStream}) {
    Begin();
    Answering({{NoLease()}});
    const auto granted = rig.billing->answer;
    rig.billing->answer = billing::v1::AuthorizeResult();
    rig.billing->answer->set_denied_by(billing::v1::DENY_REASON_NO_CREDIT);
    EXPECT_EQ(ErrorOf(Send(Body(stream))).substr(0, 24), "402 insufficient_credits");
    EXPECT_EQ(rig.inference->started.size(), 1u);
    rig.billing->answer = granted;
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(Leases, QuotasAndIdempotencyKeysAndOrdinaryWorkspacesAreForTheLedger) {
  Begin();
  Answering({Whole()});
  HttpRequest request = rig.ChatRequest(Body());
  request.headers.emplace_back("idempotency-key", "once");
  EXPECT_EQ(rig.Run(ChatSurface(), std::move(request))->status, 200);
  EXPECT_EQ(rig.billing->authorized.size(), 1u);
  // Billing no longer counts the workspace as busy.
  rig.billing->answer->set_lease(false);
  Answering({Whole()});
  request = rig.ChatRequest(Body());
  request.headers.emplace_back("idempotency-key", "twice");
  EXPECT_EQ(rig.Run(ChatSurface(), std::move(request))->status, 200);
  Answering({Whole()});
  EXPECT_EQ(Send()->status, 200);
  EXPECT_EQ(rig.billing->authorized.size(), 3u);
  for (const auto& sent : rig.inference->started) EXPECT_FALSE(sent.has_admission());
}

// The lost router may have run the request, so the ledger learns that another router has it.
TEST_F(Leases, ARequestOfALostRouterIsAuthorizedForAnother) {
  Begin();
  Answering({});
  rig.inference->script->broken = Error{ErrorId::kServiceUnavailable, "", "", 1000};
  Then({Whole()});
  const Answer answer = Send();
  EXPECT_EQ(answer->status, 200) << answer->body;
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].attempt(), 1);
  ASSERT_EQ(rig.inference->started.size(), 2u);
  EXPECT_TRUE(rig.inference->started[0].has_admission());
  EXPECT_FALSE(rig.inference->started[1].has_admission());
  EXPECT_EQ(rig.inference->started[1].attempt(), 1);
}

// The ledger may know the request by then, so whatever was charged is undone.
TEST_F(Leases, AnErrorIsFree) {
  Begin();
  auto failed = testing::Failed("upstream_error");
  failed.mutable_end()->mutable_usage()->set_prompt_tokens(3);
  Answering({{failed}});
  EXPECT_GE(Send()->status, 500);
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_TRUE(rig.billing->voided[0].refused());
}

}  // namespace
}  // namespace tollgate::gateway
