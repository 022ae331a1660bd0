#include "gateway/handlers/model_entry.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(ModelEntry, ExactBytesOfAnEntry) {
  catalog::v1::Model model;
  model.set_id("deep/model-1");
  model.set_display_name("Model \"1\"");
  model.set_description("Says things.");
  model.set_context_window(131072);
  model.set_max_output_tokens(32768);
  model.mutable_price()->set_input_pico_usd(150'000);
  model.mutable_price()->set_output_pico_usd(2'200'000);
  model.add_capabilities(catalog::v1::CAPABILITY_CHAT);
  model.add_capabilities(catalog::v1::CAPABILITY_TOOLS);
  model.set_documentation_url("https://example.com/m");
  model.set_created_at_s(1735689600);
  EXPECT_EQ(
      RenderModelEntry(model),
      R"({"id":"deep/model-1","object":"model","created":1735689600,"owned_by":"deep",)"
      R"("context_window":131072,"max_output_tokens":32768,"max_input_tokens":98304,)"
      R"("pricing":{"input":0.15,"output":2.2,"currency":"USD","unit":"per_million_tokens",)"
      R"("prompt":"0.00000015","completion":"0.0000022"},"capabilities":["chat","tools"],)"
      R"("links":{"documentation":"https://example.com/m","details":"https://example.com/m"},)"
      R"("name":"Model \"1\"","description":"Says things.","canonical_slug":"deep/model-1",)"
      R"("hugging_face_id":"deep/model-1","context_length":131072,)"
      R"("architecture":{"modality":"text->text","input_modalities":["text"],)"
      R"("output_modalities":["text"],"tokenizer":"Other","instruct_type":null},)"
      R"("top_provider":{"context_length":131072,"max_completion_tokens":32768,)"
      R"("is_moderated":false},"supported_parameters":["max_tokens","temperature","top_p",)"
      R"("top_k","min_p","frequency_penalty","presence_penalty","repetition_penalty",)"
      R"("logit_bias","logprobs","seed","stop","max_completion_tokens","top_logprobs",)"
      R"("response_format","structured_outputs","tools","tool_choice","parallel_tool_calls"],)"
      R"("reasoning_parameters":[],)"
      R"("per_request_limits":null,"default_parameters":null,"supported_voices":null,)"
      R"("type":"model","display_name":"Model \"1\"","created_at":"2025-01-01T00:00:00Z",)"
      R"("lifecycle":"active","max_tokens":32768})");
}

TEST(ModelEntry, ModalitiesAndParametersFollowTheCapabilities) {
  catalog::v1::Model model;
  model.set_id("a/b");
  model.add_capabilities(catalog::v1::CAPABILITY_CHAT);
  model.add_capabilities(catalog::v1::CAPABILITY_VISION);
  model.add_capabilities(catalog::v1::CAPABILITY_REASONING);
  // The engines have no reasoning settings, so only what the gateway does itself is listed.
  std::string entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("include_reasoning"])"), std::string::npos);
  EXPECT_EQ(entry.find("reasoning_effort"), std::string::npos);
  EXPECT_NE(entry.find(R"("reasoning_parameters":["exclude"])"), std::string::npos);
  model.set_reasoning_control(true);
  entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("modality":"text+image->text","input_modalities":["text","image"])"),
            std::string::npos);
  EXPECT_NE(entry.find(R"("reasoning","include_reasoning","reasoning_effort"])"),
            std::string::npos);
  EXPECT_NE(entry.find(R"("reasoning_parameters":["enabled","effort","exclude"])"),
            std::string::npos);
  model.set_reasoning_budget(true);
  EXPECT_NE(RenderModelEntry(model).find(
                R"("reasoning_parameters":["enabled","effort","max_tokens","exclude"])"),
            std::string::npos);
  EXPECT_EQ(entry.find("tool_choice"), std::string::npos);
  // Without documentation_url the links point to the list.
  EXPECT_NE(entry.find(R"("links":{"documentation":null,"details":"/v1/models"})"),
            std::string::npos);
  model.clear_capabilities();
  model.add_capabilities(catalog::v1::CAPABILITY_EMBEDDING);
  entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("modality":"text->embeddings")"), std::string::npos);
  EXPECT_NE(entry.find(R"("supported_parameters":[])"), std::string::npos);
}

TEST(ModelEntry, PricesPrintExactly) {  // decision 10
  catalog::v1::Model model;
  model.set_id("a/b");
  model.mutable_price()->set_input_pico_usd(1);
  model.mutable_price()->set_output_pico_usd(9'007'199'254'740'993);
  const std::string entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("input":0.000001,"output":9007199254.740993,)"), std::string::npos);
  EXPECT_NE(entry.find(R"("prompt":"0.000000000001","completion":"9007.199254740993")"),
            std::string::npos);
}

}  // namespace
}  // namespace tollgate::gateway
