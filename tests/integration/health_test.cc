// GET /healthz of a process that is told to stop: load balancers see it, and requests are still
// served until they have left.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr char kChat[] = "/v1/chat/completions";
constexpr char kBody[] =
    R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}]})";

TEST(Health, SaysThatTheGatewayStopsBeforeItRefusesConnections) {
  EngineSim engine;
  ASSERT_TRUE(engine.Start());
  ClusterOptions options;
  options.catalog = DefaultCatalog({engine.base_url()});
  options.drain_seconds = 20;
  options.gateway_settings = {"drain_notice_seconds: 5"};
  Cluster cluster(options);
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(1'000'000'000);
  const auto health = [&] { return Http(cluster.port(), "GET", "/healthz"); };
  EXPECT_EQ(health().status, 200);

  cluster.process("allinone").Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil([&] { return health().status == 503; }, 5'000));
  const HttpResponse stopping = health();
  EXPECT_EQ(stopping.json()["error"]["code"].str(), "service_unavailable");
  EXPECT_EQ(stopping.header("x-should-retry"), "true");
  EXPECT_EQ(cluster.Post(key, kChat, kBody).status, 200);
  ASSERT_TRUE(WaitUntil([&] { return !cluster.process("allinone").Running(); }, 20'000));
  EXPECT_EQ(cluster.process("allinone").exit_code(), 0);
  // Probes come all the time: they are not in the access log.
  const std::string logs = cluster.Logs();
  EXPECT_NE(logs.find("\"endpoint\":\"chat_completions\""), std::string::npos);
  EXPECT_EQ(logs.find("\"endpoint\":\"healthz\""), std::string::npos);
}

}  // namespace
}  // namespace tollgate::test
