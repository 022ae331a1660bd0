#include "common/http/client.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestServer;
using tollgate::testing::RunTask;
using ErrorKind = ClientError::Kind;

ClientRequest To(uint16_t port, std::string target, std::string body = "") {
  ClientRequest request;
  request.method = body.empty() ? "GET" : "POST";
  request.origin = {"127.0.0.1", port};
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

// Accepts connections one after the other and answers the first bytes of each with a fixed text.
class ScriptedServer {
 public:
  struct Script {
    std::string response;
    bool close = true;
    bool byte_by_byte = false;
    bool close_on_next = false;  // reads one more request after the response, then closes
  };
  explicit ScriptedServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_, 16) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
    for (int open : kept_) ::close(open);
  }
  uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

 private:
  void Run() {
    for (const Script& script : scripts_) {
      int connection = ::accept(fd_, nullptr, nullptr);
      if (connection < 0) return;
      ++accepted_;
      int on = 1;
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      char buffer[4096];
      if (::recv(connection, buffer, sizeof buffer, 0) <= 0) {
        ::close(connection);
        continue;
      }
      size_t step = script.byte_by_byte ? 1 : script.response.size();
      for (size_t at = 0; at < script.response.size(); at += step) {
        if (::send(connection, script.response.data() + at, step, MSG_NOSIGNAL) < 0) break;
      }
      if (script.close_on_next) (void)!::recv(connection, buffer, sizeof buffer, 0);
      if (script.close) {
        ::close(connection);
      } else {
        kept_.push_back(connection);
      }
    }
  }

  std::vector<Script> scripts_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
  std::atomic<int> accepted_{0};
  std::vector<int> kept_;
};

struct ClientOutcome {
  int status = 0;
  std::string body;
  bool failed = false;
  ErrorKind kind = ErrorKind::kConnect;
  bool response_started = false;
};

Task<ClientOutcome> Fetch(Client& client, ClientRequest request) {
  ClientOutcome outcome;
  auto response = co_await client.Fetch(std::move(request));
  if (response.ok()) {
    outcome.status = response->head.status;
    outcome.body = response->body;
  } else {
    outcome.failed = true;
    outcome.kind = response.error().kind;
    outcome.response_started = response.error().response_started;
  }
  co_return outcome;
}

ClientOutcome FetchOnce(ClientRequest request, ClientOptions options = {}) {
  return RunTask([&](Loop& loop) -> Task<ClientOutcome> {
    Client client(loop, options);
    co_return co_await Fetch(client, std::move(request));
  });
}

TEST(Client, ReadsFixedLengthAndChunkedResponses) {
  TestServer server;
  ClientOutcome echo = FetchOnce(To(server.port(), "/echo", "hello"));
  EXPECT_EQ(echo.status, 200);
  EXPECT_EQ(echo.body, "hello");
  ClientOutcome stream = FetchOnce(To(server.port(), "/stream"));
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.body, "data: 1\n\ndata: 2\n\n");
}

TEST(Client, SendsAndReadsLargeBodies) {
  TestServer server;
  std::string body;
  while (body.size() < (4 << 20)) body += std::to_string(body.size());
  ClientOutcome echo = FetchOnce(To(server.port(), "/echo", body));
  EXPECT_EQ(echo.status, 200);
  EXPECT_TRUE(echo.body == body);
}

TEST(Client, ReusesConnections) {
  TestServer server;
  size_t idle = RunTask([&](Loop& loop) -> Task<size_t> {
    Client client(loop);
    for (int i = 0; i < 20; ++i) {
      ClientOutcome stream =
          co_await Fetch(client, To(server.port(), i % 2 == 0 ? "/stream" : "/echo"));
      EXPECT_EQ(stream.status, 200);
      EXPECT_EQ(server.server().connections(), 1);
    }
    co_return client.idle_connections();
  });
  EXPECT_EQ(idle, 1u);
}

