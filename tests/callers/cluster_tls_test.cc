// A cluster on the certificates of deploy/make-certificates, as docker-compose.yml uses them: it
// serves requests while all of them are renewed, and operators work over TCP.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr char kBody[] =
    R"({"model":"sim/model","messages":[{"role":"user","content":"hello"}],"max_tokens":20})";

struct Outcome {
  int code = -1;
  std::string output;
};

// Uses a shell, as users do.
Outcome Shell(const std::string& command, const std::string& log) {
  const int status = std::system((command + " >" + log + " 2>&1").c_str());  // NOLINT
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(log)};
}

class ClusterTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeCertificates("");
    std::string failure;
    ASSERT_TRUE(engine_.Start(&failure)) << failure;
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }

  // environment: "NAME=value ".
  Outcome TryToMakeCertificates(const std::string& option, const std::string& environment = "") {
    const char* source = std::getenv("TOLLGATE_SOURCE");
    return Shell(environment + (source ? source : ".") + "/deploy/make-certificates " +
                     certificates() + " " + option,
                 folder_.path() + "/log");
  }
  void MakeCertificates(const std::string& option) {
    const Outcome made = TryToMakeCertificates(option);
    ASSERT_EQ(made.code, 0) << made.output;
  }
  void StartCluster() {
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()}, "1", "2");
    options.certificates = certificates();
    cluster_.emplace(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  std::string certificates() const { return folder_.path() + "/tls"; }

  // Runs the command line with the certificate in a folder below certificates().
  Outcome Cli(const std::string& place, const std::string& arguments) {
    const std::string at = certificates() + "/" + place;
    const std::string environment =
        "XDG_STATE_HOME=" + folder_.path() +
        " TOLLGATE_AUTH=" + cluster_->admin_grpc_address("auth") +
        " TOLLGATE_BILLING=" + cluster_->admin_grpc_address("billing") +
        (place.empty()
             ? ""
             : " TOLLGATE_TLS_CA=" + certificates() + "/authority.pem TOLLGATE_TLS_CERT=" + at +
                   "/certificate.pem TOLLGATE_TLS_KEY=" + at + "/private_key.pem");
    return Shell(environment + " " + BinaryPath("tollgate") + " --json --timeout 5 " + arguments,
                 folder_.path() + "/log");
  }
  static std::string Read(const std::string& path) { return ReadFile(path); }

  TempDir folder_;
  EngineSim engine_{EngineSimOptions()};
  std::optional<Cluster> cluster_;
};

TEST_F(ClusterTlsTest, ACertificateThatCannotBeUsedIsMadeAnew) {
  const auto text = [this](const char* place) {
    return Read(certificates() + "/" + place + "/certificate.pem");
  };
  const std::string auth = text("auth");
  const std::string billing = text("billing");
  // The private key belongs to another certificate.
  WriteFile(certificates() + "/billing/private_key.pem",
            Read(certificates() + "/auth/private_key.pem"));
  MakeCertificates("");
  EXPECT_EQ(text("auth"), auth) << "a valid certificate is kept";
  EXPECT_NE(text("billing"), billing);
  // The names belong to another trust domain.
  const Outcome moved = TryToMakeCertificates("", "TOLLGATE_TRUST_DOMAIN=example.org ");
  EXPECT_EQ(moved.code, 0);
  EXPECT_NE(moved.output.find("spiffe://example.org/svc/auth"), std::string::npos);
  EXPECT_NE(text("auth"), auth);
  // The authority is not replaced silently.
  WriteFile(certificates() + "/authority.key", Read(certificates() + "/auth/private_key.pem"));
  const Outcome refused = TryToMakeCertificates("");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.output.find("authority.key"), std::string::npos) << refused.output;
}

