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
    SetKind(catalog::v1::ENGINE_KIND_VLLM);
  }
  void SetKind(catalog::v1::EngineKind kind) {
    catalog::v1::Snapshot snapshot;
    auto& engine = *snapshot.add_pools()->add_engines();
    engine.set_id("e");
    engine.set_kind(kind);
    engine.set_base_url(sim_.base_url());
    table_ = std::make_shared<const RoutingTable>(snapshot, nullptr);
  }
  bool Fresh() const {
    return table_->engines()[0]->load().Fresh(SystemClock::Get().MonotonicUs());
  }
  bool Up() const { return table_->engines()[0]->Available(SystemClock::Get().MonotonicUs()); }
  // Runs the checker until the engine is up, or down. Returns false on timeout.
  Task<bool> Until(Loop& loop, bool up) {
    for (int i = 0; i < kSleeps && Up() != up; ++i) co_await loop.Sleep(5);
    co_return Up() == up;
  }
  // This many take at least half a minute.
  static constexpr int kSleeps = 6'000;

  test::EngineSim sim_;
  std::shared_ptr<const RoutingTable> table_;
};

TEST_F(HealthCheckerTest, DetectsAnEngineGoingDownAndUp) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
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
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
    checker.Start();
    for (int i = 0; i < kSleeps && Up(); ++i) co_await loop.Sleep(5);
    EXPECT_FALSE(Up());
    co_return true;
  });
}

// A wrong api_key in the catalog (decision 22): requests would fail, so the engine gets none.
TEST_F(HealthCheckerTest, AnEngineThatRefusesItsKeyIsDownAndSaysWhy) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
    checker.Start();
    for (const std::string status : {"401", "403"}) {
      sim_.SetDefaultScript(R"({"health_status":)" + status + "}");
      EXPECT_TRUE(co_await Until(loop, false)) << status;
      EXPECT_EQ(
          table_->engines()[0]->last_failure().text,
          "health check: status " + status + ", the engine refuses the api_key of the catalog");
      sim_.SetDefaultScript("{}");
      EXPECT_TRUE(co_await Until(loop, true)) << status;
    }
    // Like a proxy that does not pass the path on.
    sim_.SetDefaultScript(R"({"health_status":404})");
    co_await loop.Sleep(500);
    EXPECT_TRUE(Up());
    co_return true;
  });
}

TEST_F(HealthCheckerTest, ASuccessfulCheckEndsTheBackoff) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 60'000, 4'000);
    for (int i = 0; i < 5; ++i) {
      table_->engines()[0]->OnConnectFailure(SystemClock::Get().MonotonicUs());
    }
    EXPECT_FALSE(Up());
    checker.CheckNow();
    EXPECT_TRUE(co_await Until(loop, true));
    co_return true;
  });
}

TEST_F(HealthCheckerTest, ReadsWhatTheEngineSaysOfItsLoad) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
    const EnginePointer engine = table_->engines()[0];
    EXPECT_FALSE(Fresh());
    checker.Start();
    for (int i = 0; i < kSleeps && !Fresh(); ++i) co_await loop.Sleep(5);
    EXPECT_EQ(engine->load().running, 0);
    EXPECT_EQ(engine->load().queued, 0);
    EXPECT_EQ(engine->load().cache_use, 0);

    // A request of another caller.
    http::ClientRequest request;
    request.method = "POST";
    request.origin = engine->base().origin;
    request.target = "/v1/chat/completions";
    request.body =
        R"({"model":"sim/model","messages":[{"role":"user","content":"a"}],"stream":true,)"
        R"("x_sim":{"delay_ms":60000}})";
    http::ClientCall call(client);
    EXPECT_TRUE((co_await call.Send(std::move(request))).ok());
    for (int i = 0; i < kSleeps && engine->load().running != 1; ++i) co_await loop.Sleep(5);
    EXPECT_EQ(engine->load().running, 1);
    call.Abort();
    co_return true;
  });
}

TEST_F(HealthCheckerTest, TheLoadOfAnEngineThatIsGoneIsNotFresh) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
    checker.Start();
    for (int i = 0; i < kSleeps && !Fresh(); ++i) co_await loop.Sleep(5);
    EXPECT_TRUE(Fresh());
    sim_.SetListening(false);
    for (int i = 0; i < kSleeps && Fresh(); ++i) co_await loop.Sleep(5);
    EXPECT_FALSE(Fresh());
    sim_.SetListening(true);
    for (int i = 0; i < kSleeps && !Fresh(); ++i) co_await loop.Sleep(5);
    EXPECT_TRUE(Fresh());
    co_return true;
  });
}

TEST_F(HealthCheckerTest, AnEngineWithoutSuchMetricsIsUpAndItsLoadUnknown) {
  SetKind(catalog::v1::ENGINE_KIND_TGI);
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    http::Client client(loop);
    HealthChecker checker(loop, client, [this] { return table_; }, 100, 4'000);
    table_->engines()[0]->OnHealthFailure(true, 1);
    checker.Start();
    EXPECT_TRUE(co_await Until(loop, true));
    sim_.SetListening(false);
    EXPECT_TRUE(co_await Until(loop, false)) << "a round later";
    EXPECT_FALSE(Fresh());
    co_return true;
  });
}

}  // namespace
}  // namespace tollgate::inference_router
