// Mutual TLS: a server serves only callers with a certificate of the authority and a name in its
// table; a client calls only servers with the name of the expected service.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <optional>

#include "common/base/clock.h"
#include "common/base/testing/certificate.h"
#include "common/observability/metrics.h"
#include "common/rpc/call.h"
#include "common/rpc/certificate_file.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::rpc {
namespace {

using auth::v1::AuthService;

using tollgate::testing::TestCertificate;

class TlsAuth : public AuthService::CallbackService {
  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const auth::v1::VerifyKeyRequest*,
                                      auth::v1::VerifyKeyResponse*) override {
    return Answer(context, Result<void>());
  }
  grpc::ServerUnaryReactor* ReadVersion(grpc::CallbackServerContext* context,
                                        const auth::v1::ReadVersionRequest*,
                                        auth::v1::ReadVersionResponse*) override {
    return Answer(context, Result<void>());
  }
};

constexpr char kGatewayUri[] = "spiffe://tollgate/svc/gateway";
constexpr char kAuthUri[] = "spiffe://tollgate/svc/auth";

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : folder_(::testing::TempDir() + "/tls_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    loops_.Start();
    authority_.Write(folder_ + "/ca.pem", folder_ + "/ca.key");
    other_authority_.Write(folder_ + "/other.pem", folder_ + "/other.key");
  }
  ~TlsTest() override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Default table: VerifyKey is for gateways, WatchKeys for dashboards and operators; ReadVersion
  // has no row.
  void Serve(const config::v1::TlsConfig& config,
             std::vector<MethodCallers> rows = {
                 {"tollgate.auth.v1.AuthService/VerifyKey", kGateway},
                 {"tollgate.auth.v1.AuthService/WatchKeys", kAdmins}}) {
    auto files = TlsFiles::Open(config);
    ASSERT_TRUE(files.ok()) << files.error();
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", files->ForServer({.rows = std::move(rows)}), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Serve() { Serve(Issue(kAuthUri)); }

  // alternative_name: for the certificate; default: the URI.
  config::v1::TlsConfig Issue(const std::string& uri, const TestCertificate* authority = nullptr,
                              const std::string& alternative_name = "",
                              int64_t valid_seconds = 3600) {
    std::string stem = folder_ + "/" + std::to_string(++issued_);
    TestCertificate(uri, alternative_name.empty() ? "URI:" + uri : alternative_name,
                    authority != nullptr ? authority : &authority_, valid_seconds)
        .Write(stem + ".pem", stem + ".key");
    config::v1::TlsConfig config;
    config.set_certificate_file(stem + ".pem");
    config.set_private_key_file(stem + ".key");
    config.set_authority_file(folder_ + "/ca.pem");
    return config;
  }

  using Async = AuthService::StubInterface::async_interface;
  // Returns "" if the call was served.
  template <typename Request, typename Response>
  std::optional<Error> Call(const std::optional<config::v1::TlsConfig>& config,
                            void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                  std::function<void(grpc::Status)>),
                            Request request, const std::string& service) {
    std::optional<TlsFiles> files;
    if (config) {
      auto opened = TlsFiles::Open(*config);
      EXPECT_TRUE(opened.ok()) << opened.error();
      files = *opened;
    }
    ChannelSource source(files ? &*files : nullptr);
    auto stub = AuthService::NewStub(source.Channel("127.0.0.1:" + std::to_string(port_), service));
    return testing::RunOn(loops_.loop(0), [&](Loop& loop) -> Task<std::optional<Error>> {
      auto result = co_await Unary(loop, stub->async(), method, std::move(request), 60'000);
      co_return result.ok() ? std::nullopt : std::optional(result.error());
    });
  }
  // Whether VerifyKey is served.
  bool Served(const std::optional<config::v1::TlsConfig>& config,
              const std::string& service = "auth") {
    return !Call(config, &Async::VerifyKey, auth::v1::VerifyKeyRequest(), service);
  }

  const std::string folder_;
  int issued_ = 0;
  TestCertificate authority_{"authority"};
  TestCertificate other_authority_{"other authority"};
  LoopPool loops_{1};
  TlsAuth service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(TlsTest, AListedCallerIsServed) {
  Serve();
  EXPECT_TRUE(Served(Issue(kGatewayUri)));
}

TEST_F(TlsTest, OtherCallersAreRefusedAndCounted) {
  Serve();
  for (const char* uri : {"spiffe://tollgate/svc/dashboard", "spiffe://tollgate/svc/auth",
                          "spiffe://tollgate/operator/gateway", "spiffe://tollgate/svc/gateway2",
                          "spiffe://other/svc/gateway", "spiffe://tollgate/gateway",
                          "https://tollgate/svc/gateway"}) {
    EXPECT_FALSE(Served(Issue(uri))) << uri;
  }
  const std::string metrics = metrics::Render();
  for (const char* row : {"tollgate_rpc_refused_calls_total{caller=\"dashboard\"} 1",
                          "tollgate_rpc_refused_calls_total{caller=\"auth\"} 1",
                          "tollgate_rpc_refused_calls_total{caller=\"operator\"} 1",
                          "tollgate_rpc_refused_calls_total{caller=\"unknown\"} 4"}) {
    EXPECT_NE(metrics.find(row), std::string::npos) << row << "\n" << metrics;
  }
}

TEST_F(TlsTest, AMethodWithoutARowIsRefused) {
  Serve();
  for (const char* uri : {kGatewayUri, "spiffe://tollgate/operator/ada"}) {
    EXPECT_TRUE(Call(Issue(uri), &Async::ReadVersion, auth::v1::ReadVersionRequest(), "auth"))
        << uri;
  }
}

TEST_F(TlsTest, ARowForOneMethodComesBeforeARowForMany) {
  Serve(Issue(kAuthUri), {{"tollgate.auth.v1.*", kOperator},
                          {"tollgate.auth.v1.AuthService/*", kDashboard},
                          {"tollgate.auth.v1.AuthService/VerifyKey", kGateway}});
  const auto reads = [&](const char* uri) {
    return !Call(Issue(uri), &Async::ReadVersion, auth::v1::ReadVersionRequest(), "auth");
  };
  EXPECT_TRUE(Served(Issue(kGatewayUri)));
  EXPECT_FALSE(Served(Issue("spiffe://tollgate/svc/dashboard")));
  EXPECT_FALSE(reads(kGatewayUri));
  EXPECT_TRUE(reads("spiffe://tollgate/svc/dashboard"));
  EXPECT_FALSE(reads("spiffe://tollgate/operator/ada"));
}

TEST_F(TlsTest, ACertificateWithSeveralNamesIsNoCallers) {
  Serve();
  EXPECT_FALSE(
      Served(Issue(kGatewayUri, nullptr,
                   std::string("URI:") + kGatewayUri + ",URI:spiffe://tollgate/svc/auth")));
}

TEST_F(TlsTest, AllowedCallersRestrictsFurther) {
  auto config = Issue(kAuthUri);
  config.add_allowed_callers("gateway-1.internal");
  Serve(config);
  EXPECT_FALSE(Served(Issue(kGatewayUri)));
  const std::string named = std::string("URI:") + kGatewayUri + ",DNS:gateway-1.internal";
  EXPECT_TRUE(Served(Issue(kGatewayUri, nullptr, named)));
  // The list does not allow anything that the table forbids.
  const std::string other = "URI:spiffe://tollgate/svc/dashboard,DNS:gateway-1.internal";
  EXPECT_FALSE(Served(Issue("spiffe://tollgate/svc/dashboard", nullptr, other)));
}

TEST_F(TlsTest, TheTrustDomainIsConfigured) {
  auto config = Issue("spiffe://example.org/svc/auth");
  config.set_trust_domain("example.org");
  Serve(config);
  auto caller = Issue("spiffe://example.org/svc/gateway");
  caller.set_trust_domain("example.org");
  EXPECT_TRUE(Served(caller));
  auto stranger = Issue(kGatewayUri);
  stranger.set_trust_domain("example.org");
  EXPECT_FALSE(Served(stranger));
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  Serve();
  EXPECT_FALSE(Served(Issue(kGatewayUri, &other_authority_)));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  Serve();
  EXPECT_FALSE(Served(Issue(kGatewayUri, nullptr, "", -60)));
}

TEST_F(TlsTest, AServerWithAnExpiredCertificateIsNotTrusted) {
  Serve(Issue(kAuthUri, nullptr, "", -60));
  EXPECT_FALSE(Served(Issue(kGatewayUri)));
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsNotTrusted) {
  Serve();
  auto config = Issue(kGatewayUri);
  config.set_authority_file(folder_ + "/other.pem");
  EXPECT_FALSE(Served(config));
}

TEST_F(TlsTest, AnotherServiceOfTheSameAuthorityIsNotTakenForTheExpectedOne) {
  Serve();
  EXPECT_FALSE(Served(Issue(kGatewayUri), "billing"));
}

TEST_F(TlsTest, TheErrorNamesTheServiceThatWasExpected) {
  Serve();
  const auto error =
      Call(Issue(kGatewayUri), &Async::VerifyKey, auth::v1::VerifyKeyRequest(), "billing");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->id, ErrorId::kServiceUnavailable);
  EXPECT_NE(error->internal.find("not that of spiffe://tollgate/svc/billing"), std::string::npos)
      << error->internal;
}

