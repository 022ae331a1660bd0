#include "gateway/handlers/model_list.h"

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "gateway/handlers/model_entry.h"

namespace tollgate::gateway {
namespace {

catalog::v1::Model* Add(catalog::v1::Snapshot& snapshot, const std::string& id) {
  catalog::v1::Model* model = snapshot.add_models();
  model->set_id(id);
  model->set_context_window(1000);
  model->set_max_output_tokens(1000);
  model->set_serving(true);
  return model;
}

std::vector<std::string> Ids(const catalog::v1::Snapshot& snapshot, const auth::v1::Key* key) {
  const std::string body = RenderModelList(snapshot, key);
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  std::vector<std::string> ids;
  for (const json::Value entry : document->root().Find("data"))
    ids.push_back(entry.Find("id").string());
  return ids;
}

TEST(ModelList, Envelope) {
  catalog::v1::Snapshot snapshot;
  EXPECT_EQ(RenderModelList(snapshot, nullptr),
            R"({"object":"list","data":[],"links":{"next":null},"total_count":0,)"
            R"("has_more":false,"first_id":null,"last_id":null})");
  Add(snapshot, "a/one");
  Add(snapshot, "a/two");
  const std::string body = RenderModelList(snapshot, nullptr);
  EXPECT_TRUE(body.ends_with(R"(],"links":{"next":null},"total_count":2,)"
                             R"("has_more":false,"first_id":"a/one","last_id":"a/two"})"))
      << body;
}

TEST(ModelList, ExactBytesOfAnEntry) {
  catalog::v1::Snapshot snapshot;
  catalog::v1::Model* model = Add(snapshot, "deep/model-1");
  model->set_display_name("Model \"1\"");
  model->set_description("Says things.");
  model->set_context_window(131072);
  model->set_max_output_tokens(32768);
  model->mutable_price()->set_input_pico_usd(150'000);
  model->mutable_price()->set_output_pico_usd(2'200'000);
  model->add_capabilities(catalog::v1::CAPABILITY_CHAT);
  model->add_capabilities(catalog::v1::CAPABILITY_TOOLS);
  model->set_documentation_url("https://example.com/m");
  model->set_created_at_s(1735689600);
  EXPECT_EQ(
      RenderModelEntry(*model),
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
      R"("per_request_limits":null,"default_parameters":null,"supported_voices":null,)"
      R"("type":"model","display_name":"Model \"1\"","created_at":"2025-01-01T00:00:00Z",)"
      R"("lifecycle":"active","max_tokens":32768})");
}

TEST(ModelList, ModalitiesAndParametersFollowTheCapabilities) {
  catalog::v1::Model model;
  model.set_id("a/b");
  model.add_capabilities(catalog::v1::CAPABILITY_CHAT);
  model.add_capabilities(catalog::v1::CAPABILITY_VISION);
  model.add_capabilities(catalog::v1::CAPABILITY_REASONING);
  std::string entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("modality":"text+image->text","input_modalities":["text","image"])"),
            std::string::npos);
  EXPECT_NE(entry.find(R"("reasoning","reasoning_effort"])"), std::string::npos);
  EXPECT_EQ(entry.find("tool_choice"), std::string::npos);
  // Without a page of its own.
  EXPECT_NE(entry.find(R"("links":{"documentation":null,"details":"/v1/models"})"),
            std::string::npos);
  model.clear_capabilities();
  model.add_capabilities(catalog::v1::CAPABILITY_EMBEDDING);
  entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("modality":"text->embeddings")"), std::string::npos);
  EXPECT_NE(entry.find(R"("supported_parameters":[])"), std::string::npos);
}

TEST(ModelList, PricesPrintExactly) {  // decisions.md 10
  catalog::v1::Model model;
  model.set_id("a/b");
  model.mutable_price()->set_input_pico_usd(1);
  model.mutable_price()->set_output_pico_usd(9'007'199'254'740'993);
  const std::string entry = RenderModelEntry(model);
  EXPECT_NE(entry.find(R"("input":0.000001,"output":9007199254.740993,)"), std::string::npos);
  EXPECT_NE(entry.find(R"("prompt":"0.000000000001","completion":"9007.199254740993")"),
            std::string::npos);
}

TEST(ModelList, MaxInputTokensOnlyWhenTheOutputCapIsBelowTheWindow) {
  catalog::v1::Snapshot snapshot;
  Add(snapshot, "a/b");
  EXPECT_EQ(RenderModelList(snapshot, nullptr).find("max_input_tokens"), std::string::npos);
}

TEST(ModelList, PrivateModelsAndAllowLists) {  // decisions.md 13
  catalog::v1::Snapshot snapshot;
  Add(snapshot, "a/public");
  Add(snapshot, "a/other");
  Add(snapshot, "a/private")->set_workspace_id("ws1");
  EXPECT_EQ(Ids(snapshot, nullptr), (std::vector<std::string>{"a/public", "a/other"}));
  auth::v1::Key mine, theirs;
  mine.set_workspace_id("ws1");
  theirs.set_workspace_id("ws2");
  EXPECT_EQ(Ids(snapshot, &mine).size(), 3u);
  EXPECT_EQ(Ids(snapshot, &theirs).size(), 2u);
  mine.add_allowed_models("a/private");
  mine.add_allowed_models("a/gone");
  EXPECT_EQ(Ids(snapshot, &mine), (std::vector<std::string>{"a/private"}));
  theirs.add_allowed_models("a/private");
  EXPECT_TRUE(Ids(snapshot, &theirs).empty());
}

TEST(ModelList, EntityTags) {
  const std::string tag = EntityTag("body");
  EXPECT_EQ(tag, EntityTag("body"));
  EXPECT_NE(tag, EntityTag("other body"));
  EXPECT_TRUE(MatchesTag(tag, tag));
  EXPECT_TRUE(MatchesTag("\"x\" , W/" + tag, tag));
  EXPECT_TRUE(MatchesTag("W/" + tag, tag));
  EXPECT_TRUE(MatchesTag(" \"a,b\",\t" + tag + " ,\"c\"", tag));
  EXPECT_TRUE(MatchesTag("*", tag));
  EXPECT_FALSE(MatchesTag(tag.substr(1, tag.size() - 2), tag));
  EXPECT_FALSE(MatchesTag("w/" + tag, tag));
  EXPECT_FALSE(MatchesTag(",,", tag));
  EXPECT_FALSE(MatchesTag("", tag));
  EXPECT_FALSE(MatchesTag("\"x\"", tag));
}

}  // namespace
}  // namespace tollgate::gateway
