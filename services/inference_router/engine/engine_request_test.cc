#include "services/inference_router/engine/engine_request.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tollgate::inference_router {
namespace {

TEST(EngineRequest, InsertsTheClientsMembers) {
  inference::v1::GenerateRequest request;
  request.set_members_json(R"("messages":[{"role":"user","content":"hi"}],"top_k":3)");
  request.set_max_tokens(7);
  EXPECT_EQ(
      BuildEngineBody(request, catalog::v1::ENGINE_KIND_VLLM, "a\"b", EngineAnswer::kStreamed),
      R"({"model":"a\"b","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"max_tokens":7,"messages":[{"role":"user","content":"hi"}],"top_k":3})");
  request.clear_members_json();
  request.set_max_tokens(0);
  EXPECT_EQ(
      BuildEngineBody(request, catalog::v1::ENGINE_KIND_LLAMACPP, "m", EngineAnswer::kStreamed),
      R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_LLAMACPP, "m", EngineAnswer::kWhole),
            R"({"model":"m"})");
}

TEST(EngineRequest, TheSaltIsTheLastMember) {
  inference::v1::GenerateRequest request;
  request.set_kind(inference::v1::REQUEST_KIND_EMBEDDING);
  request.set_members_json(R"("input":"x")");
  EXPECT_EQ(
      BuildEngineBody(request, catalog::v1::ENGINE_KIND_VLLM, "m", EngineAnswer::kStreamed, "ab"),
      R"({"model":"m","encoding_format":"base64","input":"x","cache_salt":"ab"})");
}

TEST(EngineRequest, SaltsAreStableAndDifferForEveryPairOfWorkspaceAndOwnSalt) {
  EXPECT_EQ(CacheSalt("", "team", "x"), CacheSalt("", "team", "x"));
  EXPECT_EQ(CacheSalt("", "team", "").size(), 64u);
  std::set<std::string> salts;
  const std::pair<const char*, const char*> pairs[] = {
      {"team", ""},  {"team", "x"}, {"team", "y"},  {"tea", "mx"},  {"teamx", ""},
      {"", "teamx"}, {"other", ""}, {"other", "x"}, {"4\nteam", ""}};
  for (const auto& [workspace, own] : pairs) salts.insert(CacheSalt("", workspace, own));
  // A caller cannot name another's salt: its own is hashed with its workspace.
  salts.insert(CacheSalt("", "other", CacheSalt("", "team", "")));
  for (const auto& [workspace, own] : pairs) salts.insert(CacheSalt("key", workspace, own));
  EXPECT_EQ(salts.size(), 2 * std::size(pairs) + 1);
}

TEST(EngineRequest, OnlySomeKindsKnowASalt) {
  EXPECT_TRUE(KnowsCacheSalt(catalog::v1::ENGINE_KIND_VLLM));
  EXPECT_TRUE(KnowsCacheSalt(catalog::v1::ENGINE_KIND_SGLANG));
  for (const auto kind : {catalog::v1::ENGINE_KIND_LLAMACPP, catalog::v1::ENGINE_KIND_TGI,
                          catalog::v1::ENGINE_KIND_OLLAMA, catalog::v1::ENGINE_KIND_OPENAI}) {
    EXPECT_FALSE(KnowsCacheSalt(kind));
  }
}

TEST(EngineRequest, TheReasoningIsBoundedWhereTheKindCanDoIt) {
  inference::v1::GenerateRequest request;
  request.set_reasoning_budget_tokens(700);
  EXPECT_NE(BuildEngineBody(request, catalog::v1::ENGINE_KIND_VLLM, "m", EngineAnswer::kStreamed)
                .find(R"(,"thinking_token_budget":700)"),
            std::string::npos);
  EXPECT_NE(
      BuildEngineBody(request, catalog::v1::ENGINE_KIND_LLAMACPP, "m", EngineAnswer::kStreamed)
          .find(R"(,"thinking_budget_tokens":700)"),
      std::string::npos);
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_OLLAMA, "m", EngineAnswer::kStreamed)
                .find("700"),
            std::string::npos);
}

}  // namespace
}  // namespace tollgate::inference_router
