// TLS versions and handshakes, renewed certificates, and trust of clients. The server tests check
// that everything else works as in plain text.
#include "common/http/tls.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <fstream>
#include <thread>

#include "common/base/clock.h"
#include "common/http/client.h"
#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::http {
namespace {

using testing::Eventually;
using testing::RawClient;
using testing::TestPki;
using testing::TestServer;
using testing::Transport;
using tollgate::testing::RunTask;
using tollgate::testing::TestCertificate;

// A plain OpenSSL client, for details that RawClient hides.
class OpenSslClient {
 public:
  explicit OpenSslClient(uint16_t port)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_security_level(context_, 0);  // allows old versions
    SSL_CTX_set_cipher_list(context_, "ALL:@SECLEVEL=0");
  }
  ~OpenSslClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  SSL_CTX* context() { return context_; }
  SSL* ssl() { return ssl_; }
  // server_name: the host that the client names, or null.
  bool Connect(const char* server_name = nullptr, SSL_SESSION* resumed = nullptr) {
    ssl_ = SSL_new(context_);
    if (resumed != nullptr) SSL_set_session(ssl_, resumed);
    if (server_name != nullptr) SSL_set_tlsext_host_name(ssl_, server_name);
    SSL_set_fd(ssl_, socket_.fd());
    return SSL_connect(ssl_) == 1;
  }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

 private:
  RawClient socket_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
};

std::string TlsGet(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n";
}

int64_t TlsNowMs() { return SystemClock::Get().MonotonicUs() / 1000; }

// Serial number of the certificate that a new connection receives.
long SerialOf(uint16_t port, const char* server_name = nullptr) {
  OpenSslClient client(port);
  if (!client.Connect(server_name)) return -1;
  X509* shown = SSL_get1_peer_certificate(client.ssl());
  const long serial = ASN1_INTEGER_get(X509_get0_serialNumber(shown));
  X509_free(shown);
  return serial;
}

TEST(TlsServer, SupportsOnlyTls12And13H40) {
  TestServer server(Transport::kTls);
  for (int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION}) {
    OpenSslClient client(server.port());
    SSL_CTX_set_min_proto_version(client.context(), version);
    SSL_CTX_set_max_proto_version(client.context(), version);
    EXPECT_EQ(client.Connect(), version >= TLS1_2_VERSION) << version;
  }
}

TEST(TlsServer, NegotiatesOnlyHttp1) {
  TestServer server(Transport::kTls);
  const auto connect = [&](const std::string& offered, std::string* chosen) {
    OpenSslClient client(server.port());
    SSL_CTX_set_alpn_protos(client.context(),
                            reinterpret_cast<const unsigned char*>(offered.data()),
                            static_cast<unsigned>(offered.size()));
    const bool connected = client.Connect();
    if (connected) *chosen = client.protocol();
    return connected;
  };
  std::string chosen;
  EXPECT_TRUE(connect("\x02h2\x08http/1.1", &chosen));
  EXPECT_EQ(chosen, "http/1.1");
  EXPECT_TRUE(connect("\x08http/1.0", &chosen));
  EXPECT_EQ(chosen, "http/1.0");
  EXPECT_TRUE(connect("", &chosen));
  EXPECT_EQ(chosen, "");
  EXPECT_FALSE(connect("\x02h2", &chosen));
}

TEST(TlsServer, RespondsToPlainHttpWithAnErrorAndCloses) {
  TestServer server(Transport::kTls);
  RawClient client(server.port());
  client.Write(TlsGet("/echo"));
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 ")) << client.received();
  EXPECT_NE(client.received().find("https"), std::string::npos);
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(server.handled(), 0);
}

