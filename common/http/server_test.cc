#include "common/http/server.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestClient;
using testing::TestServer;

class ServerTest : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerTest, testing::kTransports, testing::TransportName);
class ServerTimeouts : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerTimeouts, testing::kTransports, testing::TransportName);
class ServerLimits : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerLimits, testing::kTransports, testing::TransportName);
class ServerDisconnect : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerDisconnect, testing::kTransports,
                         testing::TransportName);
class ServerDrain : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, ServerDrain, testing::kTransports, testing::TransportName);

std::string Get(const std::string& path, const std::string& fields = "",
                const std::string& version = "HTTP/1.1") {
  return "GET " + path + " " + version + "\r\nHost: t\r\n" + fields + "\r\n";
}

int64_t NowMs() { return SystemClock::Get().MonotonicUs() / 1000; }
// A disconnect is detected within about 300 ms; the rest is for a busy machine.
constexpr int64_t kNoticedMs = 30'000;

TEST_P(ServerTest, ResponsesHaveDateLengthAndRequestIds) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(
      "POST /echo HTTP/1.1\r\nHost: t\r\nX-Request-Id: my.id_-9\r\nContent-Length: 2\r\n\r\nhi");
  const std::string& response = client.ReadUntil("\r\n\r\nhi");
  EXPECT_NE(response.find("\r\nx-request-id: my.id_-9\r\n"), std::string::npos) << response;
  EXPECT_NE(response.find("\r\nrequest-id: my.id_-9\r\n"), std::string::npos);
  EXPECT_NE(response.find("\r\ncontent-length: 2\r\n"), std::string::npos);
  EXPECT_NE(response.find("\r\ncontent-type: text/plain\r\n"), std::string::npos);
  EXPECT_NE(response.find(" GMT\r\n"), std::string::npos);
}

TEST_P(ServerTest, MalformedRequestIdsAreReplacedH47) {
  TestServer server(GetParam());
  for (std::string id : {std::string(129, 'a'), std::string("a b"), std::string("\xf0\x9f\x98\x80"),
                         std::string("a,b"), std::string(10'000, 'x')}) {
    TestClient client(server);
    client.Write(Get("/echo", "X-Request-Id: " + id + "\r\n"));
    const std::string& response = client.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200"));
    EXPECT_NE(response.find("\r\nx-request-id: req_"), std::string::npos) << response;
  }
  EXPECT_TRUE(IsWellFormedRequestId(std::string(128, 'a')));
  EXPECT_FALSE(IsWellFormedRequestId(""));
  EXPECT_TRUE(IsWellFormedRequestId("req_" + Id::New().ToBase62()));
}

TEST_P(ServerTest, StreamsInChunks) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/stream"));
  const std::string& response = client.ReadUntil("0\r\n\r\n");
  EXPECT_NE(response.find("\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: "
                          "2\n\n\r\n0\r\n\r\n"),
            std::string::npos)
      << response;
  EXPECT_EQ(response.find("content-length"), std::string::npos);
}

// A line end in a value must not start a new field.
TEST_P(ServerTest, TrailersFollowTheLastChunk) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/trailers", "Connection: close\r\n"));
  const std::string& response = client.ReadToEnd();
  EXPECT_NE(response.find("trailer: x-after\r\n"), std::string::npos) << response;
  EXPECT_TRUE(
      response.ends_with("\r\n4\r\nbody\r\n0\r\nx-after: a  x-injected: b\r\n"
                         "x-other: c\r\n\r\n"))
      << response;
}

TEST_P(ServerTest, Http10StreamsEndWithTheConnection) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/stream", "", "HTTP/1.0"));
  const std::string& response = client.ReadToEnd();
  EXPECT_EQ(response.find("transfer-encoding"), std::string::npos);
  EXPECT_TRUE(response.ends_with("\r\n\r\ndata: 1\n\ndata: 2\n\n")) << response;
  EXPECT_NE(response.find("connection: close"), std::string::npos);
}

