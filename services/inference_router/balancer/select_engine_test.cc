#include "services/inference_router/balancer/select_engine.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kNow = 1'000'000'000;

catalog::v1::Snapshot TwoEngines(int64_t max_concurrency = 0) {
  catalog::v1::Snapshot snapshot;
  snapshot.set_version(1);
  auto* pool = snapshot.add_pools();
  pool->set_name("p");
  for (const char* id : {"a", "b"}) {
    auto* engine = pool->add_engines();
    engine->set_id(id);
    engine->set_base_url(std::string("http://127.0.0.1:800") + (id[0] == 'a' ? "1" : "2"));
    engine->set_max_concurrency(max_concurrency);
  }
  auto* model = snapshot.add_models();
  model->set_id("ns/m");
  model->set_pool("p");
  model->set_serving(true);
  return snapshot;
}

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
  engines[1]->OnHealthFailure(true);
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