TEST(TlsServer, ClosesOnMalformedHandshakes) {
  TestServer server(Transport::kTls);
  for (const std::string& bytes :
       {std::string(1, '\0'), std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'x'),
        std::string("\x80\x2e\x01\x03\x01", 5) + std::string(100, 'y'), std::string("\r\n\r\n\r\n"),
        std::string("\x15\x03\x01\x00\x02\x02\x28", 7)}) {
    RawClient client(server.port());
    client.Write(bytes);
    client.HalfClose();
    client.ReadToEnd();
    EXPECT_TRUE(client.closed());
  }
  EXPECT_TRUE(Eventually([&] { return server.server().connections() == 0; }));
  testing::TestClient good(server);
  good.Write(TlsGet("/echo"));
  EXPECT_TRUE(good.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(TlsServer, StalledHandshakesTimeOutAndDoNotBlockOthersH40) {
  ServerOptions options;
  const std::string start("\x16\x03\x01\x02\x00\x01", 6);  // start of a ClientHello
  {
    options.handshake_timeout_ms = 600'000;
    TestServer server(Transport::kTls, options, 1);
    RawClient silent(server.port());
    RawClient slow(server.port());
    slow.Write(start);
    testing::TestClient good(server);
    good.Write(TlsGet("/echo"));
    EXPECT_TRUE(good.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
  }
  options.handshake_timeout_ms = 4'000;
  TestServer server(Transport::kTls, options, 1);
  testing::TestClient good(server);
  good.Write(TlsGet("/echo"));
  EXPECT_TRUE(good.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
  RawClient silent(server.port());
  RawClient slow(server.port());
  slow.Write(start);
  // Single bytes do not extend the timeout.
  for (const int64_t end_ms = TlsNowMs() + 60'000; !slow.closed() && TlsNowMs() < end_ms;) {
    slow.Write(std::string(1, '\0'));
    slow.ReadUntil("never", 20);
  }
  EXPECT_TRUE(slow.closed());
  silent.ReadToEnd();
  EXPECT_TRUE(silent.closed());
  // An established connection may be idle for longer.
  good.ClearReceived();
  good.Write(TlsGet("/echo"));
  EXPECT_TRUE(good.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(TlsServer, RefusesRenegotiationH40) {
  TestServer server(Transport::kTls);
  OpenSslClient client(server.port());
  SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  ASSERT_TRUE(client.Connect());
  SSL_renegotiate(client.ssl());
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
  EXPECT_TRUE(Eventually([&] { return server.server().connections() <= 1; }));
}

TEST(TlsServer, SendsCloseNotify) {
  TestServer server(Transport::kTls);
  testing::TestClient client(server);
  client.Write(TlsGet("/echo", "Connection: close\r\n"));
  client.ReadToEnd();
  EXPECT_TRUE(client.closed_by_tls());
}

TEST(TlsServer, SendsAnEventAsOneRecord) {
  TestServer server(Transport::kTls);
  OpenSslClient client(server.port());
  ASSERT_TRUE(client.Connect());
  const std::string request = TlsGet("/stream");
  SSL_write(client.ssl(), request.data(), static_cast<int>(request.size()));
  std::vector<std::string> records;
  char buffer[16 * 1024];
  while (records.empty() || !records.back().ends_with("0\r\n\r\n")) {
    const int got = SSL_read(client.ssl(), buffer, sizeof buffer);
    ASSERT_GT(got, 0);
    records.emplace_back(buffer, static_cast<size_t>(got));
  }
  ASSERT_EQ(records.size(), 3u);
  EXPECT_TRUE(records[0].ends_with("\r\n\r\n9\r\ndata: 1\n\n\r\n")) << records[0];
  EXPECT_EQ(records[1], "9\r\ndata: 2\n\n\r\n");
}

TEST(TlsServer, UsesRenewedFilesOnceCertificateAndKeyMatch) {
  TestPki& pki = TestPki::Get();
  pki.Issue("renewed", "DNS:localhost");
  ServerOptions options;
  options.tls = TlsServerContext::Load({{pki.certificate("renewed"), pki.key("renewed")}}).value();
  TestServer server(Transport::kTls, options);
  testing::TestClient before(server);
  const long first = SerialOf(server.port());
  ASSERT_GT(first, 0);

  const TestCertificate next("next", "DNS:localhost", &pki.authority);
  next.WriteCertificate(pki.certificate("renewed"));  // the key does not match yet
  const int64_t half_ms = TlsNowMs();
  while (TlsNowMs() - half_ms < 1'200) ASSERT_EQ(SerialOf(server.port()), first);
  next.Write(pki.certificate("renewed"), pki.key("renewed"));
  EXPECT_TRUE(Eventually([&] { return SerialOf(server.port()) == next.serial(); }));

  before.Write(TlsGet("/echo"));
  EXPECT_TRUE(before.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(TlsServer, TheKeyForTicketsLivesOneDay) {
  TestPki& pki = TestPki::Get();
  ManualClock clock;
  ServerOptions options;
  options.tls = TlsServerContext::Load({{pki.certificate(), pki.key()}}, clock).value();
  TestServer server(Transport::kTls, options);
  const auto tls12 = [](OpenSslClient& client) {  // its ticket is part of the handshake
    SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION);
  };
  OpenSslClient first(server.port());
  tls12(first);
  ASSERT_TRUE(first.Connect());
  SSL_SESSION* session = SSL_get1_session(first.ssl());
  const auto is_resumed = [&] {
    OpenSslClient client(server.port());
    tls12(client);
    // A session whose connection ends without close_notify is not used again.
    SSL_SESSION* const copy = SSL_SESSION_dup(session);
    EXPECT_TRUE(client.Connect(nullptr, copy));
    SSL_SESSION_free(copy);
    return SSL_session_reused(client.ssl()) == 1;
  };
  EXPECT_TRUE(is_resumed());
  clock.Advance(23 * int64_t{3600} * 1'000'000);
  EXPECT_TRUE(is_resumed());
  clock.Advance(2 * int64_t{3600} * 1'000'000);
  EXPECT_FALSE(is_resumed());
  SSL_SESSION_free(session);
}

TEST(TlsServer, SelectsTheCertificateByTheNamedHost) {
  TestPki& pki = TestPki::Get();
  pki.Issue("first", "DNS:first.example");
  pki.Issue("second", "DNS:second.example,DNS:*.second.example");
  ServerOptions options;
  options.tls = TlsServerContext::Load({{pki.certificate("first"), pki.key("first")},
                                        {pki.certificate("second"), pki.key("second")}})
                    .value();
  TestServer server(Transport::kTls, options);
  const long first = SerialOf(server.port(), "first.example");
  const long second = SerialOf(server.port(), "second.example");
  ASSERT_GT(first, 0);
  ASSERT_GT(second, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(SerialOf(server.port(), "api.second.example"), second);
  EXPECT_EQ(SerialOf(server.port(), "unknown.example"), first);
  EXPECT_EQ(SerialOf(server.port()), first);

  const TestCertificate next("next", "DNS:second.example", &pki.authority);
  next.Write(pki.certificate("second"), pki.key("second"));
  EXPECT_TRUE(
      Eventually([&] { return SerialOf(server.port(), "second.example") == next.serial(); }));
  EXPECT_EQ(SerialOf(server.port(), "first.example"), first);
}

TEST(TlsServer, ErrorsNameTheInvalidFile) {
  TestPki& pki = TestPki::Get();
  const auto problem = [](const std::string& certificate, const std::string& key) {
    auto loaded = TlsServerContext::Load({{certificate, key}});
    return loaded.ok() ? std::string() : loaded.error().internal;
  };
  pki.Issue("other", "DNS:localhost");
  EXPECT_EQ(problem(pki.certificate(), pki.key()), "");
  EXPECT_NE(
      problem("/nowhere/c.pem", pki.key()).find("certificate_file: cannot read /nowhere/c.pem"),
      std::string::npos);
  EXPECT_NE(
      problem(pki.certificate(), "/nowhere/k.pem").find("private_key_file: cannot read /nowh"),
      std::string::npos);
  EXPECT_NE(problem(pki.certificate(), pki.key("other")).find("does not belong to"),
            std::string::npos);
  EXPECT_NE(problem(pki.key(), pki.key()).find("certificate_file: " + pki.key()),
            std::string::npos);
  EXPECT_NE(problem(pki.certificate(), "").find("both"), std::string::npos);
}

ClientRequest To(const std::string& host, uint16_t port, std::string target,
                 std::string body = "") {
  ClientRequest request;
  request.method = body.empty() ? "GET" : "POST";
  request.origin = {host, port, true};
  request.target = std::move(target);
  request.body = std::move(body);
  return request;
}

ClientOptions Trusting(const std::string& authority_file) {
  ClientOptions options;
  options.tls = TlsClientContext::Make(authority_file).value();
  return options;
}

ClientResult<WholeResponse> Fetch(const ClientOptions& options, ClientRequest request) {
  return RunTask([&](Loop& loop) -> Task<ClientResult<WholeResponse>> {
    Client client(loop, options);
    co_return co_await client.Fetch(std::move(request));
  });
}

TEST(TlsClient, TrustsItsAuthoritiesForNamesAndAddresses) {
  TestServer server(Transport::kTls);
  const ClientOptions options = Trusting(TestPki::Get().authority_file());
  std::string body;
  while (body.size() < (2 << 20)) body += std::to_string(body.size());
  for (const char* host : {"localhost", "127.0.0.1"}) {
    auto response = Fetch(options, To(host, server.port(), "/echo", body));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->body == body);
  }
}

TEST(TlsClient, ReusesConnections) {
  TestServer server(Transport::kTls);
  const ClientOptions options = Trusting(TestPki::Get().authority_file());
  const size_t idle = RunTask([&](Loop& loop) -> Task<size_t> {
    Client client(loop, options);
    for (int i = 0; i < 20; ++i) {
      auto response =
          co_await client.Fetch(To("localhost", server.port(), i % 2 == 0 ? "/stream" : "/echo"));
      EXPECT_TRUE(response.ok());
      EXPECT_EQ(server.server().connections(), 1);
    }
    co_return client.idle_connections();
  });
  EXPECT_EQ(idle, 1u);
}

TEST(TlsClient, RejectsOtherAuthoritiesAndOtherNames) {
  TestPki& pki = TestPki::Get();
  TestServer server(Transport::kTls);
  pki.Issue("elsewhere", "DNS:elsewhere.example");
  ServerOptions elsewhere_options;
  elsewhere_options.tls =
      TlsServerContext::Load({{pki.certificate("elsewhere"), pki.key("elsewhere")}}).value();
  TestServer elsewhere(Transport::kTls, elsewhere_options);

  auto unknown = Fetch(Trusting(""), To("localhost", server.port(), "/echo"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ClientError::Kind::kConnect);
  EXPECT_NE(unknown.error().message.find("certificate"), std::string::npos);

  for (const char* host : {"localhost", "127.0.0.1"}) {
    auto misnamed = Fetch(Trusting(pki.authority_file()), To(host, elsewhere.port(), "/echo"));
    ASSERT_FALSE(misnamed.ok());
    EXPECT_EQ(misnamed.error().kind, ClientError::Kind::kConnect);
    EXPECT_NE(misnamed.error().message.find("mismatch"), std::string::npos)
        << misnamed.error().message;
  }
  auto not_set_up = Fetch({}, To("localhost", server.port(), "/echo"));
  ASSERT_FALSE(not_set_up.ok());
  EXPECT_EQ(not_set_up.error().kind, ClientError::Kind::kConnect);
  EXPECT_EQ(server.handled() + elsewhere.handled(), 0);
}

TEST(TlsClient, AServerWithoutTlsIsAConnectError) {
  TestServer plain;
  auto response =
      Fetch(Trusting(TestPki::Get().authority_file()), To("localhost", plain.port(), "/echo"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().kind, ClientError::Kind::kConnect);
}

// A server that handles one connection with a function of the test.
class SingleConnectionServer {
 public:
  explicit SingleConnectionServer(std::function<void(int)> handle) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_, 4) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, handle = std::move(handle)] {
      const int connection = ::accept(fd_, nullptr, nullptr);
      if (connection < 0) return;
      handle(connection);
      ::close(connection);
    });
  }
  ~SingleConnectionServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  uint16_t port() const { return port_; }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(TlsClient, SendsTheServerNameAndLimitsTheHandshakeByTheConnectTimeout) {
  std::string hello;
  {
    SingleConnectionServer server([&](int connection) {
      char buffer[4096];
      ssize_t got;
      while ((got = ::recv(connection, buffer, sizeof buffer, 0)) > 0) {
        hello.append(buffer, static_cast<size_t>(got));
      }
    });
    ClientOptions options = Trusting("");
    options.connect_timeout_ms = 2'000;
    const int64_t start_ms = TlsNowMs();
    auto response = Fetch(options, To("localhost", server.port(), "/echo"));
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().kind, ClientError::Kind::kConnect);
    EXPECT_GE(TlsNowMs() - start_ms, 2'000);
    EXPECT_LT(TlsNowMs() - start_ms, 60'000);
  }
  EXPECT_NE(hello.find("localhost"), std::string::npos);
}

TEST(TlsClient, AResponseWithoutCloseNotifyIsIncomplete) {
  for (bool close_notify : {true, false}) {
    SingleConnectionServer server([&](int connection) {
      SSL_CTX* context = SSL_CTX_new(TLS_server_method());
      SSL_CTX_use_certificate_chain_file(context, TestPki::Get().certificate().c_str());
      SSL_CTX_use_PrivateKey_file(context, TestPki::Get().key().c_str(), SSL_FILETYPE_PEM);
      SSL* ssl = SSL_new(context);
      SSL_set_fd(ssl, connection);
      EXPECT_EQ(SSL_accept(ssl), 1);
      char buffer[4096];
      EXPECT_GT(SSL_read(ssl, buffer, sizeof buffer), 0);
      const std::string response = "HTTP/1.1 200 OK\r\n\r\nto the end";
      SSL_write(ssl, response.data(), static_cast<int>(response.size()));
      if (close_notify) SSL_shutdown(ssl);
      ::shutdown(connection, SHUT_WR);
      while (::recv(connection, buffer, sizeof buffer, 0) > 0) continue;
      SSL_free(ssl);
      SSL_CTX_free(context);
    });
    auto response =
        Fetch(Trusting(TestPki::Get().authority_file()), To("localhost", server.port(), "/"));
    EXPECT_EQ(response.ok(), close_notify);
    if (response.ok()) EXPECT_EQ(response->body, "to the end");
  }
}

TEST(TlsClient, TheErrorNamesAMissingAuthorityFile) {
  auto made = TlsClientContext::Make("/nowhere/ca.pem");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().internal.find("/nowhere/ca.pem"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::http
