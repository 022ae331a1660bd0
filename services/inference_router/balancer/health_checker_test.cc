#include "services/inference_router/balancer/health_checker.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/runtime/testing/run_coro.h"
#include "tests/support/engine_sim.h"

namespace tollgate::inference_router {
namespace {

class HealthCheckerTest : public ::testing::Test {
 protected:
  HealthCheckerTest() {
    EXPECT_TRUE(sim_.Start());
    catalog::v1::Snapshot snapshot;
    auto& engine = *snapshot.add_pools()->add_engines();
    engine.set_id("e");
    engine.set_base_url(sim_.base_url());
    table_ = std::make_shared<const RoutingTable>(snapshot, nullptr);
  }
  bool Up() const { return table_->engines()[0]->Available(SystemClock::Get().MonotonicUs()); }
  // Runs the checker until the engine is up, or down; false on timeout.
  Task<bool> Until(Loop& loop, bool up) {
    for (int i = 0; i < 400 && Up() != up; ++i) co_await loop.Sleep(5);
    co_return Up() == up;
  }

  test::EngineSim sim_;
  std::shared_ptr<const RoutingTable> table_;
};

TEST_F(HealthCheckerTest, DetectsAnEngineGoingDownAndUp) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100);
    checker.Start();
    EXPECT_TRUE(Up()) << "up until a check fails";
    sim_.SetListening(false);
    EXPECT_TRUE(co_await Until(loop, false));
    sim_.SetListening(true);
    EXPECT_TRUE(co_await Until(loop, true));
    sim_.SetHealthy(false);
    EXPECT_TRUE(co_await Until(loop, false)) << "503 twice in a row";
    sim_.SetHealthy(true);
    EXPECT_TRUE(co_await Until(loop, true));
    co_return true;
  });
}

TEST_F(HealthCheckerTest, AnAnswerThatDripsIsAFailedCheck) {  // H75
  sim_.SetDefaultScript(R"({"health_drip_ms":50})");
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100);
    checker.Start();
    for (int i = 0; i < 1'500 && Up(); ++i) co_await loop.Sleep(10);
    EXPECT_FALSE(Up());
    co_return true;
  });
}

TEST_F(HealthCheckerTest, ASuccessfulCheckEndsTheBackoff) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 60'000);
    for (int i = 0; i < 5; ++i) {
      table_->engines()[0]->OnConnectFailure(SystemClock::Get().MonotonicUs());
    }
    EXPECT_FALSE(Up());
    checker.CheckNow();
    EXPECT_TRUE(co_await Until(loop, true));
    co_return true;
  });
}

}  // namespace
}  // namespace tollgate::inference_router
