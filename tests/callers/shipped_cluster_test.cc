// The processes of docker-compose.yml start from deploy/config/cluster as it is shipped, with the
// secrets and certificates of `./dev secrets`, and find each other. Only addresses and folders
// differ.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "tests/support/http.h"
#include "tests/support/postgres.h"
#include "tests/support/process.h"
#include "tests/support/redis.h"

namespace tollgate::test {
namespace {

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class ShippedClusterTest : public ::testing::Test {
 protected:
  struct Part {
    std::string name;     // in the compose file
    std::string service;  // names its configuration, program and certificate
    TestPort ops, port, admin, http;
    std::unique_ptr<Process> process;
  };

  void SetUp() override {
    const char* source = std::getenv("TOLLGATE_SOURCE");
    source_ = source == nullptr ? "." : source;
    const std::string command = "TOLLGATE_SECRETS=" + secrets() + " " + source_ + "/dev secrets >" +
                                folder_.path() + "/secrets.out 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << ReadFile(folder_.path() + "/secrets.out");
    postgres_ = testing::TestPostgres::Shared();
    if (!postgres_ && testing::TestPostgres::Required()) FAIL() << "no PostgreSQL";
    if (!postgres_) GTEST_SKIP() << "PostgreSQL is not installed";
    redis_ = testing::TestRedis::Start({.lines = {"requirepass " + Secret("redis_password")}});
    ASSERT_NE(redis_, nullptr);
    for (const char* name : {"ratelimit", "billing", "auth", "catalog", "router-1", "router-2",
                             "gateway-1", "dashboard"}) {
      Part part;
      part.name = part.service = name;
      if (part.service.starts_with("router")) part.service = "inference-router";
      if (part.service.starts_with("gateway")) part.service = "gateway";
      parts_.push_back(std::move(part));
    }
  }
  void TearDown() override {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      if (!part->process) continue;
      EXPECT_EQ(part->process->Terminate(), 0) << part->name << part->process->LogTail();
    }
  }

