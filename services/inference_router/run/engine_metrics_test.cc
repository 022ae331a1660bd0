#include "services/inference_router/run/engine_metrics.h"

#include <gtest/gtest.h>

#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

bool Has(const std::string& series) { return metrics::Render().find(series) != std::string::npos; }

catalog::v1::Snapshot FirstOfTwo() {
  catalog::v1::Snapshot one = TwoEngines(8);
  one.mutable_pools(0)->mutable_engines()->RemoveLast();
  return one;
}

TEST(EngineMetrics, EndWithTheEngine) {
  EngineMetrics metrics(1'000);
  const RoutingTable both(TwoEngines(8), nullptr);
  const RoutingTable first(FirstOfTwo(), &both);
  metrics.Show(both, 1'000'000);
  metrics.CountRequest("b", "ok");
  metrics.CountTokens("b", 7);
  EXPECT_TRUE(Has(R"(tollgate_router_engine_available{engine="b"} 1)"));
  EXPECT_TRUE(Has(R"(tollgate_router_engine_max_requests{engine="b"} 8)"));
  metrics.Show(both, 1'001'500);
  EXPECT_TRUE(Has(R"(tollgate_router_engine_output_tokens_total{engine="b"} 7)"));

  metrics.Show(first, 1'002'000);
  EXPECT_TRUE(Has(R"(tollgate_router_engine_available{engine="a"} 1)"));
  EXPECT_FALSE(Has(R"(tollgate_router_engine_available{engine="b"})"));
  EXPECT_FALSE(Has(R"(tollgate_router_engine_weight{engine="b"})"));
  EXPECT_TRUE(Has(R"(tollgate_router_engine_requests_total{engine="b",outcome="ok"} 1)"))
      << "its last answers are still to be counted";
  metrics.Show(first, 1'002'501);
  EXPECT_FALSE(Has(R"(engine="b")"));
}

// An engine that has left can be stopped when nothing runs on it.
TEST(EngineMetrics, AreShownWhileSomethingRuns) {
  EngineMetrics metrics(1'000);
  const RoutingTable both(TwoEngines(8), nullptr);
  const RoutingTable first(FirstOfTwo(), &both);
  metrics.Show(both, 1'000'000);
  const EnginePointer leaving = both.engines()[1];
  ASSERT_TRUE(leaving->TryEnter(10));
  for (int64_t now_us : {2'000'000, 3'000'000}) {
    metrics.Show(first, now_us);
    EXPECT_TRUE(Has(R"(tollgate_router_engine_running_requests{engine="b"} 1)"));
    EXPECT_FALSE(Has(R"(tollgate_router_engine_available{engine="b"})")) << "it is not down";
    EXPECT_FALSE(Has(R"(tollgate_router_engine_weight{engine="b"})"));
  }
  const RoutingTable again(TwoEngines(8), &first);
  metrics.Show(again, 3'500'000);
  EXPECT_TRUE(Has(R"(tollgate_router_engine_available{engine="b"} 1)"));
  EXPECT_TRUE(Has(R"(tollgate_router_engine_running_requests{engine="b"} 0)"));
  metrics.Show(both, 3'600'000);
  metrics.Show(first, 3'700'000);
  leaving->Leave(10);
  metrics.Show(first, 4'000'000);
  EXPECT_FALSE(Has(R"(engine="b")"));
}

TEST(EngineMetrics, WhatEndsLateIsCountedForAWhile) {
  EngineMetrics metrics(1'000);
  const RoutingTable table(TwoEngines(), nullptr);
  metrics.CountRequest("gone", "ok");
  metrics.Show(table, 5'000'000);
  EXPECT_TRUE(Has(R"(tollgate_router_engine_requests_total{engine="gone",outcome="ok"} 1)"));
  metrics.Show(table, 5'001'001);
  EXPECT_FALSE(Has(R"(engine="gone")"));
}

}  // namespace
}  // namespace tollgate::inference_router
