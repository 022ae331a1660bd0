// Mutual TLS: only callers with a certificate of the authority and an allowed name are served.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/testing/certificate.h"
#include "common/rpc/call.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::rpc {
namespace {

using auth::v1::AuthService;

using tollgate::testing::TestCertificate;

class Auth : public AuthService::CallbackService {
  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const auth::v1::VerifyKeyRequest*,
                                      auth::v1::VerifyKeyResponse*) override {
    return Answer(context, Result<void>());
  }
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : folder_(::testing::TempDir() + "/tls_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    loops_.Start();
    authority_.Write(folder_ + "/ca.pem", folder_ + "/ca.key");
    other_authority_.Write(folder_ + "/other.pem", folder_ + "/other.key");
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    auto config = Issue("spiffe://tollgate/svc/auth", authority_);
    config.add_allowed_callers("spiffe://tollgate/svc/gateway");
    auto credentials = MakeServerCredentials(config);
    EXPECT_TRUE(credentials.ok());
    builder.AddListeningPort("127.0.0.1:0", *credentials, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~TlsTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  config::v1::TlsConfig Issue(const std::string& uri, const TestCertificate& authority) {
    std::string stem = folder_ + "/" + std::to_string(++issued_);
    TestCertificate(uri, "URI:" + uri, &authority).Write(stem + ".pem", stem + ".key");
    config::v1::TlsConfig config;
    config.set_certificate_file(stem + ".pem");
    config.set_private_key_file(stem + ".key");
    config.set_authority_file(folder_ + "/ca.pem");
    return config;
  }

  // Whether a caller with that configuration is served.
  bool Served(const config::v1::TlsConfig& config) {
    auto source = ChannelSource::Make(config);
    EXPECT_TRUE(source.ok());
    auto stub = AuthService::NewStub((*source)->Channel("127.0.0.1:" + std::to_string(port_)));
    return testing::RunOn(loops_.loop(0), [&](Loop& loop) -> Task<bool> {
      auto result = co_await Unary(loop, stub->async(),
                                   &AuthService::StubInterface::async_interface::VerifyKey,
                                   auth::v1::VerifyKeyRequest(), 3'000);
      co_return result.ok();
    });
  }

  const std::string folder_;
  int issued_ = 0;
  TestCertificate authority_{"authority"};
  TestCertificate other_authority_{"other authority"};
  LoopPool loops_{1};
  Auth service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(TlsTest, AnAllowedNameIsServed) {
  EXPECT_TRUE(Served(Issue("spiffe://tollgate/svc/gateway", authority_)));
}

TEST_F(TlsTest, AnotherNameIsRefused) {
  EXPECT_FALSE(Served(Issue("spiffe://tollgate/svc/dashboard", authority_)));
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  EXPECT_FALSE(Served(Issue("spiffe://tollgate/svc/gateway", other_authority_)));
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsNotTrusted) {
  auto config = Issue("spiffe://tollgate/svc/gateway", authority_);
  config.set_authority_file(folder_ + "/other.pem");
  EXPECT_FALSE(Served(config));
}

TEST_F(TlsTest, PlainTextIsRefused) { EXPECT_FALSE(Served({})); }

TEST_F(TlsTest, TheErrorNamesAMissingFile) {
  auto config = Issue("spiffe://tollgate/svc/gateway", authority_);
  config.set_private_key_file("/nowhere/key.pem");
  auto source = ChannelSource::Make(config);
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.error().find("/nowhere/key.pem"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::rpc
