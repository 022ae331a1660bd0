// The gateway module while all services are unreachable. See docs/design/limits.md 8.
#include "gateway/gateway_module.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/clients/catalog_cache.h"
#include "common/http/client.h"
#include "common/runtime/testing/run_coro.h"
#include "gateway/testing/pipeline_fakes.h"
#include "gateway/worker/worker_pool.h"

namespace tollgate {
namespace {

class UnreachableCatalog : public CatalogClient {
 public:
  std::unique_ptr<Subscription> WatchCatalog(
      EngineKeys, WatchHandler<catalog::v1::WatchCatalogResponse> handler) override {
    if (handler.on_lost) handler.on_lost(Error{ErrorId::kServiceUnavailable});
    return std::make_unique<Subscription>();
  }
};

// A catalog whose first message arrives `late_ms` after the stream was opened.
class LateCatalog : public CatalogClient {
 public:
  LateCatalog(Loop& loop, int64_t late_ms) : loop_(loop), late_ms_(late_ms) {}
  std::unique_ptr<Subscription> WatchCatalog(
      EngineKeys, WatchHandler<catalog::v1::WatchCatalogResponse> handler) override {
    loop_.RunAfter(late_ms_, [handler = std::move(handler)] {
      catalog::v1::WatchCatalogResponse message;
      message.mutable_snapshot()->add_models()->set_id("a/b");
      handler.on_message(std::move(message));
    });
    return std::make_unique<Subscription>();
  }

 private:
  Loop& loop_;
  const int64_t late_ms_;
};

class WatchedAuth : public gateway::testing::FakeAuth {
 public:
  explicit WatchedAuth(Loop& loop) : FakeAuth(loop), on_loop_(loop) {}
  std::unique_ptr<Subscription> WatchKeys(
      WatchHandler<auth::v1::WatchKeysResponse> handler) override {
    on_loop_.Post([handler = std::move(handler)] { handler.on_message({}); });
    return std::make_unique<Subscription>();
  }

 private:
  Loop& on_loop_;
};

class UnreachableServices : public ClientFactory {
 public:
  int64_t catalog_late_ms =
      -1;  // -1: catalog and auth are unreachable; otherwise auth is reachable

  std::unique_ptr<AuthClient> Auth(Loop& loop) override {
    if (catalog_late_ms >= 0) return std::make_unique<WatchedAuth>(loop);
    auto auth = std::make_unique<gateway::testing::FakeAuth>(loop);
    auth->down = true;
    return auth;
  }
  std::unique_ptr<CatalogClient> Catalog(Loop& loop) override {
    if (catalog_late_ms >= 0) return std::make_unique<LateCatalog>(loop, catalog_late_ms);
    return std::make_unique<UnreachableCatalog>();
  }
  std::unique_ptr<RateLimitClient> RateLimit(Loop&) override {
    return std::make_unique<gateway::testing::FakeLimiter>();
  }
  std::unique_ptr<BillingClient> Billing(Loop&) override {
    return std::make_unique<gateway::testing::FakeBilling>();
  }
  std::unique_ptr<InferenceClient> Inference(Loop&) override {
    return std::make_unique<gateway::testing::FakeInference>();
  }
  std::unique_ptr<BillingAdminClient> BillingAdmin(Loop&) override { return nullptr; }
  std::unique_ptr<MeteringClient> Metering(Loop&) override { return nullptr; }
  std::unique_ptr<Subscription> WatchLeaseRecalls(
      Loop&, WatchHandler<billing::v1::WatchLeaseRecallsResponse>) override {
    return nullptr;
  }
  std::shared_ptr<rpc::Replicas> AdminReplicas(AdminTarget, Loop&) override { return nullptr; }
  std::shared_ptr<rpc::Replicas> OtherReplicas(OtherTarget, Loop&) override { return nullptr; }
};

class GatewayModuleTest : public ::testing::Test {
 protected:
  GatewayModuleTest() {
    std::string pattern = ::testing::TempDir() + "gateway-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    settings_.set_listen("127.0.0.1:0");
    settings_.set_catalog_cache_file(folder_ + "/catalog");
    pool_.Start();
  }
  ~GatewayModuleTest() override { std::filesystem::remove_all(folder_); }

  // Starts a gateway, fetches its model list, and stops it.
  http::WholeResponse FetchModels(int64_t ready_wait_ms = 0) {
    const std::unique_ptr<Module> module = MakeGatewayModule(context_, settings_, ready_wait_ms);
    EXPECT_TRUE(module->Start().ok());
    http::WholeResponse answer;
    tollgate::testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<int> {
      http::Client client(loop, {});
      http::ClientRequest request;
      request.method = "GET";
      request.origin = http::ParseBaseUrl("http://" + address_)->origin;
      request.target = "/v1/models";
      auto got = co_await client.Fetch(std::move(request));
      EXPECT_TRUE(got.ok());
      if (got.ok()) answer = std::move(*got);
      co_return 0;
    });
    // Without contact to auth the gateway is not ready.
    EXPECT_EQ(module->Ready(), services_.catalog_late_ms >= 0);
    module->Stop();
    return answer;
  }

