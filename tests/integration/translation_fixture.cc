#include "tests/integration/translation_fixture.h"

#include <map>

namespace tollgate::test {
namespace {

// The engines accept prompts of any size: their window is far above the one of "sim/small".
std::string Catalog(const std::string& engine, const std::string& no_tokenizer) {
  const auto model = [](const std::string& id, int64_t window, const std::string& more) {
    return "  - id: " + id + "\n    context_window: " + std::to_string(window) +
           "\n    input_usd_per_million: \"1\"\n    output_usd_per_million: \"3\"\n" +
           "    capabilities: [chat, completion, embedding, vision, tools, reasoning]\n" +
           "    engine_model: sim/model\n" + more;
  };
  const auto pool = [](const std::string& name, const std::string& kind, const std::string& url) {
    return "  - name: " + name + "\n    engines:\n      - id: " + name + "\n        kind: " + kind +
           "\n        base_url: " + url + "\n";
  };
  return "models:\n" + model("sim/model", 131072, "    pool: python\n") +
         model("sim/small", 1000, "    pool: python\n") +
         model("sim/uncounted", 1000, "    pool: mute\n") +
         model("sim/silent", 1000, "    pool: cstrings\n") +
         model("sim/anywhere", 131072, "    pool: python\n    keep_system_messages: true\n") +
         model("sim/cstrings", 131072, "    pool: cstrings\n") +
         model("sim/budget", 131072, "    pool: python\n    reasoning_budget: true\n") +
         model("sim/openai", 131072, "    pool: openai\n") +
         model("sim/tgi", 131072, "    pool: rust\n") + "pools:\n" +
         pool("python", "vllm", engine) + pool("cstrings", "ollama", engine) +
         pool("openai", "openai", engine) + pool("rust", "tgi", engine) +
         pool("mute", "vllm", no_tokenizer);
}

EngineSimOptions Options(SimDialect dialect) {
  EngineSimOptions options;
  options.tokens = 5;
  options.dialect = dialect;
  return options;
}

class Worlds : public ::testing::Environment {
 public:
  TranslationWorld& Of(const std::string& kind) {
    std::unique_ptr<TranslationWorld>& world = worlds_[kind];
    if (world) return *world;
    world = std::make_unique<TranslationWorld>();
    if (!world->engine.Start(&world->failure) || !world->mute.Start(&world->failure)) return *world;
    ClusterOptions options;
    options.all_in_one = kind == "allinone";
    options.catalog = Catalog(world->engine.base_url(), world->mute.base_url());
    world->cluster = std::make_unique<Cluster>(options);
    world->failure = world->cluster->Start();
    return *world;
  }
  void TearDown() override {
    for (auto& [kind, world] : worlds_) {
      if (!world->cluster || !world->failure.empty()) continue;
      const LedgerCheck check = world->cluster->VerifyLedger();
      EXPECT_TRUE(check.ok) << kind << ": " << check.violations;
      EXPECT_EQ(world->cluster->StopOrderly(), "") << kind;
    }
    worlds_.clear();
  }

 private:
  std::map<std::string, std::unique_ptr<TranslationWorld>> worlds_;
};
Worlds* const kWorlds = static_cast<Worlds*>(::testing::AddGlobalTestEnvironment(new Worlds));

}  // namespace

TranslationWorld::TranslationWorld()
    : engine(Options(SimDialect::kVllm)), mute(Options(SimDialect::kNone)) {}

TranslationWorld& TranslationWorldOf(const std::string& kind) { return kWorlds->Of(kind); }

std::string Words(int count) {
  std::string words = "\"w";
  for (int i = 1; i < count; ++i) words += " w";
  return words + "\"";
}

INSTANTIATE_TEST_SUITE_P(Systems, TranslationTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

}  // namespace tollgate::test
