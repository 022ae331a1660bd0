#include "services/catalog/storage/catalog_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/catalog/domain/engine_url.h"
#include "services/catalog/testing/sample_catalog.h"

namespace tollgate::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

BasicResult<v1::Snapshot, Complaints> Read(const std::string& text) {
  return ReadCatalog(text, "catalog.yaml", ".", "tollgate");
}

// The only complaint about this text.
std::string Complaint(const std::string& text) {
  const auto result = Read(text);
  if (result) return "accepted";
  if (result.error().size() != 1)
    return "several complaints: " + testing::PrintToString(result.error());
  return result.error()[0];
}

TEST(CatalogRules, AGoodFileBecomesASnapshot) {
  const auto result = Read(kGoodCatalog);
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
  EXPECT_EQ(small.max_output_tokens(), 8192);  // the window when not given
  EXPECT_EQ(small.price().output_pico_usd(), 1);
  EXPECT_EQ(small.workspace_id(), "team-a");
  EXPECT_EQ(small.engine_model(), "small-q4");
  EXPECT_FALSE(small.serving());
  ASSERT_EQ(result->pools_size(), 1);
  EXPECT_EQ(result->pools(0).engines(1).kind(), v1::ENGINE_KIND_LLAMACPP);
  EXPECT_EQ(result->pools(0).engines(1).api_key(), "secret");
  EXPECT_EQ(result->digest().size(), 64u);
}

TEST(CatalogRules, TheDigestFollowsTheContentNotTheText) {
  const std::string digest = Read(kGoodCatalog)->digest();
  EXPECT_EQ(Read("# a comment\n" + kGoodCatalog)->digest(), digest);
  EXPECT_NE(Read(Bent("\"2.2\"", "\"2.3\""))->digest(), digest);
  EXPECT_NE(Read(Bent("api_key: secret", "api_key: other"))->digest(), digest);
}

TEST(CatalogRules, TheVersionStandsOnEveryPrice) {
  auto snapshot = *Read(kGoodCatalog);
  SetVersion(snapshot, 42);
  EXPECT_EQ(snapshot.version(), 42);
  for (const auto& model : snapshot.models()) EXPECT_EQ(model.price().version(), 42);
}

TEST(CatalogRules, ComplaintsNameFileLineItemAndField) {
  EXPECT_EQ(Complaint(Bent("pool: main", "pool: mian")),
            "catalog.yaml:11: model \"acme/large\": pool: \"mian\" is not the name of a pool in "
            "this file");
  EXPECT_THAT(Complaint(Bent("kind: vllm", "kind: vlm")),
              StartsWith("catalog.yaml:25: engine \"engine-1\": kind: \"vlm\" is not one of"));
  // A field that is not there points at its item.
  EXPECT_THAT(Complaint(Bent("    context_window: 8192\n", "")),
              StartsWith("catalog.yaml:12: model \"acme/small\": context_window:"));
}

TEST(CatalogRules, AllComplaintsComeAtOnce) {
  const auto result = Read("models: [{id: x}, {id: a/b, pool: p}]\npools: [{name: p}]\n");
  ASSERT_FALSE(result);
  EXPECT_GE(result.error().size(), 8u);
}

TEST(CatalogRules, ModelIds) {
  for (const char* bad : {"large", "a/b/c", "/large", "acme/", "ac me/large", "acme/la\\u0000rge",
                          "-a/b", "a/.b", "a/b?", "\\u00e4/b"}) {
    EXPECT_THAT(Complaint(Bent("id: acme/large", std::string("id: \"") + bad + "\"")),
                HasSubstr("id: must be <namespace>/<model>"))
        << bad;
  }
  EXPECT_THAT(Complaint(Bent("acme/large", "tollgate/large")), HasSubstr("refused legacy form"));
  EXPECT_EQ(Complaint(Bent("acme/large", "Tollgate/large")), "accepted");  // case-sensitive
  EXPECT_THAT(Complaint(Bent("acme/small", "acme/large")), HasSubstr("used by two models"));
  EXPECT_EQ(Complaint(Bent("acme/small", "acme/Large")), "accepted");
}

TEST(CatalogRules, Sizes) {
  EXPECT_THAT(Complaint(Bent("131072", "65535")),
              HasSubstr("must not be above context_window (65535)"));
  EXPECT_EQ(Complaint(Bent("131072", "65536")), "accepted");
  EXPECT_THAT(Complaint(Bent("8192", "-1")), HasSubstr("context_window"));
  EXPECT_THAT(Complaint(Bent("65536", "-1")), HasSubstr("max_output_tokens"));
  EXPECT_THAT(Complaint(Bent("max_concurrency: 64", "max_concurrency: -1")),
              HasSubstr("max_concurrency"));
}

