#include "services/inference_router/count/tokenizer_call.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

using namespace catalog::v1;  // NOLINT: engine kinds

constexpr char kMembers[] = R"("messages":[{"role":"user","content":"hi"}],"top_k":3)";

// See docs/design/wire.md 10.3.
TEST(TokenizerCall, AChatCallUsesTheKindsEndpointWithTheMembersOfTheRequest) {
  const std::string body = std::string(R"({"model":"a\"b",)") + kMembers + "}";
  for (const auto& [kind, target] :
       {std::pair(ENGINE_KIND_VLLM, "/tokenize"), std::pair(ENGINE_KIND_OPENAI, "/tokenize"),
        std::pair(ENGINE_KIND_SGLANG, "/tokenize"), std::pair(ENGINE_KIND_TGI, "/chat_tokenize"),
        std::pair(ENGINE_KIND_LLAMACPP, "/apply-template")}) {
    const TokenizerCall call = ChatCall(kind, "a\"b", kMembers, {});
    EXPECT_EQ(call.target, target);
    EXPECT_EQ(call.body, body);
  }
}

TEST(TokenizerCall, VllmGetsTemplateMembersAsTemplateArguments) {
  const auto moved = [](const std::string& members) {
    return ChatCall(ENGINE_KIND_VLLM, "m", members, {}).body;
  };
  EXPECT_EQ(moved(R"("messages":[],"reasoning_effort":"low")"),
            R"({"model":"m","messages":[],"chat_template_kwargs":{"reasoning_effort":"low"}})");
  EXPECT_EQ(
      moved(
          R"("documents":[{"text":"d"}],"chat_template_kwargs":{"a":1.50,"reasoning_effort":"x"},"reasoning_effort":"low","messages":[])"),
      R"({"model":"m","messages":[],"chat_template_kwargs":{"a":1.50,"documents":[{"text":"d"}],"reasoning_effort":"low"}})");
  // The same words inside a message have no effect.
  const std::string plain = R"("messages":[{"role":"user","content":"reasoning_effort"}],"x": 1e2)";
  EXPECT_EQ(moved(plain), R"({"model":"m",)" + plain + "}");
  const std::string arguments = R"("chat_template_kwargs":{"documents":[]},"messages":[])";
  EXPECT_EQ(moved(arguments),
            R"({"model":"m","messages":[],"chat_template_kwargs":{"documents":[]}})");
}

// The engine counts the same prompt that it gets later.
TEST(TokenizerCall, TheTemplateSeesHowMuchToReason) {
  inference::v1::Reasoning reasoning;
  reasoning.set_thinking(inference::v1::REASONING_SWITCH_OFF);
  reasoning.set_effort("low");
  const auto body = [&](EngineKind kind) {
    return ChatCall(kind, "m", R"("messages":[])", reasoning).body;
  };
  EXPECT_EQ(body(ENGINE_KIND_VLLM), R"({"model":"m","messages":[],"chat_template_kwargs":)"
                                    R"({"enable_thinking":false,"thinking":false,)"
                                    R"("reasoning_effort":"low"}})");
  EXPECT_EQ(body(ENGINE_KIND_LLAMACPP),
            R"({"model":"m","chat_template_kwargs":{"enable_thinking":false,"thinking":false},)"
            R"("reasoning_effort":"low","messages":[]})");
  EXPECT_EQ(body(ENGINE_KIND_TGI), R"({"model":"m","messages":[]})");
}

TEST(TokenizerCall, PromptsAreInsertedUnchanged) {
  const std::string prompt = R"("a\u0062 \"c\"")";
  EXPECT_EQ(PromptCall(ENGINE_KIND_VLLM, "m", prompt).body,
            R"({"model":"m","prompt":)" + prompt + "}");
  EXPECT_EQ(PromptCall(ENGINE_KIND_LLAMACPP, "m", prompt).body,
            R"({"content":)" + prompt + R"(,"add_special":true,"parse_special":true})");
  EXPECT_EQ(PromptCall(ENGINE_KIND_TGI, "m", prompt).body, R"({"inputs":)" + prompt + "}");
  for (auto kind : {ENGINE_KIND_VLLM, ENGINE_KIND_LLAMACPP, ENGINE_KIND_TGI}) {
    EXPECT_EQ(PromptCall(kind, "m", prompt).target, "/tokenize");
  }
}

