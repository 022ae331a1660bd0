// Heads are checked before their bodies are buffered (decision 46).
#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "common/http/server.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestClient;
using testing::TestServer;

// /refused is refused and other paths are accepted; with X-Ask, once the gate is open.
class ServerJudge : public testing::TransportTest {
 protected:
  ServerOptions Options() {
    ServerOptions options;
    options.judge_head = [this](HttpRequest& request, Loop& loop) {
      ++judged_;
      HeadVerdict verdict;
      if (!request.header("x-ask").empty()) {
        verdict.pending = Ask(request, loop);
      } else if (request.path == "/refused") {
        verdict.refusal = Refusal();
      }
      return verdict;
    };
    return options;
  }
  static HttpResponse Refusal() { return {401, {}, "refused by the head"}; }
  Task<std::optional<HttpResponse>> Ask(const HttpRequest& request, Loop& loop) {
    ++waiting_;
    while (!open_) (void)co_await loop.Sleep(1);
    --waiting_;
    std::optional<HttpResponse> refusal;
    if (request.path == "/refused") refusal = Refusal();
    if (request.path == "/throw") throw std::runtime_error("thrown by a test");
    co_return refusal;
  }
  static std::string Post(const std::string& path, const std::string& fields,
                          const std::string& body = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n" + body;
  }

  static constexpr const char* kAsk[] = {"", "X-Ask: yes\r\n"};
  std::atomic<int> judged_{0};
  std::atomic<int> waiting_{0};
  std::atomic<bool> open_{false};
};
INSTANTIATE_TEST_SUITE_P(Transports, ServerJudge, testing::kTransports, testing::TransportName);

TEST_P(ServerJudge, TheHeadIsAnsweredWithoutItsBody) {
  TestServer server(GetParam(), Options());
  open_ = true;
  for (const std::string ask : kAsk) {
    for (const char* fields : {"Content-Length: 16000000\r\n", "Transfer-Encoding: chunked\r\n",
                               "Content-Length: 1\r\nExpect: 100-continue\r\n"}) {
      TestClient client(server);
      client.Write(Post("/refused", ask + fields));
      const std::string& response = client.ReadToEnd();
      EXPECT_TRUE(response.starts_with("HTTP/1.1 401 ")) << ask << fields << response;
      EXPECT_NE(response.find("connection: close\r\n"), std::string::npos);
      EXPECT_TRUE(response.ends_with("\r\n\r\nrefused by the head"));
    }
    TestClient client(server);
    client.Write("HEAD /refused HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n" + ask + "\r\n");
    EXPECT_TRUE(client.ReadToEnd().ends_with("\r\ncontent-length: 19\r\n\r\n"));
  }
  EXPECT_EQ(server.handled(), 0);
}

TEST_P(ServerJudge, AnAcceptedBodyIsReadAndTheConnectionKept) {
  TestServer server(GetParam(), Options());
  open_ = true;
  TestClient client(server);
  for (const std::string ask : kAsk) {
    client.ClearReceived();
    client.Write(Post("/echo", ask + "Content-Length: 4\r\n"));
    const int before = judged_;
    client.Write("body");
    EXPECT_TRUE(client.ReadUntil("\r\n\r\nbody").starts_with("HTTP/1.1 200 "))
        << ask << client.received();
    EXPECT_LE(judged_ - before, 1);
    client.ClearReceived();
    client.Write(Post("/echo", ask + "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n"));
    client.Write("0\r\n\r\n");
    EXPECT_TRUE(client.ReadUntil("\r\n\r\nbody").starts_with("HTTP/1.1 200 "))
        << ask << client.received();
  }
}

