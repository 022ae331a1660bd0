#include "common/observability/metrics.h"

#include <gtest/gtest.h>

#include <thread>

namespace tollgate::metrics {
namespace {

TEST(Metrics, SameNameAndLabelsIsTheSameMetric) {
  prometheus::Counter& a = Counter("tollgate_test_same_total", "Help.", {{"x", "1"}});
  EXPECT_EQ(&a, &Counter("tollgate_test_same_total", "Help.", {{"x", "1"}}));
  EXPECT_NE(&a, &Counter("tollgate_test_same_total", "Help.", {{"x", "2"}}));
}

TEST(Metrics, RendersTypesLabelsAndValues) {
  Counter("tollgate_test_render_total", "Things counted.", {{"kind", "a"}}).Increment(3);
  Gauge("tollgate_test_render_now", "Things now.").Set(7);
  Histogram("tollgate_test_render_seconds", "Time.", {0.1, 1}).Observe(0.5);
  const std::string text = Render();
  EXPECT_NE(text.find("# TYPE tollgate_test_render_total counter"), std::string::npos);
  EXPECT_NE(text.find("tollgate_test_render_total{kind=\"a\"} 3"), std::string::npos);
  EXPECT_NE(text.find("tollgate_test_render_now 7"), std::string::npos);
  EXPECT_NE(text.find("tollgate_test_render_seconds_bucket{le=\"1\"} 1"), std::string::npos);
}

TEST(Metrics, GaugesAreUpdatedBeforeTheyAreRendered) {
  prometheus::Gauge& gauge = Gauge("tollgate_test_update_now", "Things now.");
  double now = 1;
  auto handle = BeforeRender([&] { gauge.Set(++now); });
  EXPECT_NE(Render().find("tollgate_test_update_now 2"), std::string::npos);
  EXPECT_NE(Render().find("tollgate_test_update_now 3"), std::string::npos);
  handle.reset();
  EXPECT_NE(Render().find("tollgate_test_update_now 3"), std::string::npos);
}

TEST(Metrics, ConcurrentFirstUseCreatesOneMetric) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) Counter("tollgate_test_race_total", "Help.").Increment();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Counter("tollgate_test_race_total", "Help.").Value(), 4000);
}

TEST(Metrics, MalformedNamesAndConflictingTypesDoNotThrow) {
  EXPECT_NO_THROW(Counter("not a name", "Help.").Increment());
  Counter("tollgate_test_clash", "Help.");
  EXPECT_NO_THROW(Gauge("tollgate_test_clash", "Help.").Set(1));
  EXPECT_EQ(Render().find("not a name"), std::string::npos);
}

TEST(Metrics, LatencyBoundsIncrease) {
  for (size_t i = 1; i < LatencyBounds().size(); ++i)
    EXPECT_LT(LatencyBounds()[i - 1], LatencyBounds()[i]);
}

}  // namespace
}  // namespace tollgate::metrics
