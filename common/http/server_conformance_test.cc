// HTTP/1.1 behavior that clients rely on: order of responses, interim responses, half-closed
// connections, delivery of error responses. In plain text and over TLS.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"
#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

using testing::Count;
using testing::Eventually;
using testing::TestClient;
using testing::TestServer;

class ServerConformance : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerConformance, testing::kTransports,
                         testing::TransportName);

std::string GetRequest(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n";
}
std::string Post(const std::string& fields, const std::string& body = "",
                 const std::string& version = "HTTP/1.1") {
  return "POST /echo " + version + "\r\nHost: t\r\n" + fields + "\r\n" + body;
}

TEST_P(ServerConformance, RespondsToPipelinedRequestsInOrderAlsoAfterAStream) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(GetRequest("/stream") + Post("Content-Length: 5\r\n", "first") +
               GetRequest("/slow") + GetRequest("/stream") + Post("Content-Length: 4\r\n", "last"));
  const std::string& responses = client.ReadUntil("\r\n\r\nlast");
  size_t at = 0;
  for (const char* next : {"data: 1", "data: 2", "0\r\n\r\n", "first", "slow", "data: 1", "data: 2",
                           "0\r\n\r\n", "last"}) {
    at = responses.find(next, at);
    ASSERT_NE(at, std::string::npos) << next << responses;
    at += std::string(next).size();
  }
  EXPECT_EQ(Count(responses, "HTTP/1.1 200 OK\r\n"), 5);
}

TEST_P(ServerConformance, SendsContinueOnlyWhenTheClientWaitsForIt) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.judge_head = [](const HttpRequest& request, Loop&) {
    HeadVerdict verdict;
    if (request.path == "/nowhere") verdict.refusal = HttpResponse{404, {}, "not here"};
    return verdict;
  };
  TestServer server(GetParam(), options);
  const auto response = [&](const std::string& request, const std::string& end) {
    TestClient client(server);
    client.Write(request);
    return client.ReadUntil(end);
  };
  const std::string expect = "Expect: 100-continue\r\n";
  // No interim response: the body has already arrived, there is none, or the client speaks
  // HTTP/1.0.
  EXPECT_TRUE(response(Post(expect + "Content-Length: 2\r\n", "ab"), "\r\n\r\nab")
                  .starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(response(Post(expect), "\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(response(Post(expect + "Content-Length: 2\r\n", "ab", "HTTP/1.0"), "\r\n\r\nab")
                  .starts_with("HTTP/1.1 200 "));
  // The head is sufficient to refuse the request.
  EXPECT_TRUE(
      response(Post(expect + "Content-Length: 1001\r\n"), "\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(
      response("POST /nowhere HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n" + expect + "\r\n",
               "not here")
          .starts_with("HTTP/1.1 404 "));
  EXPECT_EQ(response(Post(expect + "Transfer-Encoding: chunked\r\n"), "\r\n\r\n"),
            "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_P(ServerConformance, RespondsToHeadWithABody) {
  TestServer server(GetParam());
  TestClient client(server);
  for (const std::string& request :
       {std::string("HEAD /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc"),
        std::string("HEAD /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n0\r\n\r\n")}) {
    client.ClearReceived();
    client.Write(request);
    const std::string& response = client.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 ")) << response;
    EXPECT_NE(response.find("\r\ncontent-length: 3\r\n"), std::string::npos) << response;
    EXPECT_TRUE(response.ends_with("\r\n\r\n")) << response;
  }
}

TEST_P(ServerConformance, AHalfClosedClientGetsALargeResponseInFull) {
  TestServer server(GetParam());
  TestClient client(server, 4096);
  client.Write(GetRequest("/big"));
  client.HalfClose();
  const std::string& response = client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(client.reset());
  EXPECT_EQ(response.size() - response.find("\r\n\r\n") - 4, size_t{8} << 20);
}

// If the server reset the connection, the client would lose the response at its next write.
TEST_P(ServerConformance, AClientThatSendsEverythingBeforeReadingGetsTheErrorResponse) {
  ServerOptions options;
  options.max_body_bytes = 100'000;
  TestServer server(GetParam(), options);
  const std::string body(20 << 20, 'x');
  for (const std::string& request :
       {Post("Content-Length: " + std::to_string(body.size()) + "\r\n", body),
        Post("Transfer-Encoding: chunked\r\n", "1400000\r\n" + body + "\r\n0\r\n\r\n"),
        "NONSENSE\r\n\r\n" + body}) {
    TestClient client(server);
    EXPECT_TRUE(client.Write(request));
    EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 "));
    EXPECT_FALSE(client.reset());
  }
  EXPECT_EQ(server.handled(), 0);
}

TEST_P(ServerConformance, LingersWhileARejectedClientSendsButNotWithoutLimit) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.linger_idle_ms = 500;
  options.linger_ms = 2'500;
  TestServer server(GetParam(), options);
  const auto now_ms = [] { return SystemClock::Get().MonotonicUs() / 1000; };
  // On a busy machine the client may be silent for too long, so it is repeated.
  int64_t lingered_ms = 0;
  for (int tries = 0; tries < 10 && lingered_ms < 2'490; ++tries) {
    TestClient sending(server);
    const int64_t start_ms = now_ms();
    sending.Write(Post("Content-Length: 100000\r\n", "x"));
    while (sending.Write("more") && now_ms() - start_ms < 60'000) {
      sending.ReadUntil("never", 10);
      if (sending.closed()) std::this_thread::yield();
    }
    EXPECT_TRUE(sending.received().starts_with("HTTP/1.1 400 "));
    lingered_ms = now_ms() - start_ms;
  }
  EXPECT_GE(lingered_ms, 2'490);
  EXPECT_LT(lingered_ms, 60'000);

  options.linger_ms = 600'000;
  TestServer patient(GetParam(), options);
  TestClient silent(patient);
  silent.Write(Post("Content-Length: 100000\r\n", "x"));
  EXPECT_TRUE(silent.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(Eventually([&] { return patient.server().connections() == 0; }));
}

TEST_P(ServerConformance, UsesTheClientAddressOfATrustedProxy) {
  std::string peer;
  ServerOptions options;
  options.on_done = [&](const HttpRequest& request, const RequestSummary&) {
    peer = request.peer_address;
  };
  const auto peer_of = [&](const std::string& fields) {
    TestServer server(GetParam(), options);
    TestClient client(server);
    client.Write(GetRequest("/echo", fields));
    client.ReadUntil("\r\n\r\n");
    server.server().Stop();  // on_done runs shortly after the response
    return peer;
  };
  const std::string spoofed =
      "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nVia: 1.1 x\r\n";
  prometheus::Counter& ignored = metrics::Counter("tollgate_http_untrusted_forwards_total", "");
  const double before = ignored.Value();
  EXPECT_EQ(peer_of(""), "127.0.0.1");
  EXPECT_EQ(ignored.Value(), before);
  EXPECT_EQ(peer_of(spoofed), "127.0.0.1");
  EXPECT_EQ(ignored.Value(), before + 1);
  options.trusted_proxies = TrustedProxies::Parse({"127.0.0.0/8"}).value();
  EXPECT_EQ(peer_of(spoofed + "X-Forwarded-For: 1.2.3.4\r\n"), "1.2.3.4");
  EXPECT_EQ(ignored.Value(), before + 1);
}

}  // namespace
}  // namespace tollgate::http