// The order of decision 16.
TEST_P(ServerJudge, FramingComesBeforeTheVerdict) {
  TestServer server(GetParam(), Options());
  for (const std::string& request :
       {Post("/refused", "Content-Length: 17000000\r\n"),
        Post("/refused", "Content-Length: 17000000\r\nExpect: 100-continue\r\n"),
        Post("/refused", "Transfer-Encoding: chunked\r\n", "nonsense\r\n")}) {
    TestClient client(server);
    client.Write(request);
    EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 ")) << client.received();
  }
  EXPECT_EQ(judged_, 0);
}

TEST_P(ServerJudge, ARequestThatArrivesInFullGoesToItsHandler) {
  TestServer server(GetParam(), Options());
  TestClient client(server);
  client.Write(Post("/echo", "Content-Length: 4\r\n", "body"));
  EXPECT_TRUE(client.ReadUntil("\r\n\r\nbody").starts_with("HTTP/1.1 200 "));
  client.Write(Post("/echo", "Transfer-Encoding: chunked\r\n", "4\r\nmore\r\n0\r\n\r\n"));
  EXPECT_TRUE(client.ReadUntil("\r\n\r\nmore").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(judged_, 0);
}

// Socket buffers bound what the kernel holds; the process holds only the head.
TEST_P(ServerJudge, NothingIsReadUntilTheVerdict) {
  TestServer server(GetParam(), Options());
  TestClient client(server);
  client.Write(Post("/echo", "X-Ask: yes\r\nContent-Length: 16000000\r\nExpect: 100-continue\r\n"));
  ASSERT_TRUE(Eventually([&] { return waiting_ == 1; }));
  EXPECT_EQ(server.server().running_requests(), 1);
  if (GetParam() == testing::Transport::kPlain) {
    ::fcntl(client.fd(), F_SETFL, O_NONBLOCK);
    const std::string piece(64 * 1024, 'x');
    size_t sent = 0;
    // Sends until the buffers have been full for 100 ms.
    for (int full = 0; full < 10 && sent < 16'000'000;) {
      const ssize_t count = ::send(client.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (count > 0) sent += static_cast<size_t>(count);
      pollfd wanted{client.fd(), POLLOUT, 0};
      full = ::poll(&wanted, 1, 10) == 0 ? full + 1 : 0;
    }
    EXPECT_LT(sent, 10'000'000u);
  }
  EXPECT_EQ(client.ReadUntil("\r\n\r\n", 50), "") << "100 Continue before the verdict";
  open_ = true;
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 100 "));
}

TEST_P(ServerJudge, AClientThatLeavesBeforeTheVerdictLeavesNothingBehind) {
  TestServer server(GetParam(), Options());
  {
    TestClient client(server);
    client.Write(Post("/echo", "X-Ask: yes\r\nContent-Length: 100\r\n"));
    ASSERT_TRUE(Eventually([&] { return waiting_ == 1; }));
    client.CloseWithReset();
  }
  open_ = true;
  EXPECT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  EXPECT_TRUE(Eventually([&] { return server.server().running_requests() == 0; }));
  EXPECT_EQ(server.handled(), 0);
}

TEST_P(ServerJudge, StopWaitsForAVerdict) {
  TestServer server(GetParam(), Options());
  TestClient client(server);
  client.Write(Post("/echo", "X-Ask: yes\r\nContent-Length: 100\r\n"));
  ASSERT_TRUE(Eventually([&] { return waiting_ == 1; }));
  Loop& loop = server.pool().loop(0);
  loop.Post([this, &loop] { loop.RunAfter(50, [this] { open_ = true; }); });
  server.server().Stop();
  EXPECT_EQ(waiting_, 0);
  EXPECT_EQ(server.server().running_requests(), 0);
  EXPECT_EQ(server.server().connections(), 0);
}

TEST_P(ServerJudge, AFailedJudgementIsA500) {
  TestServer server(GetParam(), Options());
  open_ = true;
  TestClient client(server);
  client.Write(Post("/throw", "X-Ask: yes\r\nContent-Length: 100\r\n"));
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 500 "));
}

}  // namespace
}  // namespace tollgate::http