TEST_P(ServerTest, Http10KeepsAliveOnlyOnRequest) {
  TestServer server(GetParam());
  TestClient plain(server);
  plain.Write(Get("/echo", "", "HTTP/1.0"));
  plain.ReadToEnd();
  EXPECT_TRUE(plain.closed());

  TestClient kept(server);
  kept.Write(Get("/echo", "Connection: keep-alive\r\n", "HTTP/1.0"));
  EXPECT_NE(kept.ReadUntil("\r\n\r\n").find("connection: keep-alive"), std::string::npos);
  kept.ClearReceived();
  kept.Write(Get("/echo", "Connection: keep-alive\r\n", "HTTP/1.0"));
  EXPECT_TRUE(kept.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_P(ServerTest, ConnectionCloseClosesTheConnection) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/echo", "Connection: close\r\n") + Get("/echo"));
  const std::string& response = client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(client.reset());
  EXPECT_EQ(testing::Count(response, "HTTP/1.1 200"), 1);
  EXPECT_NE(response.find("connection: close"), std::string::npos);
}

TEST_P(ServerTest, HeadRequestsGetOnlyTheHead) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write("HEAD /nowhere HTTP/1.1\r\nHost: t\r\n\r\n" + Get("/echo"));
  const std::string& response = client.ReadUntil("content-length: 0\r\n\r\n");
  EXPECT_NE(response.find("\r\ncontent-length: 12\r\n"), std::string::npos);
  EXPECT_EQ(response.find("no such path"), std::string::npos) << response;
  EXPECT_EQ(testing::Count(response, "HTTP/1.1 "), 2);
}

TEST_P(ServerTest, RespondsToExpectContinueBeforeTheBody) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(
      "POST /echo HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Write("body");
  EXPECT_TRUE(client.ReadUntil("\r\n\r\nbody").ends_with("\r\n\r\nbody"));
}