  std::string secrets() const { return folder_.path() + "/secrets"; }
  std::string Secret(const std::string& name) {
    std::string text = ReadFile(secrets() + "/" + name);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  std::string ConfigOf(const Part& part) {
    std::string text = ReadFile(source_ + "/deploy/config/cluster/" + part.service + ".yaml");
    EXPECT_FALSE(text.empty()) << part.service;
    // Containers reach each other by name; here the processes use the ports of this machine.
    text = Replaced(text, "0.0.0.0:9464", "0.0.0.0:" + std::to_string(part.ops.number()));
    text = Replaced(text, ",gateway-2:7000", "");  // one is enough
    text = Replaced(text, "0.0.0.0:7000", "0.0.0.0:" + std::to_string(part.port.number()));
    for (const char* port : {"8080", "8081"}) {
      text = Replaced(text, std::string("0.0.0.0:") + port,
                      "0.0.0.0:" + std::to_string(part.http.number()));
    }
    text = Replaced(text, "0.0.0.0:7001", "0.0.0.0:" + std::to_string(part.admin.number()));
    text = Replaced(text, "[router:7000]", "[router-1:7000, router-2:7000]");
    for (const Part& other : parts_) {
      text = Replaced(text, " " + other.name + ":7000", " " + other.port.address());
      text = Replaced(text, "[" + other.name + ":7000", "[" + other.port.address());
      text = Replaced(text, other.name + ":7001", other.admin.address());
    }
    for (const char* database : {"auth", "billing"}) {
      const std::string shipped =
          std::string(
              "postgresql://tollgate:${file:/run/secrets/postgres_password}@"
              "${env:TOLLGATE_DATABASE_HOSTS:-postgres:5432}/") +
          database + "?sslmode=verify-full&sslrootcert=/run/tls/authority.pem";
      if (text.find(shipped) == std::string::npos) continue;
      text = Replaced(text, shipped, postgres_->MakeDatabase(std::string("shipped_") + database));
    }
    // The databases of this test have no TLS; tests/compose runs them as shipped.
    text = Replaced(text, "rediss://redis:6379", redis_->url());
    text = Replaced(text, "  redis_authority_file: /run/tls/authority.pem\n", "");
    text = Replaced(text, "/run/edge-tls", secrets() + "/tls/servers/" + part.service);
    text = Replaced(text, "/run/secrets", secrets());
    text = Replaced(text, "/run/tls", secrets() + "/tls/" + part.service);
    const std::string data = folder_.path() + "/data/" + part.name;
    std::filesystem::create_directories(data);
    text = Replaced(text, "/var/lib/tollgate", data);
    text = Replaced(text, "  audit_checkpoint_file:",
                    "  audit_checkpoint_seconds: 1\n  audit_checkpoint_file:");
    // The image has the pages in that folder.
    text = Replaced(text, "  web_folder: /usr/share/tollgate/web\n", "");
    return Replaced(text, "/etc/tollgate/catalog.yaml",
                    source_ + "/deploy/config/catalog.demo.yaml");
  }
  void Run(Part& part, const std::string& config) {
    const std::string base = folder_.path() + "/" + part.name;
    WriteFile(base + ".yaml", config);
    part.process =
        std::make_unique<Process>(part.name,
                                  std::vector<std::string>{BinaryPath("tollgate-" + part.service),
                                                           "--config", base + ".yaml"},
                                  base + ".log");
    ASSERT_TRUE(part.process->Start());
  }
  // Status and body of a response of a front door over TLS.
  std::pair<int, std::string> Ask(const Part& part, const std::string& path,
                                  const std::string& more = "") {
    const std::string address = part.service + ":" + std::to_string(part.http.number());
    const std::string command =
        "curl -sS --noproxy '*' --cacert " + secrets() + "/tls/authority.pem --resolve " + address +
        ":127.0.0.1 -o " + folder_.path() + "/answer -w '%{http_code}' " + more + " https://" +
        address + path + " >" + folder_.path() + "/status 2>" + folder_.path() + "/error";
    if (std::system(command.c_str()) != 0) return {0, ReadFile(folder_.path() + "/error")};
    return {std::stoi(ReadFile(folder_.path() + "/status")), ReadFile(folder_.path() + "/answer")};
  }
  Part& Named(const std::string& name) {
    for (Part& part : parts_) {
      if (part.name == name) return part;
    }
    return parts_.front();
  }

  TempDir folder_;
  std::string source_;
  testing::TestPostgres* postgres_ = nullptr;
  std::unique_ptr<testing::TestRedis> redis_;
  std::vector<Part> parts_;
};

TEST_F(ShippedClusterTest, AllProcessesStartAndFindEachOther) {
  for (Part& part : parts_) ASSERT_NO_FATAL_FAILURE(Run(part, ConfigOf(part)));
  for (Part& part : parts_) {
    HttpResponse last;
    EXPECT_TRUE(WaitUntil(
        [&] {
          last = Http(part.ops.number(), "GET", "/readyz", {}, "", 1000);
          return last.status == 200;
        },
        60'000, 50))
        << part.name << ": " << last.status << " " << last.body << "\n"
        << part.process->LogTail();
  }
  // The front doors respond; the dashboard asks auth to check the login token.
  EXPECT_EQ(Ask(Named("gateway-1"), "/api/v1/usage").first, 401);
  const std::string token = "-H 'Authorization: Bearer " + Secret("dashboard_token") + "'";
  const auto listed = Ask(Named("dashboard"), "/admin/v1/workspaces", token);
  EXPECT_EQ(listed.first, 200) << listed.second;
  // The audit log is anchored outside of its database.
  const auto made =
      Ask(Named("dashboard"), "/admin/v1/workspaces", token + R"( -d '{"displayName":"Shipped"}')");
  EXPECT_EQ(made.first, 200) << made.second;
  const std::string anchors = folder_.path() + "/data/auth/audit.checkpoints";
  EXPECT_TRUE(WaitUntil([&] { return !ReadFile(anchors).empty(); }, 20'000, 50));
}

// Plain text requires a setting in the file; it is never the default.
TEST_F(ShippedClusterTest, WithoutTheExplicitSettingNothingListensInPlainText) {
  struct Case {
    const char *part, *from, *to,
        *named;  // named: replaces the lines from the one that begins with `from` to before `to`
  };
  for (const Case& one :
       {Case{"gateway-1", "  edge_tls:", "  # The network", "gateway.listen"},
        Case{"dashboard", "  edge_tls:", "  login_token:", "dashboard.listen"},
        Case{"catalog", "  ops_insecure_plaintext:", "  grpc_listen:", "host.ops_listen"}}) {
    Part& part = Named(one.part);
    const std::string config = ConfigOf(part);
    std::string without = config;
    const size_t from = config.find(one.from);
    const size_t to = config.find(one.to, from);
    ASSERT_NE(to, std::string::npos) << one.part;
    without.erase(from, to - from);
    ASSERT_NE(config, without) << one.part;
    ASSERT_NO_FATAL_FAILURE(Run(part, without));
    ASSERT_TRUE(WaitUntil([&] { return !part.process->Running(); }, 20'000)) << one.part;
    EXPECT_NE(part.process->exit_code(), 0);
    EXPECT_NE(part.process->LogTail().find(one.named), std::string::npos)
        << part.process->LogTail();
    part.process.reset();
  }
}

}  // namespace
}  // namespace tollgate::test
