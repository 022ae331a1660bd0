// Requests that find all engines of their pool full (balancer/wait_queue.h).
#include <gtest/gtest.h>

#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunQueueTest : public RequestRunTest {
 protected:
  RequestRunQueueTest() {
    options_.run.queue_ms = 20'000;
    UseEngines(1, 1);
    EXPECT_TRUE(engine().TryEnter());  // the place of another request
    Script(R"("tokens":3)");
  }
  EngineState& engine() { return *table_.Get()->engines()[0]; }
  WaitQueue& queue() { return *table_.Get()->Find("ns/m")->queue; }
  // Ends the other request.
  void LeavePlace() {
    engine().Leave();
    queue().Grant(SystemClock::Get().MonotonicUs());
  }
  // Runs then() on the loop as soon as the request waits.
  static Task<void> WhenWaiting(Loop& loop, WaitQueue& queue, std::function<void()> then) {
    while (queue.waiting() == 0) co_await loop.Sleep(1);
    then();
  }
  double timed_out() const { return metrics_.queue_timed_out.Value(); }
};

TEST_F(RequestRunQueueTest, ARequestWaitsForAPlaceAndIsAnswered) {
  const double granted = metrics_.queue_granted.Value();
  const Outcome outcome = Run([&](Loop& loop, RecordingSink&) {
    loop.Spawn(WhenWaiting(loop, queue(), [this] { LeavePlace(); }));
  });
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 3);
  EXPECT_EQ(metrics_.queue_granted.Value(), granted + 1);
  EXPECT_EQ(engine().running(), 0);
}

TEST_F(RequestRunQueueTest, TheExplainedChoiceSaysHowLongItWaited) {
  request_.set_explain_choice(true);
  const Outcome outcome = Run([&](Loop& loop, RecordingSink&) {
    loop.Spawn(WhenWaiting(loop, queue(), [this] { LeavePlace(); }));
  });
  ASSERT_TRUE(outcome.started());
  EXPECT_EQ(outcome.events[0].started().choice().engine_id(), "first");
  EXPECT_GT(outcome.events[0].started().choice().waited_us(), 0);
}

TEST_F(RequestRunQueueTest, AtItsDeadlineItIsRateLimitedWithoutACharge) {
  options_.run.queue_ms = 30;
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().error().error(), "rate_limited");
  EXPECT_EQ(outcome.end().error().reason(), "engine_full");
  EXPECT_GE(outcome.end().error().retry_after_ms(), 1000);
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(queue().waiting(), 0u);
  EXPECT_EQ(first_.totals().requests, 0);
}

TEST_F(RequestRunQueueTest, ACallerThatLeavesWhileItWaitsPaysNothing) {
  const Outcome outcome = Run([&](Loop& loop, RecordingSink& sink) {
    loop.Spawn(WhenWaiting(loop, queue(), [&sink] { sink.Cancel(); }));
  });
  EXPECT_FALSE(outcome.started());
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().usage().prompt_tokens(), 0);
  EXPECT_EQ(queue().waiting(), 0u);
  LeavePlace();
  EXPECT_EQ(engine().running(), 0);
}

// The place is granted and the caller leaves in the same turn. The place must not be lost.
TEST_F(RequestRunQueueTest, APlaceThatIsGrantedToACallerWhoLeavesIsGivenBack) {
  Run([&](Loop& loop, RecordingSink& sink) {
    loop.Spawn(WhenWaiting(loop, queue(), [&] {
      sink.Cancel();
      LeavePlace();
    }));
  });
  EXPECT_EQ(engine().running(), 0);
  EXPECT_EQ(queue().waiting(), 0u);
}

// Another model may answer immediately.
TEST_F(RequestRunQueueTest, ARequestWithAnotherModelDoesNotWait) {
  request_.set_keep_hold(true);
  const double timed_out_before = timed_out();
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().error().error(), "rate_limited");
  EXPECT_TRUE(outcome.end().hold_kept());
  EXPECT_EQ(timed_out(), timed_out_before);
}

TEST_F(RequestRunQueueTest, AHoldThatIsClosedEndsTheWait) {
  options_.heartbeat_ms = 10;
  const Outcome outcome = Run([&](Loop& loop, RecordingSink&) {
    loop.Spawn(WhenWaiting(loop, queue(), [this] { ledger_.closed = true; }));
  });
  EXPECT_EQ(outcome.end().error().error(), "service_unavailable");
  EXPECT_EQ(queue().waiting(), 0u);
}

}  // namespace
}  // namespace tollgate::inference_router