TEST_F(TlsTest, AServerOfAnotherTrustDomainIsNotTrusted) {
  auto server = Issue("spiffe://other/svc/auth");
  Serve(server);
  EXPECT_FALSE(Served(Issue(kGatewayUri)));
}

TEST_F(TlsTest, AProcessWithSeveralServicesHasANameForEach) {
  Serve(Issue("allinone", nullptr,
              "URI:spiffe://tollgate/svc/billing,URI:spiffe://tollgate/svc/auth"));
  EXPECT_TRUE(Served(Issue(kGatewayUri), "auth"));
  EXPECT_TRUE(Served(Issue(kGatewayUri), "billing"));
  EXPECT_FALSE(Served(Issue(kGatewayUri), "catalog"));
}

TEST_F(TlsTest, PlainTextIsRefused) {
  Serve();
  EXPECT_FALSE(Served(std::nullopt));
}

// Connects with the caller's own certificate. Returns the negotiated version, or "".
std::string VersionWith(int port, const config::v1::TlsConfig& config, int most) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                            &SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), most);
  SSL_CTX_use_certificate_file(context.get(), config.certificate_file().c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(context.get(), config.private_key_file().c_str(), SSL_FILETYPE_PEM);
  std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), &SSL_free);
  const std::string alpn("\x02h2");
  SSL_set_alpn_protos(tls.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                      static_cast<unsigned>(alpn.size()));
  BIO* connection = BIO_new_connect(("127.0.0.1:" + std::to_string(port)).c_str());
  EXPECT_EQ(BIO_do_connect(connection), 1);
  SSL_set_bio(tls.get(), connection, connection);
  return SSL_connect(tls.get()) == 1 ? SSL_get_version(tls.get()) : "";
}

