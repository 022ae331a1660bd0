// The memory budget of the server: what it counts, and what is refused when memory is short.
#include <gtest/gtest.h>

#include <string>

#include "common/http/server.h"
#include "common/http/server_metrics.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::TestClient;
using testing::TestServer;

constexpr int64_t kMiB = 1 << 20;

class ServerMemory : public testing::TransportTest {
 protected:
  ServerOptions Options() {
    ServerOptions options;
    options.memory = budget_;
    options.metrics = metrics_;
    return options;
  }
  static std::string Post(const std::string& path, const std::string& fields,
                          const std::string& body = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n" + body;
  }
  static std::string Length(int64_t bytes) {
    return "Content-Length: " + std::to_string(bytes) + "\r\n";
  }
  static bool Is(const std::string& response, int status) {
    return response.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
  }
  bool NothingIsHeld() {
    return Eventually([this] { return budget_->used() == 0; });
  }

  const std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(100 * kMiB);
  const std::shared_ptr<ServerMetrics> metrics_ = std::make_shared<ServerMetrics>();
};
INSTANTIATE_TEST_SUITE_P(Transports, ServerMemory, testing::kTransports, testing::TransportName);

TEST_P(ServerMemory, From85PercentOnLargeBodiesAreRefused) {
  TestServer server(GetParam(), Options());
  budget_->Take(86 * kMiB);
  const double before = metrics_->shed(ShedStep::kLargeBody).Value();
  TestClient declared(server);
  declared.Write(Post("/echo", Length(64 * 1024)));
  EXPECT_TRUE(Is(declared.ReadToEnd(), 503)) << declared.received();
  TestClient chunked(server);
  chunked.Write(Post("/echo", "Transfer-Encoding: chunked\r\n", "20000\r\n"));
  const std::string piece(8 * 1024, 'x');
  for (int i = 0; i < 9; ++i) chunked.Write(piece);
  EXPECT_TRUE(Is(chunked.ReadToEnd(), 503)) << chunked.received();
  EXPECT_EQ(metrics_->shed(ShedStep::kLargeBody).Value() - before, 2);
  TestClient small(server);
  small.Write(Post("/echo", Length(2), "ab"));
  EXPECT_TRUE(Is(small.ReadUntil("\r\n\r\nab"), 200));
  EXPECT_TRUE(Eventually([&] { return budget_->used() == 86 * kMiB; }));
}

TEST_P(ServerMemory, From90PercentOnRequestsAreRefused) {
  TestServer server(GetParam(), Options());
  budget_->Take(91 * kMiB);
  const double before = metrics_->shed(ShedStep::kRequest).Value();
  TestClient client(server);
  client.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(Is(client.ReadToEnd(), 503));
  EXPECT_EQ(metrics_->shed(ShedStep::kRequest).Value() - before, 1);
  EXPECT_EQ(server.handled(), 0);
  budget_->Release(91 * kMiB);
  TestClient later(server);
  later.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(Is(later.ReadUntil("\r\n\r\n"), 200));
}

