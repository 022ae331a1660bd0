// Resources of the admin API whose response combines two services: spending of keys (auth and
// billing), remaining limits (auth and ratelimit), and the closing of a workspace.
#include "tests/integration/admin_world.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace tollgate::test {
namespace {

class AdminResourcesTest : public AdminWorld {
 protected:
  Json Get(const std::string& path) {
    const HttpResponse answer = Admin("GET", "/admin/v1/" + path, "");
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    return answer.json();
  }
  std::string SpentByReport(const std::string& key) {
    return Get("workspaces/team/usage:query?interval=USAGE_INTERVAL_NONE&filter=key%20%3D%20%22" +
               key + "%22")["totals"]["costUsd"]
        .str();
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, AdminResourcesTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(AdminResourcesTest, KeysCarryWhatTheySpentAsTheUsageReportHasIt) {
  const std::string idle = Make("key"), some = Make("key"), most = Make("key");
  MakeRequest(some);
  for (int i = 0; i < 3; ++i) MakeRequest(most);
  const auto spent = [&](const std::string& key) {
    return Get("workspaces/team/keys/" + key)["monthSpentUsd"].str();
  };
  EXPECT_EQ(spent(idle), "0.00");
  EXPECT_EQ(spent(some), "0.00000001") << "10 tokens at 1,000 pico-USD";
  EXPECT_EQ(spent(some), SpentByReport(some));
  EXPECT_EQ(spent(most), SpentByReport(most));
  const Json page = Get("workspaces/team/keys");
  ASSERT_EQ(page["keys"].size(), 3U);
  for (const Json& key : page["keys"].elements()) {
    EXPECT_EQ(key["monthSpentUsd"].str(), spent(Last(key["name"].str())));
  }
  const Json top = Get("workspaces/team/keys?view=KEY_VIEW_TOP_SPENT")["keys"];
  ASSERT_EQ(top.size(), 2U) << "only keys that have spent anything";
  EXPECT_EQ(Last(top[0]["name"].str()), most);
  EXPECT_EQ(Last(top[1]["name"].str()), some);
  EXPECT_EQ(top[0]["monthSpentUsd"].str(), SpentByReport(most));
  EXPECT_EQ(Get("workspaces/team/keys?view=KEY_VIEW_TOP_SPENT&page_size=1")["keys"].size(), 1U);
  EXPECT_EQ(
      Admin("GET", "/admin/v1/workspaces/team/keys?view=KEY_VIEW_TOP_SPENT&query=a", "").status,
      400);
}

TEST_P(AdminResourcesTest, AWorkspaceWithCreditIsNotClosed) {
  const std::string workspace = Make("workspace");
  const auto close = [&](const std::string& id) {
    return Post("workspaces/" + workspace + ":close",
                R"({"reason":"a","requestId":")" + id + "\"}");
  };
  Must(Post("workspaces/" + workspace + "/creditGrants?request_id=g", R"({"amountUsd":"1"})"));
  const HttpResponse refused = close("c1");
  EXPECT_EQ(Reason(refused), "BALANCE_NOT_ZERO") << refused.body;
  EXPECT_EQ(Get("workspaces/" + workspace)["state"].str(), "WORKSPACE_STATE_ACTIVE");
  Must(Post("workspaces/" + workspace + "/adjustments?request_id=d",
            R"({"kind":"ADJUSTMENT_KIND_DEBIT","granted":true,"amountUsd":"1","reason":"a"})"));
  EXPECT_EQ(close("c1").json()["state"].str(), "WORKSPACE_STATE_CLOSING");
  // Credit that is added later does not change the response to the same call.
  Must(Post("workspaces/" + workspace + "/creditGrants?request_id=h", R"({"amountUsd":"1"})"));
  EXPECT_EQ(close("c1").json()["state"].str(), "WORKSPACE_STATE_CLOSING");
}

TEST_P(AdminResourcesTest, TheUseOfLimitsIsWhatTheLimiterCounts) {
  EXPECT_EQ(Get("workspaces/team/limits:usage")["uses"].size(), 0U) << "there are no limits";
  Must(Admin("PATCH", "/admin/v1/workspaces/team/limits",
             R"({"workspaceLimits":{"requestsPerMinute":"10","concurrentRequests":"4"},)"
             R"("modelLimits":{"sim/model":{"requestsPerMinute":"2"}}})"));
  const auto limiter = ratelimit::v1::RateLimitService::NewStub(
      grpc::CreateChannel(cluster_->grpc_address("ratelimit"), grpc::InsecureChannelCredentials()));
  ratelimit::v1::AcquireRequest request;
  auto* item = request.add_items();
  item->set_lease_id(Id::New().ToBytes());
  item->set_workspace_id("team");
  item->set_key_id("0123456789ab");
  item->set_model("sim/model");
  item->mutable_workspace_limits()->set_requests_per_minute(10);
  item->mutable_workspace_limits()->set_concurrent_requests(4);
  item->mutable_workspace_model_limits()->set_requests_per_minute(2);
  ratelimit::v1::AcquireResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(limiter->Acquire(&context, request, &response).ok());
  ASSERT_TRUE(response.results(0).granted());
  const Json uses = Get("workspaces/team/limits:usage")["uses"];
  ASSERT_EQ(uses.size(), 3U) << uses.Dump();
  EXPECT_EQ(uses[0]["kind"].str(), "LIMIT_KIND_REQUESTS_PER_MINUTE");
  EXPECT_EQ(uses[0]["limit"].str(), "10");
  EXPECT_EQ(uses[0]["remaining"].str(), "9");
  EXPECT_FALSE(uses[0]["resetTime"].str().empty());
  EXPECT_FALSE(uses[0]["bindsFirst"].boolean());
  EXPECT_EQ(uses[1]["kind"].str(), "LIMIT_KIND_CONCURRENT_REQUESTS");
  EXPECT_EQ(uses[1]["remaining"].str(), "3");
  EXPECT_TRUE(uses[1]["resetTime"].is_null());
  EXPECT_EQ(uses[2]["model"].str(), "sim/model");
  EXPECT_EQ(uses[2]["remaining"].str(), "1");
  EXPECT_TRUE(uses[2]["bindsFirst"].boolean()) << "half of it is used";
  EXPECT_EQ(uses[0]["hour"]["used"].str(), "1");
  EXPECT_EQ(uses[0]["hour"]["peak"].str(), "1");
  EXPECT_EQ(uses[0]["hour"]["refused"].str(), "0");
  ASSERT_EQ(uses[0]["hour"]["minutes"].size(), 1U);
  EXPECT_EQ(uses[0]["hour"]["minutes"][0]["used"].str(), "1");
  EXPECT_EQ(uses[1]["hour"]["peak"].str(), "1");
}

}  // namespace
}  // namespace tollgate::test
