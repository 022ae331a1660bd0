// See decision 13, docs/design/wire.md 8.
#include "gateway/handlers/list_models.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

class ListModelsTest : public ::testing::Test {
 protected:
  ListModelsTest() {
    catalog::v1::Model* own = rig.snapshot.add_models();
    own->set_id("ns/private");
    own->set_workspace_id("ws1");
    rig.Publish();
  }

  std::shared_ptr<FakeExchange> Get(Headers headers = {}) {
    std::shared_ptr<FakeExchange> exchange;
    const Endpoint endpoint{
        "GET", "/v1/models", "models", Family::kOpenAi, CredentialRule::kOptionalBearer, {}};
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      HttpRequest request;
      request.headers = std::move(headers);
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      co_await ListModels(*rig.worker, *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  }
  static bool Has(const std::shared_ptr<FakeExchange>& answer, const std::string& id) {
    return answer->body.find("\"id\":\"" + id + "\"") != std::string::npos;
  }

  Rig rig;
};

TEST_F(ListModelsTest, IsPublic) {
  const auto answer = Get();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("content-type"), "application/json");
  EXPECT_TRUE(Has(answer, "ns/model"));
  EXPECT_FALSE(Has(answer, "ns/private"));
  EXPECT_EQ(rig.auth->calls, 0);
}

TEST_F(ListModelsTest, AKeyAddsPrivateModelsAndAppliesItsAllowList) {
  const Headers with_key = {{"authorization", "Bearer " + rig.key_text}};
  EXPECT_TRUE(Has(Get(with_key), "ns/private"));
  rig.key.add_allowed_models("ns/private");
  rig.Publish();
  const auto answer = Get(with_key);
  EXPECT_TRUE(Has(answer, "ns/private"));
  EXPECT_FALSE(Has(answer, "ns/model"));
}

TEST_F(ListModelsTest, InvalidKeysAreIgnored) {
  const std::string none = Get()->body;
  EXPECT_EQ(Get({{"authorization", "Bearer junk"}})->body, none);
  EXPECT_EQ(Get({{"authorization", "Bearer " + MakeKey("tollgate").text}})->body, none);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(Get({{"authorization", "Bearer " + rig.key_text}})->body, none);
  rig.auth->down = true;
  const auto answer = Get({{"authorization", "Bearer " + MakeKey("tollgate").text}});
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, none);
}

TEST_F(ListModelsTest, AMatchingEntityTagIsNotModified) {
  const std::string tag = Get()->header("etag");
  ASSERT_FALSE(tag.empty());
  const auto same = Get({{"if-none-match", tag}});
  EXPECT_EQ(same->status, 304);
  EXPECT_EQ(same->body, "");
  EXPECT_EQ(same->header("etag"), tag);
  EXPECT_EQ(same->header("content-type"), "");
  EXPECT_EQ(Get({{"if-none-match", "\"x\""}, {"if-none-match", "W/" + tag}})->status, 304);
  EXPECT_EQ(Get({{"if-none-match", "\"x\""}})->status, 200);
  rig.snapshot.mutable_models(0)->mutable_price()->set_input_pico_usd(5);
  rig.Publish();
  EXPECT_EQ(Get({{"if-none-match", tag}})->status, 200);
}

TEST_F(ListModelsTest, WithoutACatalogItIs503) {
  rig.RunOnLoop([&](Loop&) { rig.worker->catalog = nullptr; });
  const auto answer = Get();
  EXPECT_EQ(answer->status, 503);
  EXPECT_NE(answer->body.find("service_unavailable"), std::string::npos);
  EXPECT_EQ(answer->header("retry-after"), "1");
}

}  // namespace
}  // namespace tollgate::gateway
