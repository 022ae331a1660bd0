// Tests which connections the server accepts: limits per address, eviction, and lack of
// descriptors.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "common/http/server.h"
#include "common/http/server_metrics.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"
#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestClient;
using testing::TestServer;

class ServerAccept : public testing::TransportTest {
 protected:
  using Client = std::unique_ptr<TestClient>;

  void Start(int max_connections, int per_address, int loops = 2, ServerOptions options = {}) {
    options.max_connections = max_connections;
    options.max_connections_per_address = per_address;
    options.metrics = metrics_;
    // Long timeouts, so that a busy machine does not end connections.
    options.handshake_timeout_ms = options.head_timeout_ms = options.body_window_ms =
        options.max_body_ms = options.idle_timeout_ms = options.linger_idle_ms = options.linger_ms =
            600'000;
    server_ = std::make_unique<TestServer>(GetParam(), options, loops);
  }
  Client Connect(const char* source = "127.0.0.1") {
    return std::make_unique<TestClient>(*server_, 0, source);
  }
  static bool IsServed(TestClient& client) {
    client.ClearReceived();
    client.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
    return client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 ");
  }
  // A connection that was served and waits for its next request.
  Client Idle(const char* source = "127.0.0.1") {
    Client client = Connect(source);
    EXPECT_TRUE(IsServed(*client));
    ++idle_;
    EXPECT_TRUE(Eventually([&] { return IdleConnections() == idle_; }));
    return client;
  }
  Client Running() {
    const int before = server_->server().running_requests();
    Client client = Connect();
    client->Write("GET /wait HTTP/1.1\r\nHost: t\r\n\r\n");
    EXPECT_TRUE(Eventually([&] { return server_->server().running_requests() == before + 1; }));
    return client;
  }
  static bool IsClosed(TestClient& client) {
    client.ReadToEnd();
    return client.closed();
  }
  int IdleConnections() {
    (void)metrics::Render();
    return static_cast<int>(metrics_->idle_connections.Value());
  }
  double Refused(ConnectionRefusal reason) { return metrics_->refused(reason).Value(); }

  std::shared_ptr<ServerMetrics> metrics_ = std::make_shared<ServerMetrics>();
  std::unique_ptr<TestServer> server_;
  int idle_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Transports, ServerAccept, testing::kTransports, testing::TransportName);

TEST_P(ServerAccept, WhenItIsFullTheConnectionThatWasIdleLongestIsEvicted) {
  Start(4, 5);
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Idle());
  const double before = metrics_->evicted.Value();
  const Client newcomer = Connect();
  EXPECT_TRUE(IsServed(*newcomer));
  EXPECT_TRUE(IsClosed(*clients[0]));
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(IsServed(*clients[static_cast<size_t>(i)])) << i;
  EXPECT_EQ(metrics_->evicted.Value() - before, 1);
  EXPECT_EQ(server_->server().connections(), 4);
}

TEST_P(ServerAccept, ManyNewcomersEachReplaceAnIdleConnection) {
  Start(100, 100, 1);
  std::vector<Client> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(Connect());
  ASSERT_TRUE(Eventually([&] { return IdleConnections() == 100; }));
  const double evicted = metrics_->evicted.Value();
  const double refused = Refused(ConnectionRefusal::kFull);
  // The connections arrive while the loop is held, so that the server finds them all at once.
  std::atomic<bool> go{false};
  server_->pool().loop(0).Post([&] {
    while (!go) std::this_thread::yield();
  });
  std::vector<std::unique_ptr<testing::RawClient>> newcomers;
  for (int i = 0; i < 99; ++i) {
    newcomers.push_back(std::make_unique<testing::RawClient>(
        server_->port(), 0, testing::Transport::kPlain, "127.0.0.2"));
  }
  go = true;
  EXPECT_TRUE(Eventually([&] { return metrics_->evicted.Value() - evicted == 99; }))
      << metrics_->evicted.Value() - evicted;
  EXPECT_EQ(Refused(ConnectionRefusal::kFull) - refused, 0);
  EXPECT_TRUE(Eventually([&] { return server_->server().connections() == 100; }));
}

TEST_P(ServerAccept, RunningRequestsAreNotEvicted) {
  Start(2, 2);
  const Client first = Running();
  const Client second = Running();
  const double before = Refused(ConnectionRefusal::kFull);
  EXPECT_TRUE(IsClosed(*Connect("127.0.0.2")));
  EXPECT_EQ(Refused(ConnectionRefusal::kFull) - before, 1);
  EXPECT_EQ(server_->server().running_requests(), 2);
}

