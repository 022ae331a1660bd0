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

TEST(EngineRequest, TgiGetsAFormatInItsWords) {
  inference::v1::GenerateRequest request;
  request.set_members_json(R"("response_format":{"type":"json_object"})");
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_TGI, "m", EngineAnswer::kWhole),
            R"({"model":"m","response_format":{"type":"json_object","value":{"type":"object"}}})");
}

TEST(EngineRequest, ChoicesOfACompletionAreThoseOfEachPrompt) {
  inference::v1::GenerateRequest request;
  request.set_kind(inference::v1::REQUEST_KIND_CHAT);
  request.set_choices(3);
  EXPECT_EQ(ChoicesPerPrompt(request), 3) << "a chat is one prompt";
  request.set_kind(inference::v1::REQUEST_KIND_COMPLETION);
  request.set_members_json(R"("prompt":["a","b","c"])");
  EXPECT_EQ(ChoicesPerPrompt(request), 1);
  request.set_choices(6);
  request.set_members_json(R"("prompt":["a","b","c"],"n":2)");
  EXPECT_EQ(ChoicesPerPrompt(request), 2);
  for (const char* n : {"0", "-1", "99999999999999999999", "\"2\"", "null"}) {
    request.set_members_json(R"("prompt":["a"],"n":)" + std::string(n));
    EXPECT_GE(ChoicesPerPrompt(request), 1) << n;
    EXPECT_LE(ChoicesPerPrompt(request), 6) << n;
  }
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
  // A caller cannot use another workspace's salt: its own is hashed together with its workspace.
  salts.insert(CacheSalt("", "other", CacheSalt("", "team", "")));
  for (const auto& [workspace, own] : pairs) salts.insert(CacheSalt("key", workspace, own));
  EXPECT_EQ(salts.size(), 2 * std::size(pairs) + 1);
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

// docs/design/wire.md 2.6: a kind gets only the members that it understands.
TEST(EngineRequest, ReasoningIsSaidInTheWordsOfTheKind) {
  using namespace catalog::v1;  // NOLINT: engine kinds
  constexpr auto kOn = inference::v1::REASONING_SWITCH_ON;
  constexpr auto kOff = inference::v1::REASONING_SWITCH_OFF;
  constexpr auto kUnsaid = inference::v1::REASONING_SWITCH_UNSPECIFIED;
  const std::string on = R"(,"chat_template_kwargs":{"enable_thinking":true,"thinking":true})";
  const std::string off = R"(,"chat_template_kwargs":{"enable_thinking":false,"thinking":false})";
  const auto effort = [](const std::string& level) {
    return level.empty() ? "" : R"(,"reasoning_effort":")" + level + "\"";
  };
  const struct {
    inference::v1::ReasoningSwitch thinking;
    const char* effort;
    std::string by_template;  // vllm, sglang, llamacpp
    std::string ollama, openai;
  } kCases[] = {
      {kUnsaid, "", "", "", ""},
      {kOn, "", on, "", ""},
      {kOff, "", off, "none", "none"},
      {kOff, "none", off + effort("none"), "none", "none"},
      {kOff, "high", off + effort("high"), "none", "none"},
      {kOn, "high", on + effort("high"), "high", "high"},
      {kUnsaid, "low", effort("low"), "low", "low"},
      {kUnsaid, "none", effort("none"), "none", "none"},
      {kOn, "minimal", on + effort("minimal"), "low", "minimal"},
      {kOn, "xhigh", on + effort("xhigh"), "high", "xhigh"},
      {kOn, "max", on + effort("max"), "high", "max"},
  };
  for (const auto& c : kCases) {
    inference::v1::GenerateRequest request;
    request.mutable_reasoning()->set_thinking(c.thinking);
    request.mutable_reasoning()->set_effort(c.effort);
    request.set_members_json(R"("messages":[])");
    const auto sent = [&](EngineKind kind) {
      return BuildEngineBody(request, kind, "m", EngineAnswer::kWhole);
    };
    const auto body = [](const std::string& members) {
      return R"({"model":"m")" + members + R"(,"messages":[]})";
    };
    SCOPED_TRACE(body(c.by_template));
    for (const EngineKind kind : {ENGINE_KIND_VLLM, ENGINE_KIND_SGLANG, ENGINE_KIND_LLAMACPP}) {
      EXPECT_EQ(sent(kind), body(c.by_template));
    }
    EXPECT_EQ(sent(ENGINE_KIND_OLLAMA), body(effort(c.ollama)));
    EXPECT_EQ(sent(ENGINE_KIND_OPENAI), body(effort(c.openai)));
    EXPECT_EQ(sent(ENGINE_KIND_TGI), body(""));
  }
}

TEST(EngineRequest, TheCallersOwnTemplateArgumentsAreNotSentTwice) {
  inference::v1::GenerateRequest request;
  request.mutable_reasoning()->set_thinking(inference::v1::REASONING_SWITCH_OFF);
  request.mutable_reasoning()->set_effort("low");
  request.mutable_reasoning()->set_own_template_arguments(true);
  request.set_members_json(R"("chat_template_kwargs":{"x":1})");
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_VLLM, "m", EngineAnswer::kWhole),
            R"({"model":"m","reasoning_effort":"low","chat_template_kwargs":{"x":1}})");
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_OLLAMA, "m", EngineAnswer::kWhole),
            R"({"model":"m","reasoning_effort":"none","chat_template_kwargs":{"x":1}})");
}

}  // namespace
}  // namespace tollgate::inference_router