TEST_F(ClusterTlsTest, RequestsAreServedWhileAllCertificatesAreRenewed) {
  StartCluster();
  const ApiKey key = cluster_->NewCustomer(1'000'000'000'000);
  ASSERT_EQ(cluster_->Post(key, "/v1/chat/completions", kBody).status, 200);
  std::atomic<bool> stop{false};
  std::atomic<int> served{0}, failed{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      while (!stop) {
        ++(cluster_->Post(key, "/v1/chat/completions", kBody).status == 200 ? served : failed);
      }
    });
  }
  const std::string before = Read(certificates() + "/gateway/certificate.pem");
  for (int i = 0; i < 3; ++i) {
    MakeCertificates("--rotate");
    const int so_far = served;
    EXPECT_TRUE(WaitUntil([&] { return served > so_far + 20; }, 20'000));
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_NE(Read(certificates() + "/gateway/certificate.pem"), before);
  EXPECT_EQ(failed, 0);
  // New connections, with the renewed certificates at both ends.
  for (const char* name : {"billing", "inference-router", "gateway"}) {
    EXPECT_EQ(cluster_->process(name).Terminate(), 0);
    ASSERT_EQ(cluster_->Restart(name), "");
  }
  EXPECT_TRUE(WaitUntil(
      [&] { return cluster_->Post(key, "/v1/chat/completions", kBody).status == 200; }, 10'000));
  EXPECT_EQ(cluster_->process("auth").Terminate(), 0);
  ASSERT_EQ(cluster_->Restart("auth"), "");
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id));
  const LedgerCheck check = cluster_->VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
}

TEST_F(ClusterTlsTest, AnOperatorActsOverTcp) {
  StartCluster();
  const Outcome created = Cli("operators/admin", "workspace create Acme --id acme");
  EXPECT_EQ(created.code, 0) << created.output;
  // A method that requires a named operator.
  const Outcome frozen = Cli("operators/admin", "workspace freeze acme --reason 'stolen key'");
  EXPECT_EQ(frozen.code, 0) << frozen.output;
  for (const char* place : {"gateway", "inference-router", "billing"}) {
    const Outcome refused = Cli(place, "workspace list");
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.output.find("permission_denied"), std::string::npos) << refused.output;
  }
  const Outcome plain = Cli("", "workspace list");
  EXPECT_EQ(plain.code, 1);
  EXPECT_NE(plain.output.find("unavailable"), std::string::npos) << plain.output;
  const Outcome half = Cli("operators/nobody", "workspace list");
  EXPECT_EQ(half.code, 2);
  EXPECT_NE(half.output.find("operators/nobody/certificate.pem"), std::string::npos) << half.output;
}

TEST_F(ClusterTlsTest, TheScriptKeepsWhatIsGoodAndKeysArePrivate) {
  const std::string authority = Read(certificates() + "/authority.pem");
  const std::string gateway = Read(certificates() + "/gateway/certificate.pem");
  MakeCertificates("");
  EXPECT_EQ(Read(certificates() + "/gateway/certificate.pem"), gateway);
  // What is missing is made again, and a certificate of another authority is replaced.
  std::filesystem::remove(certificates() + "/billing/certificate.pem");
  std::filesystem::remove(certificates() + "/authority.key");
  MakeCertificates("");
  EXPECT_TRUE(std::filesystem::exists(certificates() + "/billing/certificate.pem"));
  EXPECT_NE(Read(certificates() + "/authority.pem"), authority);
  EXPECT_NE(Read(certificates() + "/gateway/certificate.pem"), gateway);
  EXPECT_EQ(Read(certificates() + "/gateway/authority.pem"),
            Read(certificates() + "/authority.pem"));
  namespace fs = std::filesystem;
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(certificates()).permissions() & kOthers, fs::perms::none);
  EXPECT_EQ(fs::status(certificates() + "/authority.key").permissions() & kOthers, fs::perms::none);
}

TEST_F(ClusterTlsTest, AProcessDoesNotListenInPlainTextUnlessItIsTold) {
  const std::string config = folder_.path() + "/ratelimit.yaml";
  const std::string log = folder_.path() + "/ratelimit.log";
  const std::string start = BinaryPath("tollgate-ratelimit") + " --config " + config;
  WriteFile(config, "host: {grpc_listen: \"127.0.0.1:0\"}\nratelimit: {}\n");
  const Outcome refused = Shell("timeout 20 " + start, log);
  EXPECT_EQ(refused.code, 1);
  for (const char* part : {"host.grpc_listen", "insecure_plaintext: true", "host.tls"}) {
    EXPECT_NE(refused.output.find(part), std::string::npos) << refused.output;
  }
  const std::string addresses = folder_.path() + "/addresses";
  WriteFile(config,
            "host: {grpc_listen: \"127.0.0.1:0\", insecure_plaintext: true, address_file: \"" +
                addresses + "\"}\nratelimit: {}\n");
  Process told("ratelimit", {BinaryPath("tollgate-ratelimit"), "--config", config}, log);
  ASSERT_TRUE(told.Start());
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(addresses); }, 20'000))
      << told.LogTail();
  EXPECT_EQ(told.Terminate(), 0);
}

}  // namespace
}  // namespace tollgate::test
