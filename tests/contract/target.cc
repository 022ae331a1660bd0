#include "tests/contract/target.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/support/facts.h"

namespace tollgate::test {
namespace {

const char* ExternalUrl() { return std::getenv("TOLLGATE_CONTRACT_URL"); }

void UseExternal(Target& target) {
  const std::string url = ExternalUrl();
  const size_t host = url.find("://") == std::string::npos ? 0 : url.find("://") + 3;
  const size_t colon = url.find(':', host);
  target.host = url.substr(host, colon - host);
  target.port = colon == std::string::npos ? 80 : std::atoi(url.c_str() + colon + 1);
  const char* facts = std::getenv("TOLLGATE_FACTS");
  target.facts = Json::Parse(facts ? facts : "{}").value_or(Json());
  if (url.starts_with("https")) target.failure = "only http:// is supported";
  if (!target.facts["model"].is_string()) target.failure = "TOLLGATE_FACTS must name a model";
}

// Includes an unreachable model for each endpoint that chat models do not serve.
std::string Catalog(const Target& target) {
  std::string text = DefaultCatalog({target.engines[0].base_url(), target.engines[1].base_url()});
  std::string more;
  for (const char* capability : {"completion", "embedding"}) {
    more += "  - id: sim/unreachable-" + std::string(capability) +
            "\n    context_window: 131072\n    input_usd_per_million: \"1\"\n"
            "    output_usd_per_million: \"3\"\n    pool: unreachable\n    capabilities: [" +
            capability + "]\n";
  }
  return text.insert(text.find("pools:\n"), more);
}

void StartOwn(Target& target, const std::string& kind) {
  for (EngineSim& engine : target.engines) {
    if (!engine.Start(&target.failure)) return;
  }
  ClusterOptions options;
  options.all_in_one = kind == "allinone";
  options.catalog = Catalog(target);
  target.cluster = std::make_unique<Cluster>(options);
  target.failure = target.cluster->Start();
  if (!target.failure.empty()) return;
  target.port = target.cluster->port();
  target.facts = MakeFacts(*target.cluster, 1000);
}

class Targets : public ::testing::Environment {
 public:
  Target& Of(const std::string& kind) {
    std::unique_ptr<Target>& target = targets_[kind];
    if (!target) {
      target = std::make_unique<Target>();
      kind == "url" ? UseExternal(*target) : StartOwn(*target, kind);
    }
    return *target;
  }
  void TearDown() override {
    for (auto& [kind, target] : targets_) {
      if (!target->cluster || !target->failure.empty()) continue;
      EXPECT_TRUE(target->cluster->VerifyLedger().ok) << kind;
      EXPECT_EQ(target->cluster->StopOrderly(), "") << kind;
    }
    targets_.clear();
  }

 private:
  std::map<std::string, std::unique_ptr<Target>> targets_;
};

Targets* const kTargets = static_cast<Targets*>(::testing::AddGlobalTestEnvironment(new Targets));

}  // namespace

std::vector<std::string> TargetKinds() {
  if (ExternalUrl() != nullptr) return {"url"};
  return {"allinone", "tcp"};
}

Target& TargetOf(const std::string& kind) { return kTargets->Of(kind); }

}  // namespace tollgate::test
