// `tollgate top` (docs/operations/top.md) against a real process under load: its numbers are those
// of the metrics, and its screen works in a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "tests/cli/command.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/http.h"

namespace tollgate::test {
namespace {

constexpr char kBody[] =
    R"({"model":"sim/model","stream":true,"messages":[{"role":"user","content":"hi"}],)"
    R"("max_tokens":10})";

class TopTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    world_ = std::make_unique<World>();
    std::string failure;
    ASSERT_TRUE(world_->engine.Start(&failure)) << failure;
    ClusterOptions options;
    options.catalog = DefaultCatalog({world_->engine.base_url()}, "1000", "2000", 64);
    world_->cluster = std::make_unique<Cluster>(options);
    ASSERT_EQ(world_->cluster->Start(60'000), "");
    world_->key = world_->cluster->NewCustomer(1'000'000'000'000);
  }
  static void TearDownTestSuite() {
    if (world_->cluster) EXPECT_EQ(world_->cluster->StopOrderly(), "");
    world_.reset();
  }

  static std::string Address() {
    return "127.0.0.1:" + std::to_string(world_->cluster->admin_port("allinone"));
  }
  // The value of the /metrics sample whose line begins with this.
  static double Metric(const std::string& line) {
    const std::string text =
        Http(world_->cluster->admin_port("allinone"), "GET", "/metrics", {}, "").body;
    const size_t at = text.find("\n" + line);
    return at == std::string::npos ? -1
                                   : std::atof(text.c_str() + text.find(' ', at + line.size()));
  }
  static void Stream(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(world_->cluster->Stream(world_->key, kBody).complete);
    }
    ASSERT_TRUE(world_->cluster->WaitIdle(world_->key.workspace_id));
  }

