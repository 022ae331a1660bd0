// Requests that take a hold and end without a charge are bounded (docs/adr/0016): each writes a
// hold and its release to the ledger, and nobody pays for them.
#include "gateway/pipeline/admission/refusals.h"

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class RefusalsTest : public PipelineFixture {
 protected:
  RefusalsTest() {
    rig.key.clear_key_limits();
    *rig.snapshot.add_models() = rig.snapshot.models(0);
    rig.snapshot.mutable_models(1)->set_id("ns/other");
    rig.Publish();
  }
  // The status of a request that the engine fails with this error.
  int Refused(const char* error, const std::string& body = Body()) {
    PushEvents({Failed(error)});
    const int status = Send(body)->status;
    rig.RunOnLoop([&](Loop&) { rig.inference->script->batches.clear(); });
    return status;
  }
  int Paid(const std::string& body = Body()) {
    PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
    const int status = Send(body)->status;
    rig.RunOnLoop([&](Loop&) { rig.inference->script->batches.clear(); });
    return status;
  }
  // Sends a request and makes its caller leave when the hold is placed. Returns whether a hold was
  // taken.
  bool Leave(bool dispatched) {
    const size_t holds = rig.billing->authorized.size();
    FakeExchange* exchange = nullptr;
    rig.billing->on_call = [&] {
      // The posted disconnect runs while the pipeline waits for the router.
      if (dispatched) {
        rig.worker->loop.Post([&] { exchange->Disconnect(); });
      } else {
        exchange->Disconnect();
      }
    };
    Send(Body(), [&](FakeExchange& made) { exchange = &made; });
    rig.billing->on_call = {};
    rig.RunOnLoop([&](Loop&) { rig.inference->script->cancelled = false; });
    return rig.billing->authorized.size() > holds;
  }

  static constexpr int64_t kBurst = RefusalBudget::kBurst;
  static constexpr int64_t kSecondUs = 1'000'000;
  static std::string Other() {
    return R"({"model":"ns/other","messages":[{"role":"user","content":"hi"}]})";
  }
};

TEST_F(RefusalsTest, OfEnginesAreBoundedForAKeyWithoutALimitOnRequests) {
  for (int64_t i = 0; i < kBurst; ++i) ASSERT_EQ(Refused("bad_request"), 400) << i;
  const size_t holds = rig.billing->authorized.size();
  EXPECT_EQ(ErrorOf(Send()), "429 rate_limited rate_limit_error retry=1");
  EXPECT_EQ(ErrorOf(Send(Other())), "429 rate_limited rate_limit_error retry=1");
  EXPECT_EQ(WhyOf(Send()), "refusals " + rig.key.key_id() + " ws1");
  EXPECT_EQ(rig.billing->authorized.size(), holds) << "refused before the hold";
  rig.clock.Advance(kSecondUs);
  EXPECT_EQ(Refused("context_length_exceeded"), 400);
  EXPECT_EQ(Refused("bad_request"), 429);
  rig.clock.Advance(kSecondUs);
  EXPECT_EQ(Paid(), 200);
  EXPECT_EQ(Refused("bad_request"), 400) << "a paid answer makes up for one";
  EXPECT_EQ(Refused("bad_request"), 400);
  EXPECT_EQ(Refused("bad_request"), 429);
  rig.key.mutable_key_limits()->set_requests_per_minute(100);
  rig.Publish();
  EXPECT_EQ(Refused("bad_request"), 400) << "its own limit bounds them";
}

// A limit in shadow mode refuses nobody, so it does not bound anything.
TEST_F(RefusalsTest, AreBoundedWhenTheLimitOnRequestsIsInShadowMode) {
  rig.key.mutable_key_limits()->set_requests_per_minute(100);
  rig.key.mutable_key_limits()->set_shadow(true);
  rig.key.mutable_workspace_limits()->set_requests_per_minute(100);
  rig.key.mutable_workspace_limits()->set_shadow(true);
  rig.Publish();
  for (int64_t i = 0; i < kBurst; ++i) ASSERT_EQ(Refused("bad_request"), 400) << i;
  EXPECT_EQ(Refused("bad_request"), 429);
  rig.key.mutable_workspace_limits()->set_shadow(false);
  rig.Publish();
  EXPECT_EQ(Refused("bad_request"), 400) << "its workspace's limit bounds them";
}

TEST_F(RefusalsTest, OfAModelAtCapacityAreBoundedForThatModel) {
  for (int64_t i = 0; i < kBurst; ++i) ASSERT_EQ(Refused("rate_limited"), 429) << i;
  const size_t holds = rig.billing->authorized.size();
  EXPECT_EQ(ErrorOf(Send()), "429 rate_limited rate_limit_error retry=1");
  EXPECT_EQ(WhyOf(Send()), "model_refusals " + rig.key.key_id() + " ws1");
  EXPECT_EQ(rig.billing->authorized.size(), holds) << "refused before the hold";
  EXPECT_EQ(Paid(Other()), 200) << "another model is served";
  rig.clock.Advance(kSecondUs);
  EXPECT_EQ(Paid(), 200);
}

TEST_F(RefusalsTest, FailuresOfEnginesAreNotCounted) {
  for (int64_t i = 0; i < kBurst; ++i) {
    for (const auto& [error, status] : {std::pair{"upstream_error", 502}, {"server_error", 500}}) {
      ASSERT_EQ(Refused(error), status);
    }
  }
  EXPECT_EQ(Paid(), 200);
}

TEST_F(RefusalsTest, CallersWhoLeaveBeforeARouterHasTheRequestAreBounded) {
  for (int64_t i = 0; i < kBurst; ++i) ASSERT_TRUE(Leave(false)) << i;
  EXPECT_EQ(rig.billing->voided.size(), static_cast<size_t>(kBurst));
  EXPECT_FALSE(Leave(false));
  EXPECT_EQ(ErrorOf(Send()), "429 rate_limited rate_limit_error retry=1");
}

// A router charges them for the prompt if an engine took the request, which the gateway cannot see.
TEST_F(RefusalsTest, CallersWhoLeaveARouterBeforeItAnswersCountForATenth) {
  for (int64_t i = 0; i < 10 * kBurst - 9; ++i) ASSERT_TRUE(Leave(true)) << i;
  EXPECT_FALSE(Leave(true));
  rig.clock.Advance(kSecondUs);
  for (int64_t i = 0; i < 10; ++i) ASSERT_TRUE(Leave(true)) << i;
  EXPECT_FALSE(Leave(true));
  EXPECT_EQ(ErrorOf(Send()), "429 rate_limited rate_limit_error retry=1");
}

TEST_F(RefusalsTest, CallersWhoLeaveAnAnswerAreNotCounted) {
  for (int64_t i = 0; i < 12 * kBurst; ++i) {
    PushEvents({Started(), Text("a")});
    ASSERT_TRUE(Leave(true)) << i;
  }
}

}  // namespace
}  // namespace tollgate::gateway
