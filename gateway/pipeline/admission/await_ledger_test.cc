// Decision 50: admissions wait for an unreachable ledger. Time, number and memory are bounded.
#include "gateway/pipeline/admission/await_ledger.h"

#include <chrono>

#include "common/observability/metrics.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders
using Clock = std::chrono::steady_clock;

class AwaitLedgerTest : public PipelineFixture {
 protected:
  AwaitLedgerTest() {
    rig.billing->answer = Unavailable("billing: the database is unreachable");
    began_ = Clock::now();
  }
  // The ledger answers again at this attempt.
  void BackAt(size_t attempt) {
    rig.billing->on_call = [this, attempt] {
      if (rig.billing->authorized.size() < attempt) return;
      billing::v1::AuthorizeResult granted;
      granted.set_granted(true);
      granted.set_authorized_nano_usd(777);
      rig.billing->answer = granted;
    };
  }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  static double Waits(const char* result) {
    return metrics::Counter("tollgate_gateway_ledger_waits_total", "", {{"result", result}})
        .Value();
  }
  static double Waiters() { return metrics::Gauge("tollgate_gateway_ledger_waiters", "").Value(); }

  Clock::time_point began_;
};

TEST_F(AwaitLedgerTest, ARequestIsServedWhenTheLedgerComesBackAndHoldsOnce) {
  const double answered = Waits("answered");
  BackAt(4);
  PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
  EXPECT_EQ(Send()->status, 200);
  ASSERT_EQ(rig.billing->authorized.size(), 4u);
  for (const auto& item : rig.billing->authorized) {
    EXPECT_EQ(item.SerializeAsString(), rig.billing->authorized[0].SerializeAsString())
        << "one id, one hold";
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  EXPECT_EQ(Waits("answered"), answered + 1);
  EXPECT_EQ(Waiters(), 0);
}

TEST_F(AwaitLedgerTest, AfterThreeSecondsItIs503WithRetryAfterAndNoHoldIsLeft) {
  // The test measures time, and a busy machine delays some runs: one of ten must be in time.
  bool in_time = false;
  for (int tries = 0; tries < 10 && !in_time; ++tries) {
    rig.billing->authorized.clear();
    rig.billing->voided.clear();
    const double late = Waits("late");
    began_ = Clock::now();
    EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
    EXPECT_GT(Seconds(), 2.4);
    in_time = Seconds() < 4.5 && rig.billing->authorized.size() >= 6;
    ASSERT_EQ(rig.billing->voided.size(), 1u);
    EXPECT_EQ(rig.billing->voided[0].request_id(), rig.billing->authorized[0].request_id());
    EXPECT_EQ(Waits("late"), late + 1);
    EXPECT_EQ(Waiters(), 0);
    ExpectAllRefunded();
  }
  EXPECT_TRUE(in_time);
}

billing::v1::AuthorizeResult Reloading() {
  billing::v1::AuthorizeResult denied;
  denied.set_denied_by(billing::v1::DENY_REASON_NO_CREDIT);
  denied.set_reloading(true);
  return denied;
}

TEST_F(AwaitLedgerTest, ARequestWaitsForTheCreditOfAChargeUnderWay) {
  rig.billing->answer = Reloading();
  BackAt(3);
  PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
  EXPECT_EQ(Send()->status, 200);
  ASSERT_EQ(rig.billing->authorized.size(), 3u);
  EXPECT_EQ(rig.billing->authorized[2].SerializeAsString(),
            rig.billing->authorized[0].SerializeAsString());
  EXPECT_TRUE(rig.billing->voided.empty());
  EXPECT_EQ(Waiters(), 0);
}

// Clients retry 429, but not 402.
TEST_F(AwaitLedgerTest, ACreditThatDoesNotArriveInTimeIs429) {
  rig.billing->answer = Reloading();
  EXPECT_EQ(ErrorOf(Send()), "429 rate_limited rate_limit_error retry=2");
  EXPECT_GT(Seconds(), 2.4);
  EXPECT_GT(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(Waiters(), 0);
  ExpectAllRefunded();
}

TEST_F(AwaitLedgerTest, WithoutAChargeUnderWayMissingCreditIs402AtOnce) {
  billing::v1::AuthorizeResult denied = Reloading();
  denied.set_reloading(false);
  rig.billing->answer = denied;
  EXPECT_EQ(Send()->status, 402);
  EXPECT_EQ(rig.billing->authorized.size(), 1u);
}

TEST_F(AwaitLedgerTest, TheWaitEndsWhenTheCallerLeavesAndItsHoldIsVoided) {
  const double left = Waits("left");
  FakeExchange* caller = nullptr;
  rig.billing->on_call = [&] {
    if (rig.billing->authorized.size() < 2) return;
    rig.worker->loop.Post([&] { caller->Disconnect(); });
  };
  const Answer answer = Send(Body(), [&](FakeExchange& exchange) { caller = &exchange; });
  EXPECT_EQ(answer->answers, 0);
  EXPECT_EQ(rig.billing->authorized.size(), 2u) << "no hold is asked for a caller who is gone";
  EXPECT_EQ(rig.billing->voided.size(), 1u);
  EXPECT_EQ(Waits("left"), left + 1);
  EXPECT_EQ(Waiters(), 0);
  ExpectAllRefunded();
}

TEST_F(AwaitLedgerTest, BeyondTheNumberItIs503AtOnce) {
  std::vector<LedgerWaiters::Place> places;
  while (auto place = LedgerWaiters::Get().Enter(1)) places.push_back(std::move(*place));
  EXPECT_EQ(places.size(), 4'096u);
  EXPECT_EQ(Waiters(), 4'096);
  const double refused = Waits("refused");
  EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
  EXPECT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(Waits("refused"), refused + 1);
  places.pop_back();
  BackAt(3);
  PushEvents({Started(), Text("a"), Finish(), End(1, 1)});
  EXPECT_EQ(Send()->status, 200) << "there is room again";
}

TEST_F(AwaitLedgerTest, BeyondTheMemoryItIs503AtOnce) {
  {
    const auto all = LedgerWaiters::Get().Enter(LedgerWaiters::kMaxBytes);
    ASSERT_TRUE(all);
    EXPECT_EQ(ErrorOf(Send()), "503 service_unavailable service_unavailable retry=1");
    EXPECT_EQ(rig.billing->authorized.size(), 1u);
  }
  EXPECT_FALSE(LedgerWaiters::Get().Enter(LedgerWaiters::kMaxBytes + 1));
  EXPECT_TRUE(LedgerWaiters::Get().Enter(LedgerWaiters::kMaxBytes)) << "everything was given back";
}

}  // namespace
}  // namespace tollgate::gateway
