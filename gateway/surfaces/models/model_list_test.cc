#include "gateway/surfaces/models/model_list.h"

#include <gtest/gtest.h>

#include "common/json/json.h"

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

TEST(ModelList, ExactBytes) {
  catalog::v1::Snapshot snapshot;
  catalog::v1::Model* model = Add(snapshot, "deep/model-1");
  model->set_display_name("Model \"1\"");
  model->set_context_window(131072);
  model->set_max_output_tokens(32768);
  model->mutable_price()->set_input_pico_usd(150'000);
  model->mutable_price()->set_output_pico_usd(2'200'000);
  model->add_capabilities(catalog::v1::CAPABILITY_CHAT);
  model->add_capabilities(catalog::v1::CAPABILITY_TOOLS);
  model->set_documentation_url("https://example.com/m");
  model->set_created_at_s(1735689600);
  EXPECT_EQ(
      RenderModelList(snapshot, nullptr),
      R"({"object":"list","data":[{"id":"deep/model-1","object":"model","created":1735689600,)"
      R"("owned_by":"deep","type":"model","display_name":"Model \"1\"",)"
      R"("created_at":"2025-01-01T00:00:00Z","context_window":131072,"context_length":131072,)"
      R"("max_output_tokens":32768,"max_input_tokens":98304,)"
      R"("pricing":{"input":0.15,"output":2.2,"currency":"USD","unit":"per_million_tokens",)"
      R"("prompt":"0.00000015","completion":"0.0000022"},"capabilities":["chat","tools"],)"
      R"("links":{"documentation":"https://example.com/m"}}],"has_more":false,)"
      R"("first_id":"deep/model-1","last_id":"deep/model-1"})");
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
  EXPECT_TRUE(MatchesTag("*", tag));
  EXPECT_FALSE(MatchesTag("", tag));
  EXPECT_FALSE(MatchesTag("\"x\"", tag));
}

}  // namespace
}  // namespace tollgate::gateway
