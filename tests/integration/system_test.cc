#include "tests/integration/system_test.h"

#include <fstream>
#include <map>

#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

struct System {
  TempDir files;
  EngineSim engines[2];
  std::unique_ptr<Cluster> cluster;
  std::string failure;
  bool skipped = false;  // PostgreSQL is not installed
};

EngineSimOptions EngineOptions() {
  EngineSimOptions options;
  options.tokens = 10;
  options.models = {"sim/model", "outside/model"};
  return options;
}

// Auth and billing each get their own database.
bool UsePostgres(ClusterOptions& options, System& system) {
  testing::TestPostgres* server = testing::TestPostgres::Shared();
  if (server == nullptr) {
    system.skipped = !testing::TestPostgres::Required();
    system.failure = "PostgreSQL is not installed";
    return false;
  }
  options.auth_sql = server->MakeDatabase("auth");
  options.billing_sql = server->MakeDatabase("billing");
  return true;
}

// One system of each kind for the whole binary; at exit the ledger must verify and each system must
// stop cleanly.
class Systems : public ::testing::Environment {
 public:
  System& Of(const std::string& kind) {
    std::unique_ptr<System>& system = systems_[kind];
    if (!system) {
      system.reset(
          new System{{}, {EngineSim(EngineOptions()), EngineSim(EngineOptions())}, nullptr, ""});
      for (EngineSim& engine : system->engines) {
        if (!engine.Start(&system->failure)) return *system;
      }
      ClusterOptions options;
      options.all_in_one = kind != "tcp" && kind != "tcp_postgres";
      options.grpc_in_process = kind == "allinone_grpc";
      options.catalog =
          DefaultCatalog({system->engines[0].base_url(), system->engines[1].base_url()},
                         kInputPrice, kOutputPrice);
      const std::string answer_key = system->files.path() + "/answer_key";
      std::ofstream(answer_key) << std::string(64, '7');
      options.gateway_settings = {"idempotency_key_file: " + answer_key,
                                  "reasoning_key_file: " + answer_key};
      if (kind == "tcp_postgres" && !UsePostgres(options, *system)) return *system;
      system->cluster = std::make_unique<Cluster>(options);
      system->failure = system->cluster->Start();
    }
    return *system;
  }
  void TearDown() override {
    for (auto& [kind, system] : systems_) {
      if (!system->cluster || !system->failure.empty()) continue;
      const LedgerCheck check = system->cluster->VerifyLedger();
      EXPECT_TRUE(check.ok) << kind << ": " << check.violations;
      EXPECT_EQ(system->cluster->StopOrderly(), "") << kind << " must stop cleanly on SIGTERM";
    }
    systems_.clear();
  }

 private:
  std::map<std::string, std::unique_ptr<System>> systems_;
};

Systems* const kRunning = static_cast<Systems*>(::testing::AddGlobalTestEnvironment(new Systems));

}  // namespace

std::string ChatBody(const std::string& more, const std::string& model) {
  return "{\"model\":\"" + model +
         "\",\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}]" + more + "}";
}

void SystemTest::SetUp() {
  System& system = kRunning->Of(GetParam());
  if (system.skipped) GTEST_SKIP() << system.failure;
  ASSERT_EQ(system.failure, "");
  for (EngineSim& engine : system.engines) engine.SetDefaultScript("{}");
}

void SystemTest::TearDown() {
  System& system = kRunning->Of(GetParam());
  if (system.cluster) EXPECT_EQ(system.cluster->Crashes(), "");
  if (HasFailure() && system.cluster) std::fprintf(stderr, "%s\n", system.cluster->Logs().c_str());
}

Cluster& SystemTest::cluster() const { return *kRunning->Of(GetParam()).cluster; }
EngineSim& SystemTest::engine(int index) const { return kRunning->Of(GetParam()).engines[index]; }

std::vector<SimRequest> SystemTest::EngineRequests(const std::string& tag) const {
  std::vector<SimRequest> found;
  for (int i = 0; i < 2; ++i) {
    for (SimRequest& request : engine(i).requests()) {
      if (request.tag == tag) found.push_back(std::move(request));
    }
  }
  return found;
}

int64_t SystemTest::EnginesRunning() const { return engine(0).running() + engine(1).running(); }

int64_t SystemTest::SpentOf(const ApiKey& key, int64_t credit) {
  EXPECT_TRUE(cluster().WaitIdle(key.workspace_id)) << "a hold was not released";
  const std::optional<BalanceView> balance = cluster().Balance(key.workspace_id);
  if (!balance) return -1;
  EXPECT_GE(balance->available, 0);
  EXPECT_EQ(balance->month_spent, credit - balance->available) << "month and wallet must agree";
  return credit - balance->available;
}

std::string SystemTest::NewTag() {
  static int next = 0;
  return "tag-" + std::to_string(++next);
}

void ExpectError(const HttpResponse& answer, int status, const std::string& code,
                 const std::string& type, const std::string& param) {
  EXPECT_EQ(answer.status, status) << answer.body << answer.error;
  const Json body = answer.json();
  const Json& error = body["error"];
  EXPECT_EQ(body.size(), 1u) << answer.body;
  EXPECT_EQ(error["code"].str(), code) << answer.body;
  EXPECT_EQ(error["type"].str(), type) << answer.body;
  EXPECT_FALSE(error["message"].str().empty());
  if (param.empty()) {
    EXPECT_FALSE(error.has("param") && !error["param"].is_null()) << answer.body;
  } else {
    EXPECT_EQ(error["param"].str(), param) << answer.body;
  }
  EXPECT_EQ(answer.header("content-type").rfind("application/json", 0), 0u)
      << answer.header("content-type");
  EXPECT_FALSE(answer.header("x-request-id").empty());
  EXPECT_EQ(answer.header("request-id"), answer.header("x-request-id"));
  if (status == 429) {
    const int64_t wait = std::atoll(answer.header("retry-after").c_str());
    EXPECT_GE(wait, 1) << "429 needs Retry-After in whole seconds";
    EXPECT_LE(wait, 60);
  }
  if (status < 429) EXPECT_FALSE(answer.has_header("retry-after"));
}

}  // namespace tollgate::test