TEST(Client, ReturnsBytesAsTheyArrive) {
  TestServer server;
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop);
    ClientCall call(client);
    auto head = co_await call.Send(To(server.port(), "/gate-streaming"));
    EXPECT_TRUE(head.ok());
    EXPECT_EQ(head->header("content-type"), "text/event-stream");
    auto first = co_await call.ReadSome();
    EXPECT_TRUE(first.ok());
    EXPECT_EQ(*first, "data: 1\n\n") << "before the server sends more";
    server.OpenGate();
    auto second = co_await call.ReadSome();
    EXPECT_TRUE(second.ok());
    EXPECT_EQ(*second, "data: 2\n\n");
    auto end = co_await call.ReadSome();
    EXPECT_TRUE(end.ok() && end->empty());
    co_return 0;
  });
}

TEST(Client, RetriesOnceWhenAReusedConnectionIsLostBeforeTheResponse) {
  // The first connection closes after it receives a second request, the second connection before.
  ScriptedServer server({{"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab", true, false, true},
                         {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\ncd", true, false},
                         {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nef", true, false}});
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop);
    EXPECT_EQ((co_await Fetch(client, To(server.port(), "/"))).body, "ab");
    EXPECT_EQ(client.idle_connections(), 1u);
    EXPECT_EQ((co_await Fetch(client, To(server.port(), "/"))).body, "cd");
    EXPECT_EQ((co_await Fetch(client, To(server.port(), "/"))).body, "ef");
    co_return 0;
  });
  EXPECT_EQ(server.accepted(), 3);
}

TEST(Client, ConnectsToTheAddressAndNamesTheHost) {
  TestServer server;
  ClientRequest request = To(server.port(), "/host");
  request.origin.host = "engines.invalid";
  EXPECT_TRUE(FetchOnce(request).failed) << "there is no such host";
  request.origin.address = "127.0.0.1";
  const ClientOutcome outcome = FetchOnce(request);
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.body, "[engines.invalid:" + std::to_string(server.port()) + "]");
}