TEST_P(ServerTest, LargeBodiesRoundTrip) {
  TestServer server(GetParam());
  std::string body;
  for (int i = 0; body.size() < (3 << 20); ++i) body += std::to_string(i) + ",";
  for (bool chunked : {false, true}) {
    TestClient client(server);
    std::thread writer([&] {
      std::string head = "POST /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\n";
      if (!chunked) {
        client.Write(head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        return;
      }
      client.Write(head + "Transfer-Encoding: chunked\r\n\r\n");
      for (size_t at = 0; at < body.size(); at += 70'000) {
        std::string chunk = body.substr(at, 70'000);
        char size[20];
        std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
        client.Write(size + chunk + "\r\n");
      }
      client.Write("0\r\n\r\n");
    });
    const std::string& response = client.ReadToEnd();
    writer.join();
    ASSERT_GT(response.size(), body.size());
    EXPECT_TRUE(response.compare(response.size() - body.size(), body.size(), body) == 0);
  }
}

TEST_P(ServerTest, TheBodyLimitAppliesToChunkedBodies) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  TestServer server(GetParam(), options);
  TestClient client(server);
  std::string chunk = "1f4\r\n" + std::string(500, 'x') + "\r\n";
  client.Write("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk +
               chunk + "1\r\n");
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 ")) << client.received();
  EXPECT_EQ(server.handled(), 0);
}

// The size is reported even if the handler has moved the body out.
TEST_P(ServerTest, TheSummaryHasTheSizeOfTheBody) {
  std::atomic<uint64_t> bytes{0};
  std::atomic<int> done{0};
  ServerOptions options;
  options.on_done = [&](const HttpRequest&, const RequestSummary& summary) {
    bytes = summary.body_bytes_in;
    ++done;
  };
  TestServer server(GetParam(), options);
  TestClient client(server);
  client.Write("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
  ASSERT_TRUE(Eventually([&] { return done == 1; }));
  EXPECT_EQ(bytes, 5u);
  client.Write(
      "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return done == 2; }));
  EXPECT_EQ(bytes, 7u);
  client.Write("GET /slow HTTP/1.1\r\nHost: t\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return done == 3; }));
  EXPECT_EQ(bytes, 0u);
}

TEST_P(ServerTest, AHandlerThatDoesNotRespondGives500) {
  TestServer server(GetParam());
  for (const char* path : {"/nothing", "/throw"}) {
    TestClient client(server);
    client.Write(Get(path));
    EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 500 ")) << path;
  }
}

TEST_P(ServerTest, AnAbortedStreamHasNoLastChunk) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/cut"));
  const std::string& response = client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(response.ends_with("data: 1\n\n\r\n")) << response;
}

TEST_P(ServerTest, EveryResponseHasTheFixedHeaders) {
  ServerOptions options;
  options.headers = SecurityHeaders(/*https=*/true);
  TestServer server(GetParam(), options);
  for (const std::string line : {"GET /echo HTTP/1.1", "nonsense"}) {
    TestClient client(server);
    client.Write(line + "\r\nHost: t\r\nConnection: close\r\n\r\n");
    client.ReadToEnd();
    EXPECT_NE(client.received().find("x-content-type-options: nosniff\r\n"
                                     "strict-transport-security: max-age=31536000\r\n"),
              std::string::npos)
        << client.received();
  }
}

TEST_P(ServerTest, RenderErrorGetsThePathIfKnown) {
  ServerOptions options;
  options.render_error = [](const Error& error, const HttpRequest& request) {
    return HttpResponse{error.row().http_status,
                        {{"x-code", std::string(error.row().code)}},
                        "path=" + request.path};
  };
  TestServer server(GetParam(), options);
  TestClient known(server);
  known.Write("GET /v1/messages?x HTTP/1.1\r\nHost: t\r\nbad\r\n\r\n");
  EXPECT_TRUE(known.ReadToEnd().ends_with("\r\n\r\npath=/v1/messages"));
  EXPECT_NE(known.received().find("x-code: bad_request"), std::string::npos);
  TestClient unknown(server);
  unknown.Write("nonsense\r\n\r\n");
  EXPECT_TRUE(unknown.ReadToEnd().ends_with("\r\n\r\npath="));
}

TEST_P(ServerTimeouts, SlowHeadsAreClosedH33) {
  ServerOptions options;
  options.head_timeout_ms = 100;
  TestServer server(GetParam(), options);
  TestClient client(server);
  client.Write("GET /echo HT");
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_TRUE(client.closed());
}

TEST_P(ServerTimeouts, SlowBodiesAreRejectedH34) {
  ServerOptions options;
  options.body_window_ms = 100;
  TestServer server(GetParam(), options);
  TestClient client(server);
  client.Write("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\nabc");
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(server.handled(), 0);
}

TEST_P(ServerTimeouts, ClientsThatDoNotReadAreDisconnectedH35) {
  ServerOptions options;
  options.write_stall_ms = 200;
  TestServer server(GetParam(), options);
  TestClient client(server, 4096);
  client.Write(Get("/endless"));
  EXPECT_TRUE(Eventually([&] { return server.disconnects() == 1; }));
  // Back-pressure: the server wrote no more than the socket buffers hold.
  EXPECT_LT(server.chunks_taken() * 16, 8 * 1024);
  EXPECT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
}

TEST_P(ServerTimeouts, IdleConnectionsAreClosedH36) {
  ServerOptions options;
  options.idle_timeout_ms = 1'000;
  TestServer server(GetParam(), options);
  TestClient client(server);
  client.Write(Get("/echo"));
  client.ReadUntil("\r\n\r\n");
  EXPECT_FALSE(client.closed());
  client.ReadToEnd();
  EXPECT_TRUE(client.closed());
}

TEST_P(ServerLimits, ConnectionsPerAddressAreLimitedH37) {
  ServerOptions options;
  options.max_connections_per_address = 2;
  TestServer server(GetParam(), options);
  TestClient first(server);
  TestClient second(server);
  ASSERT_TRUE(Eventually([&] { return server.server().connections() == 2; }));
  TestClient third(server);
  third.ReadToEnd();
  EXPECT_TRUE(third.closed());
  first.Write(Get("/echo"));
  EXPECT_TRUE(first.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
  second.Close();
  ASSERT_TRUE(Eventually([&] { return server.server().connections() == 1; }));
  TestClient fourth(server);
  fourth.Write(Get("/echo"));
  EXPECT_TRUE(fourth.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_P(ServerDisconnect, AHalfClosedClientIsServedH38) {
  TestServer server(GetParam());
  for (const char* path : {"/echo", "/slow", "/stream"}) {
    TestClient client(server);
    client.Write(Get(path));
    client.HalfClose();
    const std::string& response = client.ReadToEnd();
    EXPECT_NE(response.find("HTTP/1.1 200 OK\r\n"), std::string::npos) << path << response;
    EXPECT_FALSE(client.reset());
  }
  EXPECT_EQ(server.disconnects(), 0);
}

TEST_P(ServerDisconnect, DetectsAResetAtOnceH39) {
  TestServer server(GetParam());
  for (const char* path : {"/wait", "/wait-streaming"}) {
    int before = server.disconnects();
    TestClient client(server);
    client.Write(Get(path));
    ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
    int64_t start_ms = NowMs();
    client.CloseWithReset();
    EXPECT_TRUE(Eventually([&] { return server.disconnects() == before + 1; }));
    EXPECT_LT(NowMs() - start_ms, kNoticedMs) << path;
    ASSERT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  }
}

TEST_P(ServerDisconnect, DetectsAClosedClientWithoutTraffic) {
  TestServer server(GetParam());
  for (const char* path : {"/wait", "/wait-streaming"}) {
    int before = server.disconnects();
    TestClient client(server);
    client.Write(Get(path));
    if (std::string(path) == "/wait-streaming") client.ReadUntil("data: first");
    ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
    int64_t start_ms = NowMs();
    client.Close();
    EXPECT_TRUE(Eventually([&] { return server.disconnects() == before + 1; }));
    EXPECT_LT(NowMs() - start_ms, kNoticedMs) << path;
    ASSERT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  }
}

TEST_P(ServerDisconnect, DetectsAHalfClosedClientThatClosesLater) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/wait-streaming"));
  client.ReadUntil("data: first");
  client.HalfClose();
  client.ReadUntil(": \n\n");  // a probe
  EXPECT_EQ(server.disconnects(), 0);
  int64_t start_ms = NowMs();
  client.Close();
  EXPECT_TRUE(Eventually([&] { return server.disconnects() == 1; }));
  EXPECT_LT(NowMs() - start_ms, kNoticedMs);
}

TEST_P(ServerDisconnect, PipelinedBytesAreNotADisconnect) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/gate"));
  ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
  client.Write(Get("/stream"));
  server.OpenGate();
  const std::string& response = client.ReadUntil("0\r\n\r\n");
  EXPECT_LT(response.find("through the gate"), response.find("data: 1"));
  EXPECT_EQ(testing::Count(response, "HTTP/1.1 200 OK"), 2);
}

TEST_P(ServerDrain, CompletesRunningRequestsAndClosesIdleConnections) {
  TestServer server(GetParam());
  TestClient idle(server);
  idle.Write(Get("/echo"));
  idle.ReadUntil("\r\n\r\n");
  TestClient busy(server);
  busy.Write(Get("/slow"));
  // A request that has reached the host is served even if the server has not read it yet.
  int64_t start_ms = NowMs();
  server.server().Drain(SystemClock::Get().MonotonicUs() + 60'000'000);
  EXPECT_LT(NowMs() - start_ms, 50'000) << "before the deadline";
  EXPECT_TRUE(busy.ReadToEnd().ends_with("\r\n\r\nslow"));
  EXPECT_NE(busy.received().find("connection: close"), std::string::npos);
  idle.ReadToEnd();
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(TestClient(server).connected());
}

TEST_P(ServerDrain, ReturnsAtTheDeadlineAndStopAbortsRequests) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/wait"));
  ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
  int64_t start_ms = NowMs();
  server.server().Drain(SystemClock::Get().MonotonicUs() + 50'000);
  EXPECT_GE(NowMs() - start_ms, 49);
  EXPECT_EQ(server.server().running_requests(), 1);
  server.server().Stop();
  EXPECT_EQ(server.server().running_requests(), 0);
  EXPECT_EQ(server.disconnects(), 1);
}

// Decision 23: a stream that a drain cannot wait for ends with what its handler says, never in the
// middle.
TEST_P(ServerDrain, AtTheDeadlineHandlersEndTheirStreams) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Get("/last-words"));
  client.ReadUntil("data: 1");
  server.server().Drain(SystemClock::Get().MonotonicUs() + 50'000);
  EXPECT_TRUE(client.ReadToEnd().ends_with("data: over\n\n\r\n0\r\n\r\n")) << client.received();
  server.server().Stop();
}

TEST(ServerListen, InvalidAndUsedAddressesAreErrors) {
  TestServer server;
  LoopPool pool(1);
  Server second(pool, {}, [](Exchange&) -> Task<void> { co_return; });
  EXPECT_FALSE(second.Listen("127.0.0.1:" + std::to_string(server.port())).ok());
  EXPECT_FALSE(second.Listen("127.0.0.1").ok());
  EXPECT_FALSE(second.Listen("127.0.0.1:70000").ok());
  EXPECT_FALSE(second.Listen("127.0.0.1:http").ok());
}

}  // namespace
}  // namespace tollgate::http
