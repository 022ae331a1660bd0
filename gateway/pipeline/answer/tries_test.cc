// A lost router (decision 52): the request moves to another router, or is refused without a charge.
#include "common/rpc/link_protocol.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using testing::Body;
using testing::End;
using testing::Script;
using testing::Started;
using testing::Text;

class Move : public testing::PipelineFixture {
 protected:
  static constexpr char kStream[] = R"("stream":true)";

  // The first router delivers these events and is lost.
  void LoseFirst(std::vector<std::vector<testing::pb::Event>> batches = {}) {
    rig.inference->script->batches.assign(batches.begin(), batches.end());
    rig.inference->script->broken = Lost();
  }
  // Adds another router, which answers with these batches.
  Script& Then(std::vector<std::vector<testing::pb::Event>> batches) {
    auto script = std::make_shared<Script>();
    rig.RunOnLoop([&](Loop& loop) { script->more = std::make_unique<Notify>(loop); });
    script->batches.assign(batches.begin(), batches.end());
    rig.inference->later.push_back(script);
    return *script;
  }
  static testing::pb::Event Declined() {
    auto event = testing::Failed("service_unavailable", 1000);
    event.mutable_end()->set_not_run(true);
    event.mutable_end()->mutable_error()->set_internal(kLinkRefusal);
    return event;
  }
  static Error Lost() { return Error{ErrorId::kServiceUnavailable, "", "", 1000}; }
  static std::vector<testing::pb::Event> Whole() {
    return {Started(), Text("hello"), testing::Finish(), End(3, 1)};
  }
  // Billing answers the second call that the lost router has ended the request.
  void CloseSecondTry() {
    rig.billing->on_call = [this, calls = 0, granted = rig.billing->answer]() mutable {
      ++calls;
      rig.billing->answer = calls == 2 ? Result<billing::v1::AuthorizeResult>(Closed()) : granted;
    };
  }
  static billing::v1::AuthorizeResult Closed() {
    billing::v1::AuthorizeResult closed;
    closed.set_denied_by(billing::v1::DENY_REASON_CLOSED);
    return closed;
  }
  void ExpectRefusedOnce() {
    ASSERT_EQ(rig.billing->voided.size(), 1u);
    EXPECT_TRUE(rig.billing->voided[0].refused());
    EXPECT_EQ(rig.billing->voided[0].request_id(), rig.billing->authorized[0].request_id());
  }
};

