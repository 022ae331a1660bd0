// Every shipped configuration file is valid for its process.
#include <google/protobuf/message.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "common/config/config.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {
namespace {

namespace v1 = tollgate::config::v1;
namespace fs = std::filesystem;

std::map<std::string, std::unique_ptr<google::protobuf::Message>> Shipped() {
  std::map<std::string, std::unique_ptr<google::protobuf::Message>> files;
  files["allinone.yaml"] = std::make_unique<v1::AllInOneConfig>();
  files["catalog.demo.yaml"] = std::make_unique<v1::CatalogFile>();
  files["cluster/gateway.yaml"] = std::make_unique<v1::GatewayConfig>();
  files["cluster/auth.yaml"] = std::make_unique<v1::AuthConfig>();
  files["cluster/billing.yaml"] = std::make_unique<v1::BillingConfig>();
  files["cluster/ratelimit.yaml"] = std::make_unique<v1::RateLimitConfig>();
  files["cluster/catalog.yaml"] = std::make_unique<v1::CatalogConfig>();
  files["cluster/inference-router.yaml"] = std::make_unique<v1::RouterConfig>();
  files["cluster/dashboard.yaml"] = std::make_unique<v1::DashboardConfig>();
  return files;
}

fs::path ConfigFolder() {
  const char* source = std::getenv("TOLLGATE_SOURCE");
  return fs::path(source == nullptr ? "." : source) / "deploy" / "config";
}

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The file's text with the paths of secrets replaced by this test's folder.
std::string WithSecretsIn(const std::string& folder, std::string text) {
  for (const std::string place : {"../secrets", "/run/secrets"}) {
    for (size_t at; (at = text.find("${file:" + place + "/")) != std::string::npos;) {
      text.replace(at, 7 + place.size(), "${file:" + folder);
    }
  }
  return text;
}

TEST(ConfigFiles, EachIsValidForItsProcess) {
  char name[] = "/tmp/tollgate-structure-XXXXXX";
  const std::string folder = mkdtemp(name);
  for (const char* secret : {"pepper", "dashboard-token", "postgres_password", "dashboard_token"}) {
    std::ofstream(folder + "/" + secret) << "0123456789abcdef0123456789abcdef\n";
  }
  for (const char* variable : {"TOLLGATE_HOME", "TOLLGATE_ADMIN_SOCKET"}) {
    ::setenv(variable, "/tmp/x", 1);
  }
  for (const auto& [file, message] : Shipped()) {
    const std::string text = WithSecretsIn(folder, Read(ConfigFolder() / file));
    EXPECT_FALSE(text.empty()) << file;
    const auto loaded = config::LoadText(text, file, folder, *message);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error());
    EXPECT_GT(message->ByteSizeLong(), 0u) << file;
  }
  fs::remove_all(folder);
}

TEST(ConfigFiles, EachIsInThisTest) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(ConfigFolder())) {
    if (entry.path().extension() == ".yaml") {
      found.insert(fs::relative(entry.path(), ConfigFolder()).string());
    }
  }
  std::set<std::string> known;
  for (const auto& [file, message] : Shipped()) known.insert(file);
  EXPECT_EQ(found, known);
}

}  // namespace
}  // namespace tollgate