  std::string folder_, address_;
  config::v1::GatewaySettings settings_;
  LoopPool pool_{2};
  UnreachableServices services_;
  DirectServices direct_;
  HostContext context_{pool_, SystemClock::Get(), services_, direct_,
                       [this](std::string_view, std::string_view address) { address_ = address; }};
};

TEST_F(GatewayModuleTest, ServesTheStoredCatalogWhileTheServiceIsUnreachable) {
  EXPECT_EQ(FetchModels().head.status, 503);
  catalog::v1::Snapshot snapshot;
  snapshot.add_models()->set_id("a/b");
  ASSERT_TRUE(StoreCatalog(settings_.catalog_cache_file(), snapshot).ok());
  const http::WholeResponse answer = FetchModels();
  EXPECT_EQ(answer.head.status, 200);
  EXPECT_NE(answer.body.find(R"("id":"a/b")"), std::string::npos);
}

// A load balancer that checks only the connection would send requests too early (deploy/haproxy).
TEST_F(GatewayModuleTest, AcceptsNoConnectionBeforeItHasACatalog) {
  services_.catalog_late_ms = 200;
  const http::WholeResponse answer = FetchModels(60'000);
  EXPECT_EQ(answer.head.status, 200);
  EXPECT_NE(answer.body.find(R"("id":"a/b")"), std::string::npos);
}

// A load balancer must leave a gateway whose requests the ledger refuses.
TEST_F(GatewayModuleTest, IsNotReadyWhileTheLedgerRefusesItsClock) {
  ManualClock clock;
  HostContext context{pool_, clock, services_, direct_, [](std::string_view, std::string_view) {}};
  services_.catalog_late_ms = 0;
  gateway::WorkerPool workers(context, {}, "");
  workers.Start();
  workers.AwaitReady(60'000);
  EXPECT_TRUE(workers.Ready());
  workers.ForLoop(pool_.loop(1)).clock_check->OnRefused(clock.MonotonicUs());
  EXPECT_FALSE(workers.Ready());
  clock.Advance(gateway::ClockCheck::kPauseUs);
  EXPECT_TRUE(workers.Ready());
  workers.Stop();
}

TEST_F(GatewayModuleTest, InvalidSettingsPreventTheStart) {
  const auto problem = [this] {
    const std::unique_ptr<Module> module = MakeGatewayModule(context_, settings_, 0);
    const Result<void> started = module->Start();
    module->Stop();
    return started.ok() ? std::string() : started.error().internal;
  };
  EXPECT_EQ(problem(), "");
  settings_.set_memory_budget_bytes(1000);
  EXPECT_NE(problem().find("gateway.memory_budget_bytes"), std::string::npos);
  settings_.clear_memory_budget_bytes();
  settings_.set_memory_budget_percent(101);
  EXPECT_NE(problem().find("gateway.memory_budget_percent"), std::string::npos);
  settings_.clear_memory_budget_percent();
  settings_.add_debug_keys("sk-tollgate-a-whole-key");
  EXPECT_NE(problem().find("gateway.debug_keys"), std::string::npos);
  EXPECT_EQ(problem().find("a-whole-key"), std::string::npos) << "no secret in a log";
  settings_.set_debug_keys(0, "0123456789ab");
  EXPECT_EQ(problem(), "");
  settings_.set_address_connection_percent(-1);
  EXPECT_NE(problem().find("gateway.address_connection_percent"), std::string::npos);
  settings_.clear_address_connection_percent();
  settings_.add_trusted_proxies("10.0.0.0/99");
  EXPECT_NE(problem().find("gateway.trusted_proxies: \"10.0.0.0/99\""), std::string::npos);
  settings_.clear_trusted_proxies();
  settings_.mutable_edge_tls()->set_certificate_file(folder_ + "/certificate.pem");
  EXPECT_NE(problem().find("gateway.edge_tls: TLS needs both"), std::string::npos);
  settings_.mutable_edge_tls()->set_private_key_file(folder_ + "/key.pem");
  EXPECT_NE(problem().find("gateway.edge_tls: certificate_file: cannot read " + folder_),
            std::string::npos);
}

// Runs in a child process, whose descriptor limit can be lowered.
TEST_F(GatewayModuleTest, DoesNotStartWithTooFewDescriptors) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit limit{300, 300};
    setrlimit(RLIMIT_NOFILE, &limit);
    const std::unique_ptr<Module> module = MakeGatewayModule(context_, settings_);
    const Result<void> started = module->Start();
    const bool named =
        !started.ok() && started.error().internal.find("300 file descriptors") != std::string::npos;
    _exit(named ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tollgate
