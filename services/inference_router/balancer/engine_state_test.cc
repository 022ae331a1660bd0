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
  engine.OnSuccess();
  EXPECT_TRUE(engine.Available(kNow));
}

TEST(EngineState, OneTimedOutHealthCheckDoesNotMarkItDown) {
  EngineState engine({}, {});
  engine.OnHealthFailure(false, 1);
  EXPECT_TRUE(engine.Available(kNow));
  engine.OnHealthFailure(false, 1);
  EXPECT_FALSE(engine.Available(kNow));
}

}  // namespace
}  // namespace tollgate::inference_router