TEST(Client, AFreshConnectionIsNeverRetried) {
  ScriptedServer server(
      {{"", true, false}, {"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true, false}});
  ClientOutcome outcome = FetchOnce(To(server.port(), "/"));
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.kind, ErrorKind::kBroken);
  EXPECT_FALSE(outcome.response_started);
  EXPECT_EQ(server.accepted(), 1);
}

struct ResponseRow {
  const char* name;
  std::string response;
  bool failed;
  ErrorKind kind;
  int status;
  std::string body;
};

TEST(Client, ParsesResponsesThatArriveInPieces) {
  const std::vector<ResponseRow> rows = {
      {"until close", "HTTP/1.1 200 OK\r\n\r\nall of it", false, {}, 200, "all of it"},
      {"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false, {}, 200, "ok"},
      {"no reason", "HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", false, {}, 503, ""},
      {"interim first",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
       false,
       {},
       200,
       "x"},
      {"padded chunk sizes, trailers",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3  \r\nabc\r\n2;x\r\nde\r\n0\r\nT: "
       "x\r\n\r\n",
       false,
       {},
       200,
       "abcde"},
      {"204", "HTTP/1.1 204 No Content\r\n\r\n", false, {}, 204, ""},
      {"counted, cut short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true,
       ErrorKind::kBroken, 0, ""},
      {"chunked, cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
       true, ErrorKind::kBroken, 0, ""},
      {"head cut short", "HTTP/1.1 200 OK\r\nContent-Le", true, ErrorKind::kBroken, 0, ""},
      {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", true,
       ErrorKind::kProtocol, 0, ""},
      {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", true, ErrorKind::kProtocol, 0, ""},
      {"both lengths",
       "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true,
       ErrorKind::kProtocol, 0, ""},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", true,
       ErrorKind::kProtocol, 0, ""},
      {"head bomb", "HTTP/1.1 200 OK\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n", true,
       ErrorKind::kProtocol, 0, ""},
  };
  for (const ResponseRow& row : rows) {
    for (bool byte_by_byte : {false, true}) {
      if (byte_by_byte && row.response.size() > 10'000) continue;
      SCOPED_TRACE(row.name);
      ScriptedServer server({{row.response, true, byte_by_byte}});
      ClientOutcome outcome = FetchOnce(To(server.port(), "/"));
      EXPECT_EQ(outcome.failed, row.failed);
      EXPECT_EQ(outcome.status, row.status);
      EXPECT_EQ(outcome.body, row.body);
      if (row.failed) {
        EXPECT_EQ(static_cast<int>(outcome.kind), static_cast<int>(row.kind));
        EXPECT_TRUE(outcome.response_started);
      }
    }
  }
}

TEST(Client, EnginesMayPadEveryChunkSizeOfALongAnswer) {
  std::string response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string body;
  for (int i = 0; i < 20'000; ++i) {
    const std::string token = "data: " + std::to_string(i) + "\n\n";
    char size[16];
    std::snprintf(size, sizeof size, "%-8zx\r\n", token.size());
    response.append(size).append(token).append("\r\n");
    body += token;
  }
  ScriptedServer server({{response + "0       \r\n\r\n"}});
  const ClientOutcome outcome = FetchOnce(To(server.port(), "/"));
  EXPECT_FALSE(outcome.failed);
  EXPECT_TRUE(outcome.body == body);
}

TEST(Client, TrailersAreJudgedAndNeverBecomeHeaders) {
  const std::string start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n";
  ScriptedServer good({{start + "Connection: close\r\nX-Tokens: 7\r\n\r\n", false}});
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop);
    auto response = co_await client.Fetch(To(good.port(), "/"));
    EXPECT_TRUE(response.ok());
    EXPECT_EQ(response->body, "a");
    EXPECT_EQ(response->head.headers.size(), 1u);
    EXPECT_EQ(client.idle_connections(), 1u);
    co_return 0;
  });
  for (const char* bad : {"T\r\n\r\n", "T : x\r\n\r\n", "T: x\r\n y\r\n\r\n", "T: x\n\r\n\r\n",
                          ": x\r\n\r\n", "T: \x01\r\n\r\n"}) {
    SCOPED_TRACE(bad);
    ScriptedServer server({{start + bad}});
    const ClientOutcome outcome = FetchOnce(To(server.port(), "/"));
    EXPECT_TRUE(outcome.failed);
    EXPECT_EQ(outcome.kind, ErrorKind::kProtocol);
  }
}

TEST(Client, InterimResponsesWithoutEndAreRefused) {
  std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
  for (int i = 0; i < 16; ++i) response.insert(0, "HTTP/1.1 102 Processing\r\n\r\n");
  ScriptedServer sixteen({{response}});
  EXPECT_EQ(FetchOnce(To(sixteen.port(), "/")).body, "x");
  ScriptedServer more({{"HTTP/1.1 102 Processing\r\n\r\n" + response}});
  const ClientOutcome outcome = FetchOnce(To(more.port(), "/"));
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.kind, ErrorKind::kProtocol);
}

