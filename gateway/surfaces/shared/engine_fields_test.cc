// Members that affect more than the caller's own request, on every surface. Decisions 17 and 45,
// H70.
#include "gateway/surfaces/shared/engine_fields.h"

#include <gtest/gtest.h>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"

namespace tollgate::gateway {
namespace {

struct Row {
  const char* name;
  const Surface& (*surface)();
  const char* prompt;  // the required members
};

class EngineFields : public ::testing::TestWithParam<Row> {
 protected:
  static Result<CanonicalRequest> Parse(const std::string& more) {
    const std::string body = std::string(R"({"model":"m",)") + GetParam().prompt + "," + more + "}";
    const auto document = json::Document::ParseView(body);
    EXPECT_TRUE(document.ok()) << body;
    return GetParam().surface().ParseRequest(*document);
  }
  static std::string Refused(const std::string& more) {
    const auto request = Parse(more);
    return request ? "accepted" : request.error().param;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Surfaces, EngineFields,
    ::testing::Values(Row{"chat", ChatSurface, R"("messages":[{"role":"user","content":"x"}])"},
                      Row{"completions", CompletionsSurface, R"("prompt":"x")"},
                      Row{"embeddings", EmbeddingsSurface, R"("input":"x")"},
                      Row{"messages", MessagesSurface,
                          R"("max_tokens":5,"messages":[{"role":"user","content":"x"}])"},
                      Row{"count_tokens", CountTokensSurface,
                          R"("messages":[{"role":"user","content":"x"}])"},
                      Row{"responses", ResponsesSurface, R"("input":"x")"}),
    [](const auto& info) { return info.param.name; });

TEST_P(EngineFields, CodeIsRefused) {
  for (const char* name :
       {"custom_logit_processor", "logits_processors", "stop_regex", "chat_parser"}) {
    EXPECT_EQ(Refused("\"" + std::string(name) + R"(":"x")"), name);
    EXPECT_EQ(Refused("\"" + std::string(name) + "\":null"), "accepted") << "null is absent";
  }
  EXPECT_EQ(Refused(R"("\u0073top_regex":"x")"), "stop_regex") << "an escaped name is the same";
}

TEST_P(EngineFields, TemplatesAreNamedForTheCatalogToDecide) {
  EXPECT_EQ(Parse(R"("x":1)")->template_member, "");
  EXPECT_EQ(Parse(R"("chat_template":"{{x}}")")->template_member, "chat_template");
  EXPECT_EQ(Parse(R"("chat_template_kwargs":{"chat_template":"{{x}}"})")->template_member,
            "chat_template_kwargs");
  EXPECT_EQ(Parse(R"("chat_template_kwargs":{"enable_thinking":false})")->template_member, "");
  EXPECT_EQ(Refused(R"("chat_template":{"default":"x"})"), "chat_template");
}

TEST_P(EngineFields, ArgumentsOfTheTemplatesFunctionAreRefused) {
  for (const char* name : {"tokenize", "return_dict", "tokenizer_kwargs", "truncation"}) {
    EXPECT_EQ(Refused(R"("chat_template_kwargs":{")" + std::string(name) + "\":true}"),
              "chat_template_kwargs")
        << name;
  }
  EXPECT_EQ(Refused(R"("chat_template_kwargs":{"tok\u0065nize":true})"), "chat_template_kwargs");
}

TEST_P(EngineFields, TheOwnCacheSaltDoesNotReachTheEngineAsItIs) {
  const auto request = Parse(R"("cache_salt":"s\u0061lt")");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->cache_salt, "salt");
  EXPECT_EQ(request->members_json.find("cache_salt"), std::string::npos);
  EXPECT_EQ(Refused(R"("cache_salt":5)"), "cache_salt");
  EXPECT_EQ(Refused(R"("cache_salt":")" + std::string(1025, 'x') + "\""), "cache_salt");
}

// The gateway handles OpenRouter's member; engines do not get it.
TEST_P(EngineFields, UsageAsksForTheCost) {
  const std::string plain = Parse(R"("last":1)")->members_json;
  const auto asks = Parse(R"("usage":{"include":true},"last":1)");
  ASSERT_TRUE(asks);
  EXPECT_TRUE(asks->include_cost);
  EXPECT_EQ(asks->members_json, plain);
  for (const char* other : {R"("usage":{"include":false})", R"("usage":{})", R"("usage":null)"}) {
    const auto request = Parse(std::string(other) + R"(,"last":1)");
    ASSERT_TRUE(request) << other;
    EXPECT_FALSE(request->include_cost) << other;
    EXPECT_EQ(request->members_json, plain) << other;
  }
  EXPECT_EQ(Refused(R"("usage":{"include":1})"), "usage");
  EXPECT_EQ(Refused(R"("usage":true)"), "usage");
}

TEST_P(EngineFields, WhatTenantsShareIsDropped) {
  std::string members = R"("last":1)";
  for (const char* name : {"priority",
                           "request_id",
                           "rid",
                           "extra_key",
                           "session_id",
                           "session_params",
                           "kv_transfer_params",
                           "ec_transfer_params",
                           "bootstrap_host",
                           "bootstrap_port",
                           "bootstrap_room",
                           "routed_dp_rank",
                           "data_parallel_rank",
                           "lora_path",
                           "lora",
                           "lora_request",
                           "mm_processor_kwargs",
                           "media_io_kwargs",
                           "return_hidden_states",
                           "vllm_xargs",
                           "image_data",
                           "multi_modal_data",
                           "prompt_embeds",
                           "custom_labels"}) {
    members += ",\"" + std::string(name) + "\":\"x\"";
  }
  EXPECT_EQ(Parse(members)->members_json, Parse(R"("last":1)")->members_json);
}

}  // namespace
}  // namespace tollgate::gateway