TEST_P(ServerMemory, From95PercentOnIdleConnectionsAreClosed) {
  TestServer server(GetParam(), Options());
  const double before = metrics_->shed(ShedStep::kIdle).Value();
  TestClient idle(server);
  idle.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(Is(idle.ReadUntil("\r\n\r\n"), 200));
  TestClient busy(server);
  busy.Write("GET /gate HTTP/1.1\r\nHost: t\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return server.handled() == 2; }));
  budget_->Take(96 * kMiB);
  TestClient refused(server);
  refused.Write("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(Is(refused.ReadToEnd(), 503));
  idle.ReadToEnd();
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(Eventually([&] { return metrics_->shed(ShedStep::kIdle).Value() - before == 1; }));
  server.OpenGate();
  EXPECT_TRUE(busy.ReadUntil("the gate").ends_with("the gate")) << "running requests go on";
}

TEST_P(ServerMemory, ABodyIsCountedAsItArrivesAndUntilItsHandlerReturns) {
  TestServer server(GetParam(), Options());
  {
    TestClient client(server);
    client.Write(Post("/wait", Length(16 * kMiB)));
    client.Write(std::string(5'000, 'x'));
    ASSERT_TRUE(Eventually([&] { return budget_->used() > 0; }));
    EXPECT_LT(budget_->used(), kMiB) << "bytes that have not arrived are not counted";
    client.Write(std::string(16 * kMiB - 5'000, 'x'));
    ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
    EXPECT_EQ(budget_->used(), 3 * 16 * kMiB) << "with the copies of parser and engine";
  }
  EXPECT_TRUE(NothingIsHeld());
  {
    TestClient client(server);
    client.Write(Post("/wait-streaming", "Transfer-Encoding: chunked\r\n",
                      "100000\r\n" + std::string(kMiB, 'x') + "\r\n0\r\n\r\n"));
    EXPECT_TRUE(Is(client.ReadUntil("data: first"), 200));
    EXPECT_GE(budget_->used(), kMiB) << "one copy from the start of the response on";
    EXPECT_LE(budget_->used(), kMiB + 64 * 1024) << "chunk framing is counted, in steps of 64 KiB";
  }
  EXPECT_TRUE(NothingIsHeld());
}

TEST_P(ServerMemory, ABodyThatDoesNotFitIsRefusedInItsMiddle) {
  TestServer server(GetParam(), Options());
  budget_->Take(84 * kMiB);
  const double before = metrics_->shed(ShedStep::kBody).Value();
  TestClient client(server);
  EXPECT_TRUE(client.Write(Post("/echo", Length(16 * kMiB), std::string(16 * kMiB, 'x'))));
  EXPECT_TRUE(Is(client.ReadToEnd(), 503)) << client.received();
  EXPECT_EQ(metrics_->shed(ShedStep::kBody).Value() - before, 1);
  EXPECT_EQ(budget_->used(), 84 * kMiB);
  EXPECT_EQ(server.handled(), 0);
}

TEST_P(ServerMemory, AnAbandonedBodyIsReturned) {
  TestServer server(GetParam(), Options());
  {
    TestClient client(server);
    client.Write(Post("/echo", Length(kMiB), std::string(kMiB / 2, 'x')));
    ASSERT_TRUE(Eventually([&] { return budget_->used() >= 3 * kMiB / 2; }));
    client.CloseWithReset();
  }
  EXPECT_TRUE(NothingIsHeld());
}

TEST_P(ServerMemory, SmallBodiesAreNotCounted) {
  TestServer server(GetParam(), Options());
  TestClient client(server);
  client.Write(Post("/wait", Length(4096), std::string(4096, 'x')));
  ASSERT_TRUE(Eventually([&] { return server.server().running_requests() == 1; }));
  EXPECT_EQ(budget_->used(), 0);
}

TEST_P(ServerMemory, TheOutputForASlowReaderIsCounted) {
  TestServer server(GetParam(), Options());
  {
    TestClient client(server, 4096);
    client.Write("GET /big HTTP/1.1\r\nHost: t\r\n\r\n");
    ASSERT_TRUE(Eventually([&] { return budget_->used() > kMiB; }));
    EXPECT_LT(budget_->used(), 20 * kMiB);
  }
  EXPECT_TRUE(NothingIsHeld());
}

TEST_P(ServerMemory, ClientsThatWereTooSlowAreCounted) {
  ServerOptions of_heads = Options();
  of_heads.head_timeout_ms = 50;
  TestServer server_of_heads(GetParam(), of_heads);
  ServerOptions of_readers = Options();
  of_readers.write_stall_ms = 100;
  TestServer server_of_readers(GetParam(), of_readers);
  const double heads = metrics_->slow(SlowPart::kHead).Value();
  const double readers = metrics_->slow(SlowPart::kReader).Value();
  TestClient head(server_of_heads);
  head.Write("GET /ec");
  TestClient reader(server_of_readers, 4096);
  reader.Write("GET /endless HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return metrics_->slow(SlowPart::kHead).Value() - heads == 1; }));
  EXPECT_TRUE(Eventually([&] { return metrics_->slow(SlowPart::kReader).Value() - readers == 1; }));
  EXPECT_TRUE(NothingIsHeld());
}

TEST_P(ServerMemory, ABodyMayNotTakeForever) {
  ServerOptions options = Options();
  options.body_window_ms = 200;
  options.min_body_bytes_per_second = 1;
  options.max_body_ms = 900;
  TestServer server(GetParam(), options);
  const double before = metrics_->slow(SlowPart::kBody).Value();
  std::string response;
  int tries = 0;
  // On a busy machine the client may be too slow for a window, so it is repeated.
  while (!response.ends_with("took too long\n") && tries < 10) {
    ++tries;
    TestClient client(server);
    client.Write(Post("/echo", Length(kMiB)));
    // Fast enough for every window.
    while (!client.closed() && client.Write("some")) client.ReadUntil("", 10);
    response = client.received();
    EXPECT_TRUE(Is(response, 400)) << response;
  }
  EXPECT_TRUE(response.ends_with("took too long\n")) << response;
  EXPECT_EQ(metrics_->slow(SlowPart::kBody).Value() - before, tries);
  EXPECT_TRUE(NothingIsHeld());
}

}  // namespace
}  // namespace tollgate::http
