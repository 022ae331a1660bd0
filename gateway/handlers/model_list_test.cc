#include "gateway/handlers/model_list.h"

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

TEST(ModelList, MaxInputTokensOnlyWhenTheOutputCapIsBelowTheWindow) {
  catalog::v1::Snapshot snapshot;
  Add(snapshot, "a/b");
  EXPECT_EQ(RenderModelList(snapshot, nullptr).find("max_input_tokens"), std::string::npos);
}

TEST(ModelList, PrivateModelsAndAllowLists) {  // decision 13
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