TEST_F(TlsTest, NothingBelowTls13IsSpoken) {
  Serve();
  EXPECT_EQ(VersionWith(port_, Issue(kGatewayUri), TLS1_3_VERSION), "TLSv1.3");
  EXPECT_EQ(VersionWith(port_, Issue(kGatewayUri), TLS1_2_VERSION), "");
}

TEST_F(TlsTest, TheErrorNamesAMissingFile) {
  auto config = Issue(kGatewayUri);
  config.set_private_key_file("/nowhere/key.pem");
  auto files = TlsFiles::Open(config);
  ASSERT_FALSE(files.ok());
  EXPECT_NE(files.error().find("/nowhere/key.pem"), std::string::npos);
}

TEST_F(TlsTest, ATrustDomainThatNoNameCanHaveIsAnErrorAtStart) {
  auto config = Issue(kGatewayUri);
  config.set_trust_domain("spiffe://tollgate");
  auto files = TlsFiles::Open(config);
  ASSERT_FALSE(files.ok());
  EXPECT_NE(files.error().find("trust_domain"), std::string::npos) << files.error();
}

TEST_F(TlsTest, TheNamesOfACertificateAreRead) {
  EXPECT_EQ(CertificateUris(Issue(kGatewayUri).certificate_file()),
            std::vector<std::string>{kGatewayUri});
  const std::string two =
      "URI:spiffe://tollgate/svc/auth,DNS:auth,URI:spiffe://tollgate/svc/billing";
  EXPECT_EQ(
      CertificateUris(Issue("two", nullptr, two).certificate_file()),
      (std::vector<std::string>{"spiffe://tollgate/svc/auth", "spiffe://tollgate/svc/billing"}));
  EXPECT_TRUE(CertificateUris(Issue("none", nullptr, "DNS:auth").certificate_file()).empty());
  EXPECT_TRUE(CertificateUris(folder_ + "/nothing").empty());
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsAnErrorAtStart) {
  auto config = Issue(kGatewayUri);
  config.set_private_key_file(Issue(kAuthUri).private_key_file());
  auto files = TlsFiles::Open(config);
  ASSERT_FALSE(files.ok());
  EXPECT_NE(files.error().find("does not belong to"), std::string::npos) << files.error();
}

TEST_F(TlsTest, TheExpiryOfTheCertificateIsAMetric) {
  auto config = Issue(kGatewayUri);
  const auto expiry = CertificateExpiry(config.certificate_file());
  ASSERT_TRUE(expiry.ok());
  auto files = TlsFiles::Open(config);
  ASSERT_TRUE(files.ok());
  const std::string metrics = metrics::Render();
  EXPECT_NE(metrics.find("\ntollgate_rpc_certificate_expiry_seconds "), std::string::npos);
  const int64_t now_s = SystemClock::Get().WallUs() / 1'000'000;
  EXPECT_NEAR(static_cast<double>(*expiry - now_s), 3600, 60);
}

}  // namespace
}  // namespace tollgate::rpc