TEST(Client, DoesNotReuseAConnectionWithBytesAfterTheResponse) {
  ScriptedServer server({{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxEXTRA", false, false}});
  size_t idle = RunTask([&](Loop& loop) -> Task<size_t> {
    Client client(loop);
    EXPECT_EQ((co_await Fetch(client, To(server.port(), "/"))).body, "x");
    co_return client.idle_connections();
  });
  EXPECT_EQ(idle, 0u);
}

TEST(Client, ARefusedConnectionIsAConnectError) {
  uint16_t port = 0;
  {
    port = TestServer().port();
  }
  ClientOutcome outcome = FetchOnce(To(port, "/"));
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.kind, ErrorKind::kConnect);
}

TEST(Client, HeadAndIdleTimeouts) {
  ScriptedServer silent({{"", false, false}});
  ClientOptions options;
  options.head_timeout_ms = 50;
  ClientOutcome head = FetchOnce(To(silent.port(), "/"), options);
  EXPECT_EQ(head.kind, ErrorKind::kTimeout);
  EXPECT_FALSE(head.response_started);

  ScriptedServer stalled({{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false, false}});
  options = {};
  options.idle_timeout_ms = 50;
  ClientOutcome idle = FetchOnce(To(stalled.port(), "/"), options);
  EXPECT_EQ(idle.kind, ErrorKind::kTimeout);
  EXPECT_TRUE(idle.response_started);
}

TEST(Client, ABodyAboveTheLimitIsAnError) {
  TestServer server;
  bool failed = RunTask([&](Loop& loop) -> Task<bool> {
    Client client(loop);
    auto response = co_await client.Fetch(To(server.port(), "/big"), 1000);
    co_return !response.ok() && response.error().kind == ErrorKind::kProtocol;
  });
  EXPECT_TRUE(failed);
}

TEST(Client, AbortEndsAWaitAndResetsTheConnection) {
  TestServer server;
  for (const char* path : {"/wait", "/wait-streaming"}) {
    int before = server.disconnects();
    int handled = server.handled();
    bool streaming = std::string(path) == "/wait-streaming";
    auto abort_once_handled = [&](Loop& loop, ClientCall& call) -> Task<void> {
      while (server.handled() == handled) co_await loop.Sleep(1);
      call.Abort();
    };
    ErrorKind kind = RunTask([&](Loop& loop) -> Task<ErrorKind> {
      Client client(loop);
      ClientCall call(client);
      if (!streaming) loop.Spawn(abort_once_handled(loop, call));
      auto head = co_await call.Send(To(server.port(), path));
      if (!streaming) co_return head.ok() ? ErrorKind::kConnect : head.error().kind;
      EXPECT_TRUE(head.ok());
      loop.RunAfter(30, [&] { call.Abort(); });
      while (true) {
        auto bytes = co_await call.ReadSome();
        if (bytes.ok() && !bytes->empty()) continue;
        EXPECT_FALSE((co_await call.ReadSome()).ok());  // later reads fail, too
        co_return bytes.ok() ? ErrorKind::kConnect : bytes.error().kind;
      }
    });
    EXPECT_EQ(kind, ErrorKind::kAborted) << path;
    EXPECT_TRUE(Eventually([&] { return server.disconnects() == before + 1; })) << path;
  }
}

TEST(Client, DestroyingAnIncompleteCallClosesItsConnection) {
  TestServer server;
  RunTask([&](Loop& loop) -> Task<int> {
    Client client(loop);
    {
      ClientCall call(client);
      EXPECT_TRUE((co_await call.Send(To(server.port(), "/wait-streaming"))).ok());
    }
    EXPECT_EQ(client.idle_connections(), 0u);
    co_return 0;
  });
  EXPECT_TRUE(Eventually([&] { return server.disconnects() == 1; }));
}

TEST(BaseUrl, Parses) {
  auto plain = ParseBaseUrl("http://engine:8000");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->origin.host, "engine");
  EXPECT_EQ(plain->origin.port, 8000);
  EXPECT_EQ(plain->path, "");
  auto prefixed = ParseBaseUrl("http://10.0.0.1/v1/x//");
  ASSERT_TRUE(prefixed);
  EXPECT_EQ(prefixed->origin.port, 80);
  EXPECT_EQ(prefixed->path, "/v1/x");
  auto v6 = ParseBaseUrl("http://[::1]:81/");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->origin.host, "::1");
  EXPECT_EQ(v6->origin.port, 81);
  auto tls = ParseBaseUrl("https://engine.example/x");
  ASSERT_TRUE(tls);
  EXPECT_TRUE(tls->origin.tls);
  EXPECT_EQ(tls->origin.port, 443);
  EXPECT_FALSE(plain->origin.tls);
  for (const char* bad :
       {"ftp://x", "x:80", "https://", "http://", "http://:80", "http://x:0", "http://x:99999",
        "http://x:8a", "http://a b", "http://u@h", "http://[::1", "http://h/a?b"}) {
    EXPECT_FALSE(ParseBaseUrl(bad)) << bad;
  }
}

}  // namespace
}  // namespace tollgate::http
