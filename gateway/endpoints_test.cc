#include "gateway/endpoints.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>

namespace tollgate::gateway {
namespace {

std::string SourceFolder() {
  const char* source = std::getenv("TOLLGATE_SOURCE");
  return source == nullptr ? "." : source;
}

EndpointTable MakeTable() {
  return MakeEndpoints([](Loop&) -> Worker& { throw std::logic_error("no request is made here"); },
                       [] { return true; });
}

// docs/openapi.yaml lists exactly these endpoints, with the same ways of sending the key.
TEST(Endpoints, MatchTheOpenApiDescription) {
  std::set<std::string> described, served;
  const YAML::Node document = YAML::LoadFile(SourceFolder() + "/docs/openapi.yaml");
  for (const auto& path : document["paths"]) {
    for (const auto& operation : path.second) {
      std::string method = operation.first.as<std::string>();
      std::transform(method.begin(), method.end(), method.begin(), ::toupper);
      std::string keys;
      for (const auto& scheme : operation.second["security"]) {
        keys += scheme.size() == 0 ? " none" : " " + scheme.begin()->first.as<std::string>();
      }
      described.insert(method + " " + path.first.as<std::string>() + keys);
    }
  }
  const EndpointTable table = MakeTable();
  for (const Endpoint& row : table.rows()) {
    const char* keys = row.credential == CredentialRule::kBearer           ? " bearer"
                       : row.credential == CredentialRule::kBearerOrApiKey ? " bearer apiKey"
                       : row.credential == CredentialRule::kNone           ? " none"
                                                                           : " none bearer";
    served.insert(row.method + " " + row.path + keys);
  }
  EXPECT_EQ(described, served);
}

TEST(Endpoints, PathsMatchExactly) {
  const EndpointTable table = MakeTable();
  EXPECT_GE(table.Find("POST", "/v1/chat/completions"), 0);
  EXPECT_GE(table.Find("GET", "/v1/models"), 0);
  EXPECT_GE(table.Find("GET", "/openai/v1/models"), 0);
  for (const char* path : {"/v1/models/x", "//v1/models", "/v1/models/", "/v1/Models",
                           "/v1/%6dodels", "/v1/../v1/models", ""}) {  // H26
    EXPECT_LT(table.Find("GET", path), 0) << path;
  }
  EXPECT_EQ(table.Find("HEAD", "/api/v1/usage"), table.Find("GET", "/api/v1/usage"));
  EXPECT_LT(table.Find("HEAD", "/v1/chat/completions"), 0);
  EXPECT_LT(table.Find("head", "/v1/models"), 0);
  EXPECT_LT(table.Find("GET", "/v1/chat/completions"), 0);
  EXPECT_LT(table.Find("post", "/v1/chat/completions"), 0);
}

}  // namespace
}  // namespace tollgate::gateway
