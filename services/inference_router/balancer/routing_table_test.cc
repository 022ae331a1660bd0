#include "services/inference_router/balancer/routing_table.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kNow = 1'000'000'000;
constexpr int64_t kMs = 1000;

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

TEST(ChooseEngine, TakesTheLeastLoaded) {
  RoutingTable table(TwoEngines(), nullptr);
  const Route& route = *table.Find("ns/m");
  EXPECT_EQ(route.engine_model, "ns/m");
  for (uint64_t turn = 0; turn < 10; ++turn) {
    ASSERT_NE(ChooseEngine(route.engines, {}, kNow, turn).engine, nullptr);
  }
  EXPECT_EQ(route.engines[0]->running(), 5);
  EXPECT_EQ(route.engines[1]->running(), 5);
}

TEST(ChooseEngine, BreaksTiesInTurn) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  Choice first = ChooseEngine(engines, {}, kNow, 0);
  first.engine->Leave();
  Choice second = ChooseEngine(engines, {}, kNow, 1);
  EXPECT_NE(first.engine, second.engine);
}

TEST(ChooseEngine, LeavesOutTheTriedAndTheDown) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_EQ(ChooseEngine(engines, {engines[0]}, kNow, 0).engine, engines[1]);
  engines[1]->OnHealthFailure(true);
  Choice none = ChooseEngine(engines, {engines[0]}, kNow, 0);
  EXPECT_EQ(none.engine, nullptr);
  EXPECT_EQ(none.why_not, NoEngine::kDown);
  EXPECT_GE(none.retry_after_ms, 1000);
}

TEST(ChooseEngine, TellsSaturatedFromDown) {
  RoutingTable table(TwoEngines(1), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_NE(ChooseEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_NE(ChooseEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_EQ(ChooseEngine(engines, {}, kNow, 0).why_not, NoEngine::kSaturated);
  engines[0]->Leave();
  EXPECT_EQ(ChooseEngine(engines, {}, kNow, 0).engine, engines[0]);
}

TEST(EngineState, RestsLongerAfterEachConnectFailureAndRecovers) {
  RoutingTable table(TwoEngines(), nullptr);
  EngineState& engine = *table.engines()[0];
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

TEST(EngineState, OneSlowHealthCheckIsForgiven) {
  RoutingTable table(TwoEngines(), nullptr);
  EngineState& engine = *table.engines()[0];
  engine.OnHealthFailure(false);
  EXPECT_TRUE(engine.Available(kNow));
  engine.OnHealthFailure(false);
  EXPECT_FALSE(engine.Available(kNow));
}

TEST(RoutingTable, KeepsUnchangedEnginesAndTheirLoad) {
  RoutingTable before(TwoEngines(), nullptr);
  ASSERT_TRUE(before.engines()[0]->TryEnter());
  catalog::v1::Snapshot changed = TwoEngines();
  changed.mutable_pools(0)->mutable_engines(1)->set_base_url("http://127.0.0.1:9999");
  RoutingTable after(changed, &before);
  EXPECT_EQ(after.engines()[0], before.engines()[0]);
  EXPECT_EQ(after.engines()[0]->running(), 1);
  EXPECT_NE(after.engines()[1], before.engines()[1]);
}

TEST(RoutingTable, LeavesOutAnEngineWithABadAddress) {
  catalog::v1::Snapshot snapshot = TwoEngines();
  snapshot.mutable_pools(0)->mutable_engines(0)->set_base_url("nonsense");
  RoutingTable table(snapshot, nullptr);
  EXPECT_EQ(table.unusable(), std::vector<std::string>{"a"});
  EXPECT_EQ(table.Find("ns/m")->engines.size(), 1u);
  EXPECT_EQ(table.Find("ns/M"), nullptr) << "ids are case-sensitive";
}

TEST(RoutingTable, OtherIdsHaveARouteOnlyWhenTheCatalogSaysSo) {  // decisions 20
  catalog::v1::Snapshot snapshot = TwoEngines();
  EXPECT_EQ(RoutingTable(snapshot, nullptr).unlisted(), nullptr);
  snapshot.mutable_unlisted()->set_pool("p");
  snapshot.mutable_unlisted()->set_context_window(512);
  snapshot.mutable_unlisted()->set_serving(true);
  const RoutingTable table(snapshot, nullptr);
  ASSERT_NE(table.unlisted(), nullptr);
  EXPECT_TRUE(table.unlisted()->unlisted);
  EXPECT_EQ(table.unlisted()->engine_model, "") << "the id that was asked for";
  EXPECT_EQ(table.unlisted()->context_window, 512);
  EXPECT_EQ(table.unlisted()->engines.size(), 2u);
  EXPECT_FALSE(table.Find("ns/m")->unlisted);
  EXPECT_EQ(table.Find(""), nullptr) << "it is not a model";
}

}  // namespace
}  // namespace tollgate::inference_router