TEST(CatalogRules, Prices) {
  for (const char* bad :
       {"-1", "1e3", "0.1234567", "free", "1,5", "99999999999999999999", " 1", "0x1"}) {
    EXPECT_THAT(Complaint(Bent("\"0.15\"", std::string("\"") + bad + "\"")),
                HasSubstr("input_usd_per_million"))
        << bad;
  }
  EXPECT_THAT(Complaint(Bent("    output_usd_per_million: \"2.2\"\n", "")),
              HasSubstr("output_usd_per_million: is missing"));
}

TEST(CatalogRules, Capabilities) {
  EXPECT_THAT(Complaint(Bent("[chat, tools", "[chat, tool")),
              HasSubstr("(did you mean \"tools\"?)"));
  EXPECT_THAT(Complaint(Bent("[chat, tools", "[chat, chat")), HasSubstr("stands there twice"));
  EXPECT_THAT(Complaint(Bent("[chat, tools", "[tools")), HasSubstr("at least one of chat"));
}

TEST(CatalogRules, Dates) {
  for (const char* bad : {"2026-02-30", "2026-1-1", "31.01.2026", "2026-13-01", "-026-01-01"}) {
    EXPECT_THAT(Complaint(Bent("2026-01-31", std::string("\"") + bad + "\"")),
                HasSubstr("created:"))
        << bad;
  }
}

TEST(CatalogRules, PoolsAndEngines) {
  EXPECT_THAT(Complaint(Bent("id: engine-2", "id: engine-1")), HasSubstr("used by two engines"));
  EXPECT_THAT(Complaint(kGoodCatalog + "  - name: spare\n"),
              HasSubstr("engines: must list at least one"));
  EXPECT_THAT(Complaint(kGoodCatalog +
                        "  - name: main\n    engines: [{id: e3, base_url: \"http://h:1\"}]\n"),
              HasSubstr("used by two pools"));
  EXPECT_THAT(Complaint(Bent("workspace: team-a", "workspace: Team A")),
              HasSubstr("not a workspace id"));
  EXPECT_THAT(Complaint(Bent("documentation_url: https://", "documentation_url: javascript:")),
              HasSubstr("documentation_url"));
}

const std::string kUnlisted = R"(unlisted:
  pool: main
  context_window: 32768
  input_usd_per_million: "0.5"
  output_usd_per_million: "1.5"
)";

TEST(CatalogRules, TermsForIdsOutsideTheCatalog) {  // decisions.md 20
  EXPECT_FALSE(Read(kGoodCatalog)->has_unlisted());
  auto snapshot = *Read(kGoodCatalog + kUnlisted);
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
  EXPECT_NE(snapshot.digest(), Read(kGoodCatalog)->digest());
}

TEST(CatalogRules, TheTermsForOtherIdsAreCheckedLikeAModel) {
  const auto bent = [](const std::string& from, const std::string& to) {
    std::string text = kUnlisted;
    text.replace(text.find(from), from.size(), to);
    return Complaint(kGoodCatalog + text);
  };
  EXPECT_EQ(bent("main", "mian"),
            "catalog.yaml:33: unlisted: pool: \"mian\" is not the name of a pool in this file");
  EXPECT_THAT(bent("32768", "0"), HasSubstr("unlisted: context_window:"));
  EXPECT_THAT(bent("0.5", "free"), HasSubstr("unlisted: input_usd_per_million:"));
  EXPECT_THAT(bent("  output_usd_per_million: \"1.5\"\n", ""),
              HasSubstr("unlisted: output_usd_per_million: is missing"));
  EXPECT_THAT(bent("pool:", "id: a/b\n  pool:"), HasSubstr("id"));
}

TEST(CatalogRules, TheFileIsReadStrictly) {
  EXPECT_THAT(Complaint(Bent("pool: main", "pol: main")), HasSubstr("pol"));
  EXPECT_THAT(Complaint("models: 5"), StartsWith("catalog.yaml"));
  EXPECT_EQ(Complaint(""), "accepted");  // no models is a catalog too
}

TEST(EngineUrl, OnlySchemeHostAndPort) {
  for (const char* good :
       {"http://127.0.0.1:8000", "https://gpu.example.com:443", "https://gpu.example.com",
        "https://[::1]", "http://[::1]:8000", "http://engine_1:8000"}) {
    EXPECT_EQ(EngineUrlProblem(good), "") << good;
  }
  EXPECT_THAT(EngineUrlProblem("http://h:8000/v1"), HasSubstr("without /v1"));
  for (const char* bad :
       {"", "h:8000", "ftp://h:8000", "http://h", "http://[::1]", "https://h:", "http://h:0",
        "http://h:65536", "http://:8000", "http://h:8000/", "http://h:8000/path",
        "http://u:p@h:8000", "http://h:8000?x", "http://h:80 ", "http://h\r\n:80", "http://[::1:80",
        "http://h:-1", "HTTP://h:1"}) {
    EXPECT_NE(EngineUrlProblem(bad), "") << bad;
  }
}

}  // namespace
}  // namespace tollgate::catalog