// H37. Otherwise one missing byte would hold a place for the whole body window.
TEST_P(ServerAccept, ABodyWithoutACredentialDoesNotProtectItsConnection) {
  ServerOptions options;
  options.judge_head = [](HttpRequest& request, Loop&) {
    return HeadVerdict{.without_credential = request.path == "/echo"};
  };
  Start(2, 3, 2, options);
  Client open = Connect();
  open->Write("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\n");
  Client with_key = Connect();
  with_key->Write("POST /stream HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\n");
  // The first connection counts as idle because of its head, the second does not.
  ASSERT_TRUE(
      Eventually([&] { return server_->server().connections() == 2 && IdleConnections() == 1; }));
  Client newcomer = Connect();
  EXPECT_TRUE(IsServed(*newcomer));
  EXPECT_TRUE(IsClosed(*open));
  with_key->Write("x");
  EXPECT_TRUE(with_key->ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

// H37. The two hosts may do anything except send requests with a valid key.
TEST_P(ServerAccept, NoTwoHostsCanCloseTheServer) {
  Start(8, 4);
  const double before = Refused(ConnectionRefusal::kAddress);
  std::vector<Client> clients;
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    clients.push_back(Connect(host));  // silent; over TLS after the handshake
    clients.push_back(Connect(host));  // an incomplete head
    clients.back()->Write("GET /echo HTTP/1.1\r\nHost");
    idle_ += 2;
    clients.push_back(Idle(host));
    clients.push_back(Connect(host));  // refused, and continues to send
    clients.back()->Write("GET /echo HTTP/9.9\r\n\r\nmore");
    EXPECT_TRUE(clients.back()->ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 400 "));
    ++idle_;
    ASSERT_TRUE(Eventually([&] { return IdleConnections() == idle_; }));
    EXPECT_TRUE(IsClosed(*Connect(host))) << "the address is at its limit";
  }
  EXPECT_EQ(Refused(ConnectionRefusal::kAddress) - before, 2);
  std::vector<Client> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(Connect("127.0.0.3"));
    EXPECT_TRUE(IsServed(*others.back())) << i;
  }
  EXPECT_EQ(server_->server().connections(), 8);
}

TEST_P(ServerAccept, TheAddressWithTheMostConnectionsLosesFirst) {
  Start(4, 3, 1);
  const Client oldest = Idle("127.0.0.2");
  std::vector<Client> many;
  for (int i = 0; i < 3; ++i) many.push_back(Idle("127.0.0.1"));
  const Client newcomer = Connect("127.0.0.3");
  EXPECT_TRUE(IsServed(*newcomer));
  EXPECT_TRUE(IsClosed(*many[0]));
  EXPECT_TRUE(IsServed(*oldest));
}

TEST_P(ServerAccept, ARequestThatHasArrivedIsNotEvicted) {
  Start(2, 2, 1);
  const Client busy = Running();
  const Client idle = Idle();
  // The loop is held until request and new connection have both arrived.
  std::atomic<bool> go{false};
  server_->pool().loop(0).Post([&] {
    while (!go) std::this_thread::yield();
  });
  idle->ClearReceived();
  idle->Write("GET /slow HTTP/1.1\r\nHost: t\r\n\r\n");
  testing::RawClient newcomer(server_->port());
  go = true;
  EXPECT_TRUE(idle->ReadUntil("\r\n\r\nslow").starts_with("HTTP/1.1 200 "));
}

TEST_P(ServerAccept, DescriptorsAboveTheLimitAreLeftToTheProcess) {
  ServerOptions options;
  options.metrics = metrics_;
  options.max_descriptor = 3;
  server_ = std::make_unique<TestServer>(GetParam(), options);
  const double before = Refused(ConnectionRefusal::kDescriptors);
  EXPECT_TRUE(IsClosed(*Connect()));
  EXPECT_EQ(Refused(ConnectionRefusal::kDescriptors) - before, 1);
  EXPECT_EQ(server_->server().connections(), 0);
}

TEST_P(ServerAccept, AtTheLastFreeDescriptorANewcomerReplacesAnIdleConnection) {
  ServerOptions options;
  options.metrics = metrics_;
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  options.max_descriptor = next + 60;
  server_ = std::make_unique<TestServer>(GetParam(), options, 1);
  const double evicted = metrics_->evicted.Value();
  std::vector<Client> clients;
  // Each connection takes two descriptors of this process.
  for (int i = 0; i < 40; ++i) {
    clients.push_back(Connect());
    EXPECT_TRUE(IsServed(*clients.back())) << i;
  }
  EXPECT_GT(metrics_->evicted.Value(), evicted);
  EXPECT_TRUE(IsClosed(*clients.front()));
}

// Sets the soft limit so low that the process cannot open anything; the destructor restores it.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDIN_FILENO);
    ::close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(ServerDescriptors, WithoutDescriptorsClientsAreTurnedAwayAndIdleOnesEvicted) {
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP() << "the sanitizer needs descriptors of its own to check objects";
#endif
#endif
  ServerOptions options;
  options.metrics = std::make_shared<ServerMetrics>();
  prometheus::Counter& refused = options.metrics->refused(ConnectionRefusal::kDescriptors);
  prometheus::Counter& evicted = options.metrics->evicted;
  const double refused_before = refused.Value();
  const double evicted_before = evicted.Value();
  TestServer server(options);
  std::vector<std::unique_ptr<TestClient>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(std::make_unique<TestClient>(server));
    idle.back()->Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
    EXPECT_TRUE(idle.back()->ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int made_before = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  {
    const NoDescriptors none;
    ASSERT_LT(::dup(STDIN_FILENO), 0);
    ASSERT_EQ(::connect(made_before, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    char byte;
    EXPECT_LE(::recv(made_before, &byte, 1, 0), 0) << "closed, not left in the queue";
    EXPECT_TRUE(Eventually([&] { return evicted.Value() > evicted_before; }));
  }
  ::close(made_before);
  EXPECT_GE(refused.Value() - refused_before, 1);
  TestClient later(server);
  later.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(later.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace tollgate::http
