#include "services/inference_router/balancer/select_engine.h"

#include <gtest/gtest.h>

#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

constexpr int64_t kNow = 1'000'000'000;

TEST(SelectEngine, SelectsTheLeastLoaded) {
  RoutingTable table(TwoEngines(), nullptr);
  const Route& route = *table.Find("ns/m");
  EXPECT_EQ(route.engine_model, "ns/m");
  for (uint64_t rotation = 0; rotation < 10; ++rotation) {
    ASSERT_NE(SelectEngine(route.engines, {}, kNow, rotation).engine, nullptr);
  }
  EXPECT_EQ(route.engines[0]->running(), 5);
  EXPECT_EQ(route.engines[1]->running(), 5);
}

TEST(SelectEngine, BreaksTiesByRotation) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  Selection first = SelectEngine(engines, {}, kNow, 0);
  first.engine->Leave();
  Selection second = SelectEngine(engines, {}, kNow, 1);
  EXPECT_NE(first.engine, second.engine);
}

TEST(SelectEngine, SkipsTriedAndUnavailableEngines) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_EQ(SelectEngine(engines, {engines[0]}, kNow, 0).engine, engines[1]);
  engines[1]->OnHealthFailure(true, 1);
  Selection none = SelectEngine(engines, {engines[0]}, kNow, 0);
  EXPECT_EQ(none.engine, nullptr);
  EXPECT_EQ(none.no_engine, NoEngine::kDown);
  EXPECT_GE(none.retry_after_ms, 1000);
}

TEST(SelectEngine, DistinguishesSaturatedFromDown) {
  RoutingTable table(TwoEngines(1), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_NE(SelectEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_NE(SelectEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0).no_engine, NoEngine::kSaturated);
  engines[0]->Leave();
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0).engine, engines[0]);
}

}  // namespace
}  // namespace tollgate::inference_router