  struct World {
    EngineSim engine{EngineSimOptions()};
    std::unique_ptr<Cluster> cluster;
    ApiKey key;
  };
  static inline std::unique_ptr<World> world_;
};

TEST_F(TopTest, TheNumbersAreThoseOfTheMetrics) {
  const TempDir folder;
  Process top(
      "top", {BinaryPath("tollgate"), "--json", "top", "--interval", "0.5", "--metrics", Address()},
      folder.path() + "/lines");
  ASSERT_TRUE(top.Start());
  const auto lines = [&] {
    std::vector<Json> parsed;
    const std::string text = ReadFile(folder.path() + "/lines");
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      parsed.push_back(Json::Parse(text.substr(at, end - at)).value_or(Json()));
    }
    return parsed;
  };
  ASSERT_TRUE(WaitUntil([&] { return !lines().empty(); }, 20'000));
  const double requests_before = lines()[0]["requests_total"]["ok"].number();
  const double tokens_before = lines()[0]["output_tokens_total"].number();
  constexpr int kRequests = 30;
  Stream(kRequests);
  world_->cluster->Post({.secret = "sk-wrong"}, "/v1/chat/completions", kBody);
  // A line that has all figures.
  const double tokens = Metric("tollgate_router_tokens_total{kind=\"completion\"}");
  ASSERT_GT(tokens, 0);
  ASSERT_TRUE(WaitUntil(
      [&] {
        const Json last = lines().back();
        return last["requests_total"]["client_error"].integer() > 0 &&
               last["output_tokens_total"].number() == tokens;
      },
      20'000))
      << ReadFile(folder.path() + "/lines");
  top.Terminate();

  double requests = 0, output = 0, charged = 0;
  bool first_token = false;
  const std::vector<Json> all = lines();
  for (size_t i = 1; i < all.size(); ++i) {
    const double seconds = all[i]["seconds"].number();
    EXPECT_GT(seconds, 0.4);
    requests += all[i]["requests_per_second"]["ok"].number() * seconds;
    output += all[i]["output_tokens_per_second"].number() * seconds;
    charged += std::atof(all[i]["charged_usd_per_second"].str().c_str()) * seconds;
    first_token = first_token || all[i]["first_token_p50_seconds"].is_number();
  }
  const Json last = all.back();
  EXPECT_EQ(last["requests_total"]["ok"].number() - requests_before, kRequests);
  EXPECT_NEAR(requests, kRequests, 0.5) << "the rates of all intervals are all requests";
  EXPECT_NEAR(output, tokens - tokens_before, 1 + output / 100);
  EXPECT_EQ(last["output_tokens_total"].number(), tokens);
  EXPECT_TRUE(first_token);
  EXPECT_GT(charged, 0);
  const double nano = Metric("tollgate_billing_charged_nano_usd_total");
  EXPECT_NEAR(std::atof(last["charged_usd_total"].str().c_str()), nano / 1e9, 1e-6);
  ASSERT_EQ(last["processes"].size(), 1U);
  EXPECT_EQ(last["processes"][0]["name"].str(), "allinone");
  bool up = false, down = false;
  for (size_t i = 0; i < last["engines"].size(); ++i) {
    const Json& engine = last["engines"][i];
    up = up || (engine["id"].str() == "sim-1" && engine["up"].integer() == 1 &&
                engine["max"].integer() == 64);
    down = down || (engine["id"].str() == "down" && engine["up"].integer() == 0);
  }
  EXPECT_TRUE(up);
  EXPECT_TRUE(down) << "the missing engine of the default catalog";
  EXPECT_EQ(Metric("tollgate_router_engine_output_tokens_total{engine=\"sim-1\"}"), tokens);
}

TEST_F(TopTest, OnceIsForScripts) {
  const Outcome once = RunTollgate("top --once --interval 0.2 --metrics " + Address());
  EXPECT_EQ(once.code, 0) << once.error;
  EXPECT_NE(once.out.find("sim-1"), std::string::npos) << once.out;
  EXPECT_NE(once.out.find("allinone"), std::string::npos);
  EXPECT_EQ(once.out.find('\033'), std::string::npos);
  const std::string nobody = TestPort().address();
  const Outcome silent = RunTollgate("top --once --interval 0.2 --metrics " + nobody);
  EXPECT_EQ(silent.code, 1);
  EXPECT_NE(silent.out.find("does not answer"), std::string::npos) << silent.out;
  EXPECT_EQ(RunTollgate("top --once", "TOLLGATE_HOME=/nonexistent").code, 2);
  EXPECT_EQ(RunTollgate("top --metrics " + Address() + " </dev/null").code, 2) << "no terminal";
}

TEST_F(TopTest, TheQueueOfAnEngineIsReadFromIt) {
  const Outcome once =
      RunTollgate("--json top --once --interval 0.2 --config " + world_->cluster->dir());
  ASSERT_EQ(once.code, 0) << once.error;
  const Json figures = Json::Parse(once.out).value_or(Json());
  for (size_t i = 0; i < figures["engines"].size(); ++i) {
    const Json& engine = figures["engines"][i];
    EXPECT_EQ(engine["queue"].is_null(), engine["id"].str() == "down") << once.out;
  }
}

// A session of tmux, which is a terminal with a screen that can be read.
class Screen {
 public:
  explicit Screen(const std::string& command) : socket_(folder_.path() + "/tmux") {
    Tmux("-f /dev/null new-session -d -x 80 -y 24 \"" + command + "; echo ended with \\$?; cat\"");
  }
  ~Screen() { Tmux("kill-server"); }

  void Tmux(const std::string& words) const {
    const std::string line = "LC_ALL=C.UTF-8 tmux -u -S " + socket_ + " " + words + " 2>/dev/null";
    static_cast<void>(std::system(line.c_str()));  // NOLINT
  }
  std::string Text() const {
    Tmux("capture-pane -p > " + folder_.path() + "/screen");
    return ReadFile(folder_.path() + "/screen");
  }
  bool Shows(const std::string& text, bool wanted = true) const {
    return WaitUntil([&] { return (Text().find(text) != std::string::npos) == wanted; }, 20'000,
                     50);
  }

 private:
  TempDir folder_;
  const std::string socket_;
};

TEST_F(TopTest, TheScreenIsLiveAndObeysItsKeysAndSize) {
  if (!std::filesystem::exists("/usr/bin/tmux")) GTEST_SKIP() << "tmux is not installed";
  Screen screen(BinaryPath("tollgate") + " top --interval 0.2 --metrics " + Address());
  ASSERT_TRUE(screen.Shows("tollgate top")) << screen.Text();
  EXPECT_TRUE(screen.Shows("sim-1")) << screen.Text();
  EXPECT_TRUE(screen.Shows("DOWN")) << screen.Text();
  EXPECT_TRUE(screen.Shows("engines by name"));
  const std::string first = screen.Text();
  EXPECT_EQ(std::ranges::count(first, '\n'), 24) << first;

  // Running requests are shown while they run.
  std::thread caller([] {
    world_->cluster->Stream(
        world_->key,
        R"({"model":"sim/model","stream":true,"messages":[{"role":"user",)"
        R"("content":"x_sim:{\"tokens\":100,\"hang_after_tokens\":3}"}],"max_tokens":100})");
  });
  EXPECT_TRUE(screen.Shows("running 1 ")) << screen.Text();
  EXPECT_TRUE(screen.Shows("holds 1 ")) << screen.Text();
  screen.Tmux("send-keys p");
  EXPECT_TRUE(screen.Shows("PAUSED"));
  // Also closes its connections.
  world_->engine.SetListening(false);
  caller.join();
  world_->engine.SetListening(true);
  ASSERT_TRUE(world_->cluster->WaitIdle(world_->key.workspace_id));
  EXPECT_NE(screen.Text().find("running 1 "), std::string::npos)
      << "a paused screen keeps its content";
  screen.Tmux("send-keys p");
  EXPECT_TRUE(screen.Shows("running 0 ")) << screen.Text();

  screen.Tmux("send-keys s");
  EXPECT_TRUE(screen.Shows("engines by load")) << screen.Text();
  screen.Tmux("resize-window -x 50 -y 12");
  EXPECT_TRUE(screen.Shows("tok/s", false)) << "narrow: " << screen.Text();
  EXPECT_TRUE(screen.Shows("quit")) << screen.Text();
  screen.Tmux("resize-window -x 140 -y 40");
  EXPECT_TRUE(screen.Shows("tok/s")) << "wide: " << screen.Text();
  screen.Tmux("send-keys q");
  EXPECT_TRUE(screen.Shows("ended with 0")) << screen.Text();
}

}  // namespace
}  // namespace tollgate::test
