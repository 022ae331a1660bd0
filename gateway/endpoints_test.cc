#include "gateway/endpoints.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>

namespace tollgate::gateway {
namespace {

std::string SourceFolder() {
  const char* source = std::getenv("TOLLGATE_SOURCE");
  return source == nullptr ? "." : source;
}

// The public description names exactly the endpoints that there are, and how each takes its key.
TEST(Endpoints, AreThoseOfTheOpenApiDescription) {
  std::set<std::string> described, served;
  const YAML::Node document = YAML::LoadFile(SourceFolder() + "/docs/openapi.yaml");
  for (const auto& path : document["paths"]) {
    for (const auto& operation : path.second) {
      std::string method = operation.first.as<std::string>();
      std::transform(method.begin(), method.end(), method.begin(), ::toupper);
      std::string keys;
      for (const auto& way : operation.second["security"]) {
        keys += way.size() == 0 ? " none" : " " + way.begin()->first.as<std::string>();
      }
      described.insert(method + " " + path.first.as<std::string>() + keys);
    }
  }
  const EndpointTable table =
      MakeEndpoints([](Loop&) -> Worker& { throw std::logic_error("no request is made here"); });
  for (const Endpoint& row : table.rows()) {
    const char* keys = row.credential == CredentialRule::kBearer           ? " bearer"
                       : row.credential == CredentialRule::kBearerOrApiKey ? " bearer apiKey"
                                                                           : " none bearer";
    served.insert(row.method + " " + row.path + keys);
  }
  EXPECT_EQ(described, served);
}

}  // namespace
}  // namespace tollgate::gateway
