// Renewed certificates are used without a restart, and running connections lose no call.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "common/base/testing/certificate.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::rpc {
namespace {

using auth::v1::AuthService;
using tollgate::testing::TestCertificate;

constexpr auto kBound = std::chrono::seconds(60);

class Auth : public AuthService::CallbackService {
  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const auth::v1::VerifyKeyRequest*,
                                      auth::v1::VerifyKeyResponse*) override {
    return Answer(context, Result<void>());
  }
};

class RotationTest : public ::testing::Test {
 protected:
  explicit RotationTest(int max_connection_age_ms = kMaxConnectionAgeMs)
      : folder_(::testing::TempDir() + "/rotation_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    old_authority_.Write(folder_ + "/ca.pem", folder_ + "/ca.key");
    Renew("auth", old_authority_, 3600);
    Renew("gateway", old_authority_, 3600);
    auto files = TlsFiles::Open(Config("auth"));
    EXPECT_TRUE(files.ok());
    grpc::ServerBuilder builder;
    ConfigureServer(builder, max_connection_age_ms);
    builder.AddListeningPort(
        "127.0.0.1:0",
        files->ForServer({.rows = {{"tollgate.auth.v1.AuthService/VerifyKey", kGateway}}}), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    auto gateway = TlsFiles::Open(Config("gateway"));
    EXPECT_TRUE(gateway.ok());
    gateway_.emplace(*gateway);
    source_ = std::make_unique<ChannelSource>(&*gateway_);
  }
  ~RotationTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(folder_);
  }

  config::v1::TlsConfig Config(const std::string& service) {
    config::v1::TlsConfig config;
    config.set_certificate_file(folder_ + "/" + service + ".pem");
    config.set_private_key_file(folder_ + "/" + service + ".key");
    config.set_authority_file(folder_ + "/ca.pem");
    return config;
  }
  // Like a renewal, writes both files under other names and renames them.
  void Renew(const std::string& service, const TestCertificate& authority, int64_t valid_seconds) {
    const std::string uri = "spiffe://tollgate/svc/" + service;
    const std::string stem = folder_ + "/" + service;
    TestCertificate(service, "URI:" + uri, &authority, valid_seconds)
        .Write(stem + ".pem.new", stem + ".key.new");
    std::filesystem::rename(stem + ".key.new", stem + ".key");
    std::filesystem::rename(stem + ".pem.new", stem + ".pem");
  }
  std::unique_ptr<AuthService::Stub> NewConnection() {
    return AuthService::NewStub(source_->Channel("127.0.0.1:" + std::to_string(port_), "auth"));
  }
  static grpc::Status Call(AuthService::Stub& stub) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kBound);
    auth::v1::VerifyKeyResponse response;
    return stub.VerifyKey(&context, {}, &response);
  }
  // Waits until a new connection is served (or refused). Returns false on a timeout.
  bool Becomes(bool served) {
    const auto until = std::chrono::steady_clock::now() + kBound;
    while (std::chrono::steady_clock::now() < until) {
      if (Call(*NewConnection()).ok() == served) return true;
    }
    return false;
  }

  const std::string folder_;
  TestCertificate old_authority_{"authority"};
  Auth service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::optional<TlsFiles> gateway_;
  std::unique_ptr<ChannelSource> source_;
};

class ShortConnectionsTest : public RotationTest {
 protected:
  ShortConnectionsTest() : RotationTest(2'000) {}
};

// A connection opened with a valid certificate ends some time after that certificate expires.
TEST_F(ShortConnectionsTest, AnOpenConnectionDoesNotOutliveItsCertificateForLong) {
  auto running = NewConnection();
  ASSERT_TRUE(Call(*running).ok());
  Renew("gateway", old_authority_, -60);
  auto until = std::chrono::steady_clock::now() + kBound;
  bool served = true;
  while (served && std::chrono::steady_clock::now() < until) served = Call(*running).ok();
  EXPECT_FALSE(served);
  Renew("gateway", old_authority_, 3600);
  until = std::chrono::steady_clock::now() + kBound;
  while (!served && std::chrono::steady_clock::now() < until) served = Call(*running).ok();
  EXPECT_TRUE(served) << "the channel connects again with the new certificate";
}

TEST_F(RotationTest, CallsGoOnWhileCertificatesAreRenewedAndAnExpiredOneIsRefused) {
  auto running = NewConnection();
  ASSERT_TRUE(Call(*running).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, failed{0};
  std::thread load([&] {
    while (!stop) {
      if (!Call(*running).ok()) ++failed;
      ++calls;
    }
  });
  // The gateway reads the files again, and the server refuses the certificate, which has expired.
  Renew("gateway", old_authority_, -60);
  EXPECT_TRUE(Becomes(false));
  Renew("gateway", old_authority_, 3600);
  EXPECT_TRUE(Becomes(true));
  // Repeats it at the server's end.
  Renew("auth", old_authority_, -60);
  EXPECT_TRUE(Becomes(false));
  Renew("auth", old_authority_, 3600);
  EXPECT_TRUE(Becomes(true));
  stop = true;
  load.join();
  EXPECT_GT(calls, 0);
  EXPECT_EQ(failed, 0);  // on the existing connection
}

TEST_F(RotationTest, TheAuthorityIsReplacedByWayOfAFileWithBoth) {
  ASSERT_TRUE(Call(*NewConnection()).ok());
  const TestCertificate next("next authority");
  next.Write(folder_ + "/next.pem", folder_ + "/next.key");
  // While only the old authority is trusted, a certificate of the next one is refused.
  Renew("gateway", next, 3600);
  EXPECT_TRUE(Becomes(false));
  std::ofstream both(folder_ + "/ca.pem.new");
  both << std::ifstream(folder_ + "/ca.pem").rdbuf()
       << std::ifstream(folder_ + "/next.pem").rdbuf();
  both.close();
  std::filesystem::rename(folder_ + "/ca.pem.new", folder_ + "/ca.pem");
  EXPECT_TRUE(Becomes(true));
  Renew("auth", next, 3600);
  std::filesystem::copy_file(folder_ + "/next.pem", folder_ + "/ca.pem",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Becomes(true));
}

TEST_F(RotationTest, AFileThatIsGoneKeepsTheOldCertificate) {
  auto running = NewConnection();
  ASSERT_TRUE(Call(*running).ok());
  std::filesystem::remove(folder_ + "/gateway.pem");
  EXPECT_FALSE(TlsFiles::Open(Config("gateway")).ok());  // a process that starts now reports it
  // The running process continues. Both ends read their files every second: once the server has
  // used two renewals, the client has read its files, too.
  Renew("auth", old_authority_, -60);
  EXPECT_TRUE(Becomes(false));
  Renew("auth", old_authority_, 3600);
  EXPECT_TRUE(Becomes(true));
  const grpc::Status status = Call(*running);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace tollgate::rpc
