#include "services/inference_router/balancer/engine_state.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kNow = 1'000'000'000;
constexpr int64_t kMs = 1000;

TEST(EngineState, BacksOffLongerAfterEachConnectFailureAndRecovers) {
  EngineState engine({}, {});
  engine.OnConnectFailure(kNow);
  EXPECT_FALSE(engine.Available(kNow + 999 * kMs));
  EXPECT_TRUE(engine.Available(kNow + 1000 * kMs));
  engine.OnConnectFailure(kNow);
  EXPECT_FALSE(engine.Available(kNow + 1999 * kMs));
  EXPECT_EQ(engine.RetryAfterMs(kNow), 2000);
  for (int i = 0; i < 100; ++i) engine.OnConnectFailure(kNow);
  EXPECT_TRUE(engine.Available(kNow + 15'000 * kMs));
  engine.OnSuccess(kNow);
  EXPECT_TRUE(engine.Available(kNow));
}

TEST(EngineState, OneTimedOutHealthCheckDoesNotMarkItDown) {
  EngineState engine({}, {});
  engine.OnHealthFailure(false, 1);
  EXPECT_TRUE(engine.Available(kNow));
  engine.OnHealthFailure(false, 1);
  EXPECT_FALSE(engine.Available(kNow));
}

TEST(EngineState, CountsTheWorkOfWhoEntersUntilItIsDoneOrLeft) {
  catalog::v1::Engine narrow;
  narrow.set_max_concurrency(1);
  EngineState engine(narrow, {});
  EXPECT_TRUE(engine.TryEnter(700));
  EXPECT_TRUE(engine.IsFull());
  EXPECT_FALSE(engine.TryEnter(500)) << "and counts nothing";
  engine.OnWorkDone(600);
  EXPECT_EQ(engine.work(), 100);
  engine.Leave(100);
  EXPECT_EQ(engine.work(), 0);
  EXPECT_FALSE(engine.IsFull());
}

TEST(EngineState, EnginesHaveNumbersOfTheirOwn) {
  EngineState a({}, {}), b({}, {});
  EXPECT_NE(a.number(), b.number());
  EXPECT_NE(a.number(), 0);
}

}  // namespace
}  // namespace tollgate::inference_router
