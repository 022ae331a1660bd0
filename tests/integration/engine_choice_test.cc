// The selection of engines, as operators see it in whole processes: the header x-tollgate-debug,
// and the slow start of an engine that comes back (ADR 0032).
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

constexpr char kHeader[] = "x-tollgate-debug";

class EngineChoiceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(first_.Start() && second_.Start());
    WriteFile(key_file_, "0123456789ab");
    ClusterOptions options;
    options.all_in_one = GetParam();
    options.catalog = DefaultCatalog({first_.base_url(), second_.base_url()});
    options.gateway_settings = {"debug_keys: [\"${file:" + key_file_ + "}\"]"};
    options.router_settings = {"slow_start_seconds: 15"};
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  std::string Process(const std::string& name) const { return GetParam() ? "allinone" : name; }

  HttpResponse Ask(const ApiKey& key, const std::string& more, bool wants_header = true) {
    HeaderList headers = key.headers();
    if (wants_header) headers.emplace_back(kHeader, "true");
    return Http(cluster_->port(), "POST", "/v1/chat/completions", headers,
                R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}])" + more + "}");
  }
  // The current effective weight of the engine; negative: unknown.
  double Weight(const std::string& engine) {
    const std::string page =
        Http(cluster_->admin_port(Process("inference-router")), "GET", "/metrics").body;
    const std::string series = "\ntollgate_router_engine_weight{engine=\"" + engine + "\"} ";
    const size_t at = page.find(series);
    return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size()));
  }

  TempDir folder_;
  const std::string key_file_ = folder_.path() + "/debug-key";
  EngineSim first_, second_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_P(EngineChoiceTest, TheOperatorsKeyIsToldWhichEngineAnsweredAndNoOther) {
  const ApiKey operators = cluster_->NewCustomer(1'000'000'000);
  const ApiKey other = cluster_->NewKey(operators.workspace_id);
  EXPECT_EQ(Ask(operators, "").header(kHeader), "") << "not listed yet";
  WriteFile(key_file_, operators.key_id);
  ASSERT_EQ(cluster_->Restart(Process("gateway")), "");

  std::set<std::string> engines;
  for (const char* more : {"", R"(,"stream":true)", "", R"(,"stream":true)"}) {
    const HttpResponse told = Ask(operators, more);
    ASSERT_EQ(told.status, 200) << told.body;
    const std::string header = told.header(kHeader);
    EXPECT_NE(header.find("reason=load, outstanding-tokens=0, retries=0, waited-ms=0"),
              std::string::npos)
        << header;
    engines.insert(header.substr(0, header.find(',')));
    EXPECT_EQ(Ask(operators, more, false).header(kHeader), "") << "it did not ask";
    EXPECT_EQ(Ask(other, more).header(kHeader), "");
  }
  EXPECT_LE(engines.size(), 2u);
  for (const std::string& engine : engines) {
    EXPECT_TRUE(engine == R"(engine="sim-1")" || engine == R"(engine="sim-2")") << engine;
  }

  second_.SetListening(false);
  for (int i = 0; i < 4; ++i) {
    const HttpResponse told = Ask(operators, "");
    EXPECT_EQ(told.status, 200) << told.body;
    EXPECT_EQ(told.header(kHeader).rfind(R"(engine="sim-1")", 0), 0u) << "the one that answered";
  }
}

TEST_P(EngineChoiceTest, AnEngineThatComesBackStartsSlowly) {
  ASSERT_TRUE(WaitUntil([&] { return Weight("sim-1") == 1 && Weight("sim-2") == 1; }, 10'000))
      << "all engines weigh the same when a router starts";
  second_.SetListening(false);
  const std::string available = "\ntollgate_router_engine_available{engine=\"sim-2\"} 0";
  const auto page = [&] {
    return Http(cluster_->admin_port(Process("inference-router")), "GET", "/metrics").body;
  };
  ASSERT_TRUE(WaitUntil([&] { return page().find(available) != std::string::npos; }, 10'000));
  second_.SetListening(true);
  ASSERT_TRUE(WaitUntil([&] { return page().find(available) == std::string::npos; }, 10'000));
  double last = 0;
  std::set<double> seen;
  ASSERT_TRUE(WaitUntil(
      [&] {
        const double now = Weight("sim-2");
        EXPECT_GE(now, last) << "it grows";
        last = now;
        seen.insert(now);
        return now == 1;
      },
      20'000));
  EXPECT_GE(*seen.begin(), 0.1);
  EXPECT_LT(*seen.begin(), 1);
  EXPECT_GE(seen.size(), 3u) << "in steps";
  EXPECT_EQ(Weight("sim-1"), 1);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineChoiceTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "all_in_one" : "cluster"; });

}  // namespace
}  // namespace tollgate::test
