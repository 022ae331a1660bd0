// A flood of made-up keys with a right checksum, from many addresses (H49): keys in use, keys that
// the gateway has not seen and keys created during the flood go on working, and auth gets few
// lookups.
//
// TOLLGATE_MADE_UP_KEYS sets how many are sent (10,000 when not set, 100,000 for the full run).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <map>
#include <thread>

#include "common/keys/key_format.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr char kChat[] = "/v1/chat/completions";
constexpr char kBody[] =
    R"({"model":"sim/model","messages":[{"role":"user","content":"hello"}],"max_tokens":1})";
constexpr int64_t kUsd = 1'000'000'000;
constexpr int kConnections = 500;

int KeysToSend() {
  const char* value = std::getenv("TOLLGATE_MADE_UP_KEYS");
  return value != nullptr ? std::atoi(value) : 10'000;
}

// Connections that each send the next made-up key when the previous one is answered, through a
// trusted proxy from a new client address each time: at least this many, and until Stop.
class Flood {
 public:
  Flood(int port, int keys) : keys_(keys), thread_([this, port] { Run(port); }) {}
  ~Flood() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int answered() const { return answered_; }
  double seconds() const { return seconds_; }
  // Number of responses by status; 0: broken connections. Call after Stop.
  const std::map<int, int>& statuses() const { return statuses_; }

 private:
  struct Connection {
    HttpConnection http;
    std::string in;
    explicit Connection(int port) : http(port) {}
  };

  void Run(int port) {
    const int64_t begin_us = MonotonicUs();
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<pollfd> polled;
    for (int i = 0; i < kConnections; ++i) {
      connections.push_back(std::make_unique<Connection>(port));
      polled.push_back({.fd = connections.back()->http.fd(), .events = POLLIN});
      SendNext(*connections.back());
    }
    int open = static_cast<int>(connections.size());
    while (open > 0 && ::poll(polled.data(), polled.size(), 20'000) > 0) {
      for (size_t i = 0; i < polled.size(); ++i) {
        if (polled[i].revents == 0 || Read(*connections[i])) continue;
        polled[i].fd = -1;
        --open;
      }
    }
    seconds_ = static_cast<double>(MonotonicUs() - begin_us) / 1e6;
  }
  bool SendNext(Connection& connection) {
    if (sent_ >= keys_ && stop_) return false;
    const int i = sent_++;
    return connection.http.SendRequest(
        "POST", kChat,
        {{"Authorization", "Bearer " + MakeKey("tollgate").text},
         {"X-Forwarded-For", "10." + std::to_string(i / 65'536) + "." +
                                 std::to_string(i / 256 % 256) + "." + std::to_string(i % 256)}},
        "{}");
  }
  // Returns false when the connection has ended.
  bool Read(Connection& connection) {
    char buffer[4096];
    const ssize_t got = ::recv(connection.http.fd(), buffer, sizeof(buffer), 0);
    if (got <= 0) {
      ++statuses_[0];
      return false;
    }
    std::string& in = connection.in;
    in.append(buffer, static_cast<size_t>(got));
    const size_t end = in.find("\r\n\r\n");
    if (end == std::string::npos) return true;
    std::string head = in.substr(0, end);
    std::transform(head.begin(), head.end(), head.begin(), [](char c) { return std::tolower(c); });
    const size_t length = head.find("\r\ncontent-length:");
    EXPECT_NE(length, std::string::npos) << head;
    if (length == std::string::npos) return false;
    if (in.size() < end + 4 + static_cast<size_t>(std::atoll(head.c_str() + length + 17)))
      return true;
    ++statuses_[std::atoi(head.c_str() + 9)];
    ++answered_;
    in.clear();
    return SendNext(connection);
  }

  const int keys_;
  int sent_ = 0;
  double seconds_ = 0;
  std::map<int, int> statuses_;
  std::atomic<int> answered_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class MadeUpKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EngineSimOptions engine;
    engine.tokens = 1;
    engine.models = {"sim/model"};
    engine_ = std::make_unique<EngineSim>(engine);
    std::string failure;
    ASSERT_TRUE(engine_->Start(&failure)) << failure;
    ClusterOptions options;
    options.all_in_one = false;
    options.log_level = "warn";
    options.catalog = DefaultCatalog({engine_->base_url()});
    options.gateway_settings = {"trusted_proxies: [\"127.0.0.1\"]"};
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  // Sum of a metric of one process over all labels except the given one.
  double Metric(const std::string& process, const std::string& name,
                const std::string& label = "") {
    const HttpResponse page = Http(cluster_->admin_port(process), "GET", "/metrics");
    double sum = 0;
    for (size_t at = page.body.find("\n" + name); at != std::string::npos;
         at = page.body.find("\n" + name, at + 1)) {
      const std::string line = page.body.substr(at + 1, page.body.find('\n', at + 1) - at - 1);
      if (line.find(label) == std::string::npos) continue;
      sum += std::atof(line.c_str() + line.rfind(' '));
    }
    return sum;
  }
  double Lookups() { return Metric("auth", "tollgate_auth_verify_total"); }
  int Chat(const ApiKey& key) {
    const HttpResponse answer = cluster_->Post(key, kChat, kBody);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status;
  }

  std::unique_ptr<EngineSim> engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(MadeUpKeysTest, KeysOfCustomersWorkAndAuthGetsFewLookups) {
  const int at_least = KeysToSend();
  const ApiKey in_use = cluster_->NewCustomer(kUsd);
  const ApiKey not_seen = cluster_->NewCustomer(kUsd);
  const std::string workspace = cluster_->NewWorkspace();
  ASSERT_TRUE(cluster_->AddCredit(workspace, kUsd));
  ASSERT_EQ(Chat(in_use), 200);
  EXPECT_TRUE(
      WaitUntil([&] { return Metric("gateway", "tollgate_gateway_key_filter_bytes") > 0; }, 5'000));
  const double before = Lookups();

  Flood flood(cluster_->port(), at_least);
  int honest = 0;
  const auto probe_until = [&](int answered) {
    while (flood.answered() < answered) {
      Chat(in_use);
      ++honest;
    }
  };
  probe_until(at_least / 4);
  EXPECT_EQ(Chat(not_seen), 200);
  probe_until(at_least / 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Chat(cluster_->NewKey(workspace)), 200) << "at once";
  probe_until(at_least);
  flood.Stop();
  const int keys = flood.answered();

  const double lookups = Lookups() - before;
  std::printf("%d made-up keys in %.1f s, %.0f lookups, %.0f version reads, %d honest requests\n",
              keys, flood.seconds(), lookups, Metric("auth", "tollgate_auth_version_reads_total"),
              honest);
  // The five valid keys on two loops, and the made-up keys that pass the filter.
  EXPECT_LE(lookups, 20 + 50 * flood.seconds());
  EXPECT_LE(lookups, 20 + keys * 0.004) << "the design's rate of false positives";
  for (const auto& [status, count] : flood.statuses()) {
    EXPECT_TRUE(status == 401) << count << " requests with status " << status;
  }
  EXPECT_GE(Metric("gateway", "tollgate_gateway_key_cache_total", "filtered"), keys * 0.99);
  EXPECT_EQ(cluster_->Crashes(), "");
}

}  // namespace
}  // namespace tollgate::test