TEST(TokenizerCall, ReadsTheResponseOfEachKind) {
  EXPECT_EQ(ReadCount(ENGINE_KIND_VLLM, R"({"count":3,"max_model_len":9,"tokens":[1,2,3]})"), 3);
  EXPECT_EQ(ReadCount(ENGINE_KIND_SGLANG, R"({"tokens":[],"count":0})"), 0);
  EXPECT_EQ(ReadCount(ENGINE_KIND_LLAMACPP, R"({"tokens":[5,6]})"), 2);
  EXPECT_EQ(ReadCount(ENGINE_KIND_TGI, R"([{"id":1,"text":"a","start":0,"stop":1}])"), 1);
  EXPECT_EQ(ReadCount(ENGINE_KIND_TGI, R"({"tokenize_response":[{"id":1},{"id":2}]})"), 2);
  for (const char* body : {"", "null", "[]", "{}", R"({"count":-1})", R"({"count":"3"})",
                           R"({"tokens":3})", R"({"tokenize_response":{}})", "<html>"}) {
    EXPECT_EQ(ReadCount(ENGINE_KIND_VLLM, body), std::nullopt) << body;
    EXPECT_EQ(ReadCount(ENGINE_KIND_LLAMACPP, body), std::nullopt) << body;
    if (std::string(body) != "[]") {
      EXPECT_EQ(ReadCount(ENGINE_KIND_TGI, body), std::nullopt) << body;
    }
  }
  EXPECT_EQ(ReadTemplated(R"({"prompt":"<|im|>\n\u00e9"})"), R"("<|im|>\n\u00e9")");
  EXPECT_EQ(ReadTemplated(R"({"prompt":7})"), std::nullopt);
  EXPECT_EQ(ReadTemplated("busy"), std::nullopt);
}

TEST(ReadPrompts, AcceptsEveryFormOfPrompt) {
  constexpr auto kCompletion = inference::v1::REQUEST_KIND_COMPLETION;
  const auto read = [](const std::string& prompt) {
    return ReadPrompts(kCompletion, "\"prompt\":" + prompt);
  };
  EXPECT_EQ(read(R"("a")")->texts, std::vector<std::string>{R"("a")"});
  EXPECT_EQ(read(R"(["a","b"])")->texts.size(), 2u);
  EXPECT_EQ(read("[1,2,3]")->tokens, 3);
  EXPECT_EQ(read("[[1,2],[3]]")->tokens, 3);
  EXPECT_FALSE(read("{}"));
  EXPECT_FALSE(read("[null]"));
  EXPECT_FALSE(ReadPrompts(kCompletion, R"("messages":[])"));
  EXPECT_EQ(read("[[1,2],[3,4,5]]")->longest_tokens, 3);
  const auto input = ReadPrompts(inference::v1::REQUEST_KIND_EMBEDDING, R"("input":["a","b"])");
  EXPECT_EQ(input->texts.size(), 2u);
}

TEST(ReadPrompts, OfSeveralOnlyThoseThatMayBeTooLong) {
  const std::string members =
      R"("input":["short",")" + std::string(84, 'a') + R"(",")" + std::string(85, 'b') + "\"]";
  const auto read = ReadPrompts(inference::v1::REQUEST_KIND_EMBEDDING, members, 100);
  ASSERT_EQ(read->texts.size(), 1u) << "a text may have 16 tokens more than bytes";
  EXPECT_EQ(read->texts[0][1], 'b');
}

}  // namespace
}  // namespace tollgate::inference_router
