#include "gateway/handlers/answer_health.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

// A load balancer sees only whether this process accepts requests.
TEST(AnswerHealth, SaysWhetherRequestsAreTaken) {
  LoopPool pool{1};
  pool.Start();
  const Endpoint endpoint{"GET", "/healthz", "healthz", Family::kOpenAi, CredentialRule::kNone, {}};
  tollgate::testing::RunOn(pool.loop(0), [&](Loop& loop) -> Task<int> {
    testing::FakeExchange accepting(loop, {});
    co_await AnswerHealth(true, accepting, endpoint);
    EXPECT_EQ(accepting.status, 200);
    EXPECT_EQ(accepting.body, R"({"status":"ok"})");
    EXPECT_EQ(accepting.header("content-type"), "application/json");
    EXPECT_EQ(accepting.header("cache-control"), "no-store");
    testing::FakeExchange stopping(loop, {});
    co_await AnswerHealth(false, stopping, endpoint);
    EXPECT_EQ(stopping.status, 503);
    EXPECT_EQ(stopping.header("x-should-retry"), "true");
    EXPECT_NE(stopping.body.find("service_unavailable"), std::string::npos);
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate::gateway