TEST_F(Move, ARequestWithoutAnswerMovesUnderItsIdOnceBillingKnows) {
  for (const char* stream : {"", kStream}) {
    rig.billing->authorized.clear();
    rig.inference->started.clear();
    LoseFirst();
    Then({Whole()});
    rig.RunOnLoop([&](Loop&) {});
    const Answer answer = Send(Body(stream));
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_NE(answer->body.find("hello"), std::string::npos);
    ASSERT_EQ(rig.billing->authorized.size(), 2u);
    ASSERT_EQ(rig.inference->started.size(), 2u);
    auto again = rig.billing->authorized[1];
    EXPECT_EQ(again.attempt(), 1);
    again.set_attempt(0);
    EXPECT_EQ(again.SerializeAsString(), rig.billing->authorized[0].SerializeAsString());
    EXPECT_EQ(rig.billing->authorized[0].streamed(), *stream != 0);
    auto moved = rig.inference->started[1];
    EXPECT_EQ(moved.attempt(), 1);
    moved.set_attempt(0);
    EXPECT_EQ(moved.SerializeAsString(), rig.inference->started[0].SerializeAsString());
    EXPECT_EQ(moved.streamed(), *stream != 0);
    rig.RunOnLoop([&](Loop& loop) {
      rig.inference->script = std::make_shared<Script>();
      rig.inference->script->more = std::make_unique<Notify>(loop);
    });
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(Move, ItMovesOnce) {
  LoseFirst();
  Then({}).broken = Lost();
  const Answer answer = Send();
  EXPECT_EQ(ErrorOf(answer).substr(0, 23), "503 service_unavailable");
  EXPECT_EQ(rig.inference->started.size(), 2u);
  ExpectRefusedOnce();
}

// A stopping router announces it, but requests that were sent before the announcement are refused.
TEST_F(Move, WhatAStoppingRouterRefusesGoesToAnotherWithTheSameHold) {
  for (const char* stream : {"", kStream}) {
    rig.billing->authorized.clear();
    rig.inference->started.clear();
    rig.inference->script->batches = {{Declined()}};
    Then({{Declined()}});  // all routers restart, one after the other
    Then({Whole()});
    const Answer answer = Send(Body(stream));
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_NE(answer->body.find("hello"), std::string::npos);
    EXPECT_EQ(rig.billing->authorized.size(), 1u);
    ASSERT_EQ(rig.inference->started.size(), 3u);
    for (const auto& again : rig.inference->started) {
      EXPECT_EQ(again.SerializeAsString(), rig.inference->started[0].SerializeAsString());
    }
    rig.RunOnLoop([&](Loop& loop) {
      rig.inference->script = std::make_shared<Script>();
      rig.inference->script->more = std::make_unique<Notify>(loop);
    });
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(Move, ItIsRefusedWhenEveryRouterIsStopping) {
  rig.inference->script->batches = {{Declined()}};
  for (int i = 0; i < 20; ++i) Then({{Declined()}});
  const Answer answer = Send();
  EXPECT_EQ(ErrorOf(answer).substr(0, 23), "503 service_unavailable");
  EXPECT_EQ(rig.inference->started.size(), 4u);
}

TEST_F(Move, WithoutBillingsWordItIsRefused) {
  for (const bool answers : {true, false}) {
    rig.billing->voided.clear();
    rig.billing->authorized.clear();
    rig.inference->started.clear();
    const auto granted = rig.billing->answer;
    rig.billing->on_call = [&, calls = 0]() mutable {
      if (++calls == 1) return;
      rig.billing->answer = answers ? Result<billing::v1::AuthorizeResult>(Closed())
                                    : Result<billing::v1::AuthorizeResult>(Fail{Lost()});
    };
    LoseFirst();
    const Answer answer = Send(Body(kStream));
    EXPECT_EQ(ErrorOf(answer).substr(0, 23), "503 service_unavailable");
    EXPECT_EQ(rig.inference->started.size(), 1u) << "two routers would work on it";
    ExpectRefusedOnce();
    rig.billing->answer = granted;
  }
}

TEST_F(Move, WhatHasBegunStays) {
  LoseFirst({{Started(), Text("hel")}});
  Then({Whole()});
  const Answer stream = Send(Body(kStream));
  EXPECT_EQ(stream->status, 200);
  EXPECT_EQ(rig.inference->started.size(), 1u);
  EXPECT_TRUE(rig.billing->voided.empty()) << "delivered output is paid for";
}

TEST_F(Move, AnAnswerThatIsNotStreamedMovesUntilItsEnd) {
  LoseFirst({{Started(), Text("hel")}, {Text("lo"), testing::Finish()}});
  Then({{Started(), Text("other")}, {testing::Finish(), End(3, 1)}});
  const Answer whole = Send();
  EXPECT_EQ(whole->status, 200) << whole->body;
  EXPECT_NE(whole->body.find(R"("content":"other")"), std::string::npos) << whole->body;
  EXPECT_EQ(rig.inference->started.size(), 2u);
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(Move, AnAnswerThatIsNotStreamedIsFreeWithoutItsEnd) {
  LoseFirst({{Started(), Text("hel")}});
  Then({{Started(), Text("hel")}}).broken = Lost();
  const Answer whole = Send();
  EXPECT_EQ(ErrorOf(whole).substr(0, 23), "503 service_unavailable");
  EXPECT_EQ(rig.inference->started.size(), 2u);
  ExpectRefusedOnce();
}

// The lost router had settled the request: the charge is refunded, and the request gets a new hold
// and is sent again.
TEST_F(Move, ARequestThatHadEndedWithoutItsAnswerBeginsAgainUnderAnotherId) {
  CloseSecondTry();
  LoseFirst({{Started(), Text("hel")}});
  Then({Whole()});
  const Answer answer = Send();
  EXPECT_EQ(answer->status, 200) << answer->body;
  ASSERT_EQ(rig.billing->authorized.size(), 3u);
  ExpectRefusedOnce();
  const auto& again = rig.billing->authorized[2];
  EXPECT_NE(again.request_id(), rig.billing->authorized[0].request_id());
  EXPECT_EQ(again.attempt(), 0);
  ASSERT_EQ(rig.inference->started.size(), 2u);
  EXPECT_EQ(rig.inference->started[1].request_id(), again.request_id());
  EXPECT_EQ(rig.inference->started[1].attempt(), 0);
  const auto id = Id::FromBytes(again.request_id());
  ASSERT_TRUE(id);
  EXPECT_NE(answer->body.find(id->ToBase62()), std::string::npos) << "the receipt is found by it";
  ExpectNoSlots();
}

TEST_F(Move, ARequestThatHadEndedBeginsAgainOnce) {
  CloseSecondTry();
  LoseFirst();
  Then({}).broken = Lost();
  EXPECT_EQ(ErrorOf(Send()).substr(0, 23), "503 service_unavailable");
  ASSERT_EQ(rig.billing->authorized.size(), 3u);
  ASSERT_EQ(rig.billing->voided.size(), 2u);
  EXPECT_EQ(rig.billing->voided[1].request_id(), rig.billing->authorized[2].request_id());
}

TEST_F(Move, AnIdempotencyKeyStaysWithItsRequest) {
  CloseSecondTry();
  LoseFirst();
  HttpRequest request = rig.ChatRequest(Body());
  request.headers.emplace_back("idempotency-key", "once");
  const Answer answer = rig.Run(ChatSurface(), std::move(request));
  EXPECT_EQ(ErrorOf(answer).substr(0, 23), "503 service_unavailable");
  EXPECT_EQ(rig.billing->authorized.size(), 2u);
  ExpectRefusedOnce();
}

TEST_F(Move, ALargeRequestIsNotKept) {
  LoseFirst();
  Then({Whole()});
  rig.key.mutable_key_limits()->clear_requests_per_minute();
  rig.snapshot.mutable_models(0)->set_context_window(1'000'000);
  rig.Publish();
  const Answer answer = Send(R"({"model":"ns/model","messages":[{"role":"user","content":")" +
                             std::string(70'000, 'x') + R"("}]})");
  EXPECT_EQ(ErrorOf(answer).substr(0, 23), "503 service_unavailable");
  EXPECT_EQ(rig.inference->started.size(), 1u);
  ExpectRefusedOnce();
}

TEST_F(Move, AnErrorThatTheRouterChargesIsUndoneAndOneThatItReleasesNeedsNoVoid) {
  PushEvents({testing::Failed("upstream_error")});
  EXPECT_GE(Send()->status, 500);
  EXPECT_TRUE(rig.billing->voided.empty()) << "the router has released the hold";
  auto charged = testing::Failed("upstream_error");
  charged.mutable_end()->mutable_usage()->set_prompt_tokens(3);
  PushEvents({charged});
  EXPECT_GE(Send()->status, 500);
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_TRUE(rig.billing->voided[0].refused());
}

}  // namespace
}  // namespace tollgate::gateway
