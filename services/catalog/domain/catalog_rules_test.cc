#include "services/catalog/domain/catalog_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/config/config.h"
#include "services/catalog/testing/sample_catalog.h"

namespace tollgate::catalog {
namespace {

using ::testing::HasSubstr;

// Builds without line numbers, which storage/catalog_reader.h adds.
BasicResult<v1::Snapshot, Problems> Build(const std::string& text) {
  config::v1::CatalogFile file;
  if (auto loaded = config::LoadText(text, "catalog.yaml", ".", file); !loaded) {
    return Fail{Problems{loaded.error()}};
  }
  return BuildSnapshot(file, "tollgate", "catalog.yaml", [](const Location&) { return 0; });
}

// The only problem of this text, or "accepted".
std::string Problem(const std::string& text) {
  const auto result = Build(text);
  if (result) return "accepted";
  if (result.error().size() != 1)
    return "several problems: " + testing::PrintToString(result.error());
  return result.error()[0];
}

TEST(CatalogRules, AValidFileBecomesASnapshot) {
  const auto result = Build(kGoodCatalog);
  ASSERT_TRUE(result) << testing::PrintToString(result.error());
  ASSERT_EQ(result->models_size(), 2);
  const v1::Model& large = result->models(0);
  EXPECT_EQ(large.id(), "acme/large");
  EXPECT_EQ(large.display_name(), "Acme Large");
  EXPECT_EQ(large.price().input_pico_usd(), 150'000);
  EXPECT_EQ(large.price().output_pico_usd(), 2'200'000);
  EXPECT_EQ(large.created_at_s(), 1'769'817'600);
  EXPECT_TRUE(large.serving());
  EXPECT_THAT(large.capabilities(), testing::ElementsAre(v1::CAPABILITY_CHAT, v1::CAPABILITY_TOOLS,
                                                         v1::CAPABILITY_REASONING));
  const v1::Model& small = result->models(1);
  EXPECT_EQ(small.display_name(), "acme/small");
  EXPECT_EQ(small.max_output_tokens(), 8192);  // default: the context window
  EXPECT_EQ(small.price().output_pico_usd(), 1);
  EXPECT_EQ(small.workspace_id(), "team-a");
  EXPECT_EQ(small.engine_model(), "small-q4");
  EXPECT_FALSE(small.serving());
  ASSERT_EQ(result->pools_size(), 1);
  EXPECT_EQ(result->pools(0).engines(1).kind(), v1::ENGINE_KIND_LLAMACPP);
  EXPECT_EQ(result->pools(0).engines(1).api_key(), "secret");
  EXPECT_EQ(result->digest().size(), 64u);
}

TEST(CatalogRules, TheCapacityOfAModelIsCheckedAndTakenOver) {
  const auto with = [](const std::string& capacity) {
    return CatalogWith("    pool: ", "    capacity: " + capacity + "\n    pool: ");
  };
  const auto result =
      Build(with("{requests_per_minute: 600, concurrent_requests: 8, shadow: true}"));
  ASSERT_TRUE(result) << testing::PrintToString(result.error());
  const v1::Model& model = result->models(0);
  EXPECT_EQ(model.capacity().requests_per_minute(), 600);
  EXPECT_EQ(model.capacity().tokens_per_minute(), 0);
  EXPECT_EQ(model.capacity().concurrent_requests(), 8);
  EXPECT_TRUE(model.capacity().shadow());
  EXPECT_FALSE(result->models(1).has_capacity());
  EXPECT_THAT(Problem(with("{tokens_per_minute: -1}")), HasSubstr("from 0 (no limit)"));
}

TEST(CatalogRules, AnEngineHasAWeightOfOneUnlessTheFileSaysAnother) {
  const auto with = [](const std::string& weight) {
    return CatalogWith("max_concurrency: 64", "weight: " + weight);
  };
  EXPECT_THAT(Problem(CatalogWith("max_concurrency: 64", "zone: here and there")),
              HasSubstr("engine \"engine-1\": zone: must be 1 to 96 letters"));
  const auto weight = [](const std::string& text, int engine) {
    const auto result = Build(text);
    return result ? result->pools(0).engines(engine).weight() : -1;
  };
  EXPECT_EQ(weight(kGoodCatalog, 0), 1);
  EXPECT_EQ(weight(with("4"), 0), 4);
  EXPECT_EQ(weight(with("4"), 1), 1);
  EXPECT_EQ(weight(with("0"), 0), 0) << "set, and not the default";
  EXPECT_EQ(weight(with("1000"), 0), 1000);
  for (const char* bad : {"-1", "1001"}) {
    EXPECT_THAT(Problem(with(bad)),
                HasSubstr("engine \"engine-1\": weight: must be from 0 (only while no other engine "
                          "can) to 1000"));
  }
  EXPECT_NE(Problem(with("0.5")), "accepted");
}

TEST(CatalogRules, APriorityIsOneOfThree) {
  const auto with = [](const std::string& priority) {
    return CatalogWith("    pool: ", "    priority: " + priority + "\n    pool: ");
  };
  const std::pair<const char*, v1::Priority> known[] = {
      {"high", v1::PRIORITY_HIGH}, {"normal", v1::PRIORITY_UNSPECIFIED}, {"low", v1::PRIORITY_LOW}};
  for (const auto& [name, priority] : known) {
    const auto result = Build(with(name));
    ASSERT_TRUE(result) << testing::PrintToString(result.error());
    EXPECT_EQ(result->models(0).priority(), priority);
    EXPECT_EQ(result->models(1).priority(), v1::PRIORITY_UNSPECIFIED);
  }
  EXPECT_THAT(Problem(with("hihg")), HasSubstr("(did you mean \"high\"?)"));
}

// docs/design/wire.md 2.6: every engine of the pool must support it, and TGI does not.
TEST(CatalogRules, ReasoningIsControlledWhereTheKindsOfEnginesCan) {
  const auto controls = [](const std::string& capabilities, const std::string& kind) {
    std::string text = CatalogWith("capabilities: [chat, tools, reasoning]", capabilities);
    text.replace(text.find("kind: llamacpp"), 14, "kind: " + kind);
    const auto result = Build(text);
    return result && result->models(0).reasoning_control();
  };
  const std::string reasons = "capabilities: [chat, tools, reasoning]";
  for (const char* kind : {"vllm", "sglang", "llamacpp", "ollama", "openai"}) {
    EXPECT_TRUE(controls(reasons, kind)) << kind;
    EXPECT_FALSE(controls("capabilities: [chat]", kind)) << kind;
  }
  EXPECT_FALSE(controls(reasons, "tgi"));
}

TEST(CatalogRules, ABudgetOfTheReasoningNeedsEnginesThatTakeIt) {
  const auto with = [](const std::string& capabilities, const std::string& kind) {
    std::string text = CatalogWith(
        "capabilities: [chat, tools, reasoning]",
        capabilities + "\n    reasoning_budget: true\n" + "    keep_system_messages: true");
    return text.replace(text.find("kind: llamacpp"), 14, "kind: " + kind);
  };
  const std::string reasons = "capabilities: [chat, tools, reasoning]";
  const auto result = Build(with(reasons, "llamacpp"));
  ASSERT_TRUE(result) << testing::PrintToString(result.error());
  EXPECT_TRUE(result->models(0).reasoning_budget());
  EXPECT_TRUE(result->models(0).keep_system_messages());
  EXPECT_FALSE(result->models(1).reasoning_budget());
  EXPECT_FALSE(result->models(1).keep_system_messages());
  EXPECT_THAT(Problem(with(reasons, "sglang")),
              HasSubstr("\"engine-2\" cannot limit reasoning: its kind is sglang"));
  EXPECT_THAT(Problem(with("capabilities: [chat]", "vllm")),
              HasSubstr("needs the capability reasoning"));
}

TEST(CatalogRules, TheDigestCoversTheContentNotTheText) {
  const std::string digest = Build(kGoodCatalog)->digest();
  EXPECT_EQ(Build("# a comment\n" + kGoodCatalog)->digest(), digest);
  EXPECT_NE(Build(CatalogWith("\"2.2\"", "\"2.3\""))->digest(), digest);
  EXPECT_NE(Build(CatalogWith("api_key: secret", "api_key: other"))->digest(), digest);
}

TEST(CatalogRules, EveryPriceHasTheVersionOfTheSnapshot) {
  auto snapshot = *Build(kGoodCatalog);
  SetVersion(snapshot, 42);
  EXPECT_EQ(snapshot.version(), 42);
  for (const auto& model : snapshot.models()) EXPECT_EQ(model.price().version(), 42);
}

TEST(CatalogRules, AllProblemsAreReportedAtOnce) {
  const auto result = Build("models: [{id: x}, {id: a/b, pool: p}]\npools: [{name: p}]\n");
  ASSERT_FALSE(result);
  EXPECT_GE(result.error().size(), 8u);
}

TEST(CatalogRules, ModelIds) {
  for (const char* bad : {"large", "a/b/c", "/large", "acme/", "ac me/large", "acme/la\\u0000rge",
                          "-a/b", "a/.b", "a/b?", "\\u00e4/b"}) {
    EXPECT_THAT(Problem(CatalogWith("id: acme/large", std::string("id: \"") + bad + "\"")),
                HasSubstr("id: must be <namespace>/<model>"))
        << bad;
  }
  EXPECT_THAT(Problem(CatalogWith("acme/large", "tollgate/large")),
              HasSubstr("refused legacy form"));
  EXPECT_EQ(Problem(CatalogWith("acme/large", "Tollgate/large")), "accepted");  // case-sensitive
  EXPECT_THAT(Problem(CatalogWith("acme/small", "acme/large")), HasSubstr("used by two models"));
  EXPECT_EQ(Problem(CatalogWith("acme/small", "acme/Large")), "accepted");
}

TEST(CatalogRules, Sizes) {
  EXPECT_THAT(Problem(CatalogWith("131072", "65535")),
              HasSubstr("must not be above context_window (65535)"));
  EXPECT_EQ(Problem(CatalogWith("131072", "65536")), "accepted");
  EXPECT_THAT(Problem(CatalogWith("8192", "-1")), HasSubstr("context_window"));
  EXPECT_THAT(Problem(CatalogWith("65536", "-1")), HasSubstr("max_output_tokens"));
  EXPECT_THAT(Problem(CatalogWith("max_concurrency: 64", "max_concurrency: -1")),
              HasSubstr("max_concurrency"));
}

TEST(CatalogRules, Prices) {
  for (const char* bad :
       {"-1", "1e3", "0.1234567", "free", "1,5", "99999999999999999999", " 1", "0x1"}) {
    EXPECT_THAT(Problem(CatalogWith("\"0.15\"", std::string("\"") + bad + "\"")),
                HasSubstr("input_usd_per_million"))
        << bad;
  }
  // The ledger refuses requests with higher rates.
  EXPECT_THAT(Problem(CatalogWith("\"0.15\"", "\"100000\"")), "accepted");
  EXPECT_THAT(Problem(CatalogWith("\"0.15\"", "\"100000.000001\"")),
              HasSubstr("input_usd_per_million: \"100000.000001\" is not a price"));
  EXPECT_THAT(Problem(CatalogWith("\"2.2\"", "\"100001\"")),
              HasSubstr("output_usd_per_million: \"100001\" is not a price"));
  EXPECT_THAT(Problem(CatalogWith("    output_usd_per_million: \"2.2\"\n", "")),
              HasSubstr("output_usd_per_million: is missing"));
}

TEST(CatalogRules, Capabilities) {
  EXPECT_THAT(Problem(CatalogWith("[chat, tools", "[chat, tool")),
              HasSubstr("(did you mean \"tools\"?)"));
  EXPECT_THAT(Problem(CatalogWith("[chat, tools", "[chat, chat")), HasSubstr("is listed twice"));
  EXPECT_THAT(Problem(CatalogWith("[chat, tools", "[tools")), HasSubstr("at least one of chat"));
}

// A catalog of models, each given as id, capability and fall-backs.
std::string WithFallbacks(const std::vector<std::array<std::string, 3>>& models) {
  std::string text = "models:\n";
  for (const auto& [id, capability, fallbacks] : models) {
    text += "  - {id: " + id +
            ", context_window: 10, input_usd_per_million: \"1\", "
            "output_usd_per_million: \"1\", capabilities: [" +
            capability +
            "], pool: main, "
            "fallbacks: [" +
            fallbacks + "]}\n";
  }
  return text + "pools: [{name: main, engines: [{id: e, base_url: \"http://127.0.0.1:1\"}]}]\n";
}

TEST(CatalogRules, FallBacksIncludeThoseOfTheFallBacks) {
  const auto result = Build(WithFallbacks({{"m/a", "chat", "m/b, m/c"},
                                           {"m/b", "chat", "m/d"},
                                           {"m/c", "chat", "m/d"},
                                           {"m/d", "chat", ""}}));
  ASSERT_TRUE(result) << testing::PrintToString(result.error());
  EXPECT_THAT(result->models(0).fallbacks(), testing::ElementsAre("m/b", "m/d", "m/c"));
  EXPECT_THAT(result->models(1).fallbacks(), testing::ElementsAre("m/d"));
  EXPECT_THAT(result->models(3).fallbacks(), testing::IsEmpty());
}

TEST(CatalogRules, FallBacksMustExistAndLeadNowhereBack) {
  EXPECT_THAT(Problem(WithFallbacks({{"m/a", "chat", "m/x"}})),
              HasSubstr("model \"m/a\": fallbacks: \"m/x\" is not the id of a model"));
  EXPECT_THAT(Problem(WithFallbacks({{"m/a", "chat", "m/a"}})), HasSubstr("leads back to itself"));
  // Every model of a cycle is reported.
  const auto loop = Build(
      WithFallbacks({{"m/a", "chat", "m/b"}, {"m/b", "chat", "m/c"}, {"m/c", "chat", "m/b"}}));
  ASSERT_FALSE(loop);
  EXPECT_THAT(loop.error(), testing::Each(HasSubstr("leads back to itself")));
  EXPECT_EQ(loop.error().size(), 3u);
}

TEST(CatalogRules, FallBacksGenerateTheSame) {
  EXPECT_THAT(Problem(WithFallbacks({{"m/a", "embedding", "m/b"}, {"m/b", "embedding", ""}})),
              HasSubstr("must generate text"));
  EXPECT_THAT(Problem(WithFallbacks({{"m/a", "chat", "m/b"}, {"m/b", "completion", ""}})),
              HasSubstr("must generate text"));
}

TEST(CatalogRules, AtMostSevenFallBacks) {
  std::vector<std::array<std::string, 3>> models = {{"m/m0", "chat", "m/m1"}};
  for (int i = 1; i < 8; ++i) {
    models.push_back({"m/m" + std::to_string(i), "chat", "m/m" + std::to_string(i + 1)});
  }
  models.push_back({"m/m8", "chat", ""});
  EXPECT_THAT(Problem(WithFallbacks(models)), HasSubstr("model \"m/m0\": fallbacks: must lead to"));
  models.erase(models.begin());
  EXPECT_EQ(Problem(WithFallbacks(models)), "accepted");
}

TEST(CatalogRules, RetentionIsTakenOver) {
  const auto result = Build(CatalogWith("    pool: ", "    zero_retention: true\n    pool: "));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->models(0).zero_retention());
  EXPECT_FALSE(result->models(1).zero_retention());
}

TEST(CatalogRules, Dates) {
  for (const char* bad : {"2026-02-30", "2026-1-1", "31.01.2026", "2026-13-01", "-026-01-01"}) {
    EXPECT_THAT(Problem(CatalogWith("2026-01-31", std::string("\"") + bad + "\"")),
                HasSubstr("created:"))
        << bad;
  }
}

TEST(CatalogRules, PoolsAndEngines) {
  EXPECT_THAT(Problem(CatalogWith("id: engine-2", "id: engine-1")),
              HasSubstr("used by two engines"));
  EXPECT_THAT(Problem(kGoodCatalog + "  - name: spare\n"),
              HasSubstr("engines: must list at least one"));
  EXPECT_THAT(
      Problem(kGoodCatalog + "  - name: main\n    engines: [{id: e3, base_url: \"http://h:1\"}]\n"),
      HasSubstr("used by two pools"));
  EXPECT_THAT(Problem(CatalogWith("workspace: team-a", "workspace: Team A")),
              HasSubstr("not a workspace id"));
  EXPECT_THAT(Problem(CatalogWith("documentation_url: https://", "documentation_url: javascript:")),
              HasSubstr("documentation_url"));
}

const std::string kUnlisted = R"(unlisted:
  pool: main
  context_window: 32768
  input_usd_per_million: "0.5"
  output_usd_per_million: "1.5"
)";

TEST(CatalogRules, UnlistedTermsBecomeAModelWithoutAnId) {  // decision 20
  EXPECT_FALSE(Build(kGoodCatalog)->has_unlisted());
  auto snapshot = *Build(kGoodCatalog + kUnlisted);
  SetVersion(snapshot, 42);
  ASSERT_TRUE(snapshot.has_unlisted());
  const v1::Model& unlisted = snapshot.unlisted();
  EXPECT_EQ(unlisted.id(), "");
  EXPECT_EQ(unlisted.engine_model(), "");
  EXPECT_EQ(unlisted.pool(), "main");
  EXPECT_EQ(unlisted.context_window(), 32'768);
  EXPECT_EQ(unlisted.max_output_tokens(), 32'768);
  EXPECT_EQ(unlisted.price().input_pico_usd(), 500'000);
  EXPECT_EQ(unlisted.price().output_pico_usd(), 1'500'000);
  EXPECT_EQ(unlisted.price().version(), 42);
  EXPECT_TRUE(unlisted.serving());
  ASSERT_EQ(unlisted.capabilities_size(), 1);
  EXPECT_EQ(unlisted.capabilities(0), v1::CAPABILITY_COMPLETION);
  EXPECT_NE(snapshot.digest(), Build(kGoodCatalog)->digest());
}

TEST(CatalogRules, UnlistedTermsAreCheckedLikeAModel) {
  const auto problem_with = [](const std::string& from, const std::string& to) {
    std::string text = kUnlisted;
    text.replace(text.find(from), from.size(), to);
    return Problem(kGoodCatalog + text);
  };
  EXPECT_EQ(problem_with("main", "mian"),
            "catalog.yaml: unlisted: pool: \"mian\" is not the name of a pool in this file");
  EXPECT_THAT(problem_with("32768", "0"), HasSubstr("unlisted: context_window:"));
  EXPECT_THAT(problem_with("0.5", "free"), HasSubstr("unlisted: input_usd_per_million:"));
  EXPECT_THAT(problem_with("  output_usd_per_million: \"1.5\"\n", ""),
              HasSubstr("unlisted: output_usd_per_million: is missing"));
  EXPECT_THAT(problem_with("pool:", "id: a/b\n  pool:"), HasSubstr("id"));
}

TEST(CatalogRules, TemplatesAndSharedCachesAreOffUnlessTheFileSaysSo) {  // decision 45
  const auto result = Build(R"(
models:
  - {id: a/a, context_window: 8, input_usd_per_million: "0", output_usd_per_million: "0",
     capabilities: [chat], pool: p}
  - {id: a/b, context_window: 8, input_usd_per_million: "0", output_usd_per_million: "0",
     capabilities: [chat], pool: p, allow_chat_template: true}
pools:
  - name: p
    engines:
      - {id: one, kind: vllm, base_url: "http://127.0.0.1:1"}
      - {id: two, kind: vllm, base_url: "http://127.0.0.1:2", shared_cache: true, each_address: true, zone: z-1}
)");
  ASSERT_TRUE(result) << testing::PrintToString(result.error());
  EXPECT_FALSE(result->models(0).allow_chat_template());
  EXPECT_TRUE(result->models(1).allow_chat_template());
  EXPECT_FALSE(result->pools(0).engines(0).shared_cache());
  EXPECT_TRUE(result->pools(0).engines(1).shared_cache());
  EXPECT_FALSE(result->pools(0).engines(0).each_address());
  EXPECT_TRUE(result->pools(0).engines(1).each_address());
  EXPECT_EQ(result->pools(0).engines(1).zone(), "z-1");
}

}  // namespace
}  // namespace tollgate::catalog
