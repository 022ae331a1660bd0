// GET /healthz of a process that is stopping: load balancers see it, and requests are served until
// the load balancers have removed the process.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/stopped_thread.h"

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
  options.drain_seconds = 30;
  options.gateway_settings = {"drain_notice_seconds: 12"};  // enough for a busy machine
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
  // Frequent probes are not written to the access log.
  const std::string logs = cluster.Logs();
  EXPECT_NE(logs.find("\"endpoint\":\"chat_completions\""), std::string::npos);
  EXPECT_EQ(logs.find("\"endpoint\":\"healthz\""), std::string::npos);
}

// How a load balancer sees a gateway that hangs, with a check each second and a time-out of one
// second (docs/operations.md).
TEST(Health, AHungGatewayIsSeenFromOutside) {
  EngineSim engine;
  ASSERT_TRUE(engine.Start());
  ClusterOptions options;
  options.all_in_one = false;
  options.catalog = DefaultCatalog({engine.base_url()});
  options.host_settings = {"core_dumps: true"};  // else only root may stop one of its threads
  Cluster cluster(options);
  ASSERT_EQ(cluster.Start(60'000), "");
  const auto ready = [&] {
    return Http(cluster.admin_port("gateway"), "GET", "/readyz", {}, "", 1'000).status;
  };
  EXPECT_TRUE(WaitUntil([&] { return ready() == 200; }, 5'000, 50));
  cluster.process("gateway").Signal(SIGSTOP);
  // The signal arrives with a short delay.
  EXPECT_TRUE(WaitUntil([&] { return ready() == 0; }, 5'000)) << "no answer in time";
  cluster.process("gateway").Signal(SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return ready() == 200; }, 5'000, 50));
  {
    const StoppedThread loop(cluster.process("gateway").pid(), "loop-1");
    ASSERT_TRUE(loop.stopped());
    EXPECT_TRUE(WaitUntil([&] { return ready() == 503; }, 5'000, 50))
        << "the check has a loop of its own";
  }
  EXPECT_TRUE(WaitUntil([&] { return ready() == 200; }, 5'000, 50));
  EXPECT_EQ(cluster.StopOrderly(), "");
}

}  // namespace
}  // namespace tollgate::test
