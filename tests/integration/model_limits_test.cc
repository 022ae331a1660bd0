// Limits by model and plans through the admin API: they take effect on running gateways within a
// second.
#include <grpcpp/grpcpp.h>

#include "tests/integration/system_test.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::test {
namespace {

namespace av = admin::v1;

class ModelLimitsTest : public SystemTest {
 protected:
  // Calls as an operator of the platform, named by the dashboard.
  template <typename Request, typename Response>
  void Call(grpc::Status (av::LimitService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
            const Request& request) {
    const auto stub = av::LimitService::NewStub(grpc::CreateChannel(
        cluster().admin_grpc_address("auth"), grpc::InsecureChannelCredentials()));
    common::v1::Identity identity;
    identity.set_actor("user:operator");
    identity.set_user_id("operator");
    identity.set_platform_operator(true);
    identity.set_installation(true);
    grpc::ClientContext context;
    context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  void LimitModel(const ApiKey& key, const std::string& model, int64_t per_minute) {
    av::UpdateLimitsRequest request;
    request.mutable_limits()->set_name("workspaces/" + key.workspace_id + "/limits");
    auto& limits = (*request.mutable_limits()->mutable_model_limits())[model];
    limits.set_requests_per_minute(per_minute);
    Call(&av::LimitService::Stub::UpdateLimits, request);
  }
  void LimitKeyForModel(const ApiKey& key, const std::string& model, int64_t per_minute) {
    av::UpdateKeyModelLimitsRequest request;
    request.mutable_key_model_limits()->set_name("workspaces/" + key.workspace_id + "/keys/" +
                                                 key.key_id + "/modelLimits");
    auto& limits = (*request.mutable_key_model_limits()->mutable_model_limits())[model];
    limits.set_requests_per_minute(per_minute);
    Call(&av::LimitService::Stub::UpdateKeyModelLimits, request);
  }
  // Whether the gateway responds with this status within a second.
  bool Answers(const ApiKey& key, int status, HttpResponse* last = nullptr) {
    return WaitUntil(
        [&] {
          const HttpResponse answer = Chat(key);
          if (last != nullptr) *last = answer;
          return answer.status == status;
        },
        1'000, 20);
  }
};

INSTANTIATE_TEST_SUITE_P(Systems, ModelLimitsTest, kSystems,
                         [](const auto& system) { return system.param; });

TEST_P(ModelLimitsTest, ALimitOfAModelActsWithinASecondAndOnThatModelOnly) {
  const ApiKey key = Customer();
  ASSERT_EQ(Chat(key).status, 200);
  LimitModel(key, "sim/model", 1);
  HttpResponse refused;
  ASSERT_TRUE(Answers(key, 429, &refused));
  EXPECT_NE(refused.body.find("for this model"), std::string::npos) << refused.body;
  EXPECT_EQ(refused.header("x-ratelimit-limit-requests"), "1");
  EXPECT_EQ(refused.header("x-ratelimit-remaining-requests"), "0");
  // With one request a minute the bucket is full when the next one passes: both headers have the
  // same second.
  const std::string retry = refused.header("retry-after");
  const std::string reset = refused.header("x-ratelimit-reset-requests");
  EXPECT_EQ(reset, retry == "60" ? "1m0s" : retry + "s");
  EXPECT_EQ(Chat(key, "", "sim/vision").status, 200) << "another model";
  LimitModel(key, "sim/model", 0);
  EXPECT_TRUE(Answers(key, 200));
}

TEST_P(ModelLimitsTest, APlanLimitsItsWorkspacesUnlessItIsInShadowMode) {
  const ApiKey key = Customer();
  const std::string plan = "plans/" + key.workspace_id;
  const auto set_plan = [&](bool shadow) {
    av::UpdatePlanRequest request;
    request.mutable_plan()->set_name(plan);
    request.mutable_plan()->mutable_key_limits()->set_requests_per_minute(1);
    request.mutable_plan()->set_shadow(shadow);
    request.mutable_update_mask()->add_paths("key_limits");
    request.mutable_update_mask()->add_paths("shadow");
    Call(&av::LimitService::Stub::UpdatePlan, request);
  };
  set_plan(true);
  av::UpdateLimitsRequest request;
  request.mutable_limits()->set_name("workspaces/" + key.workspace_id + "/limits");
  request.mutable_limits()->set_plan(plan);
  Call(&av::LimitService::Stub::UpdateLimits, request);
  for (int i = 0; i < 5; ++i) {
    const HttpResponse answer = Chat(key);
    EXPECT_EQ(answer.status, 200) << "shadow mode refuses nobody";
    EXPECT_EQ(answer.header("x-ratelimit-limit-requests"), "");
  }
  set_plan(false);
  EXPECT_TRUE(Answers(key, 429));
}

TEST_P(ModelLimitsTest, ALimitOfAKeyForAModelIsThatKeysAlone) {
  const ApiKey key = Customer();
  const ApiKey other = cluster().NewKey(key.workspace_id);
  LimitKeyForModel(key, "sim/model", 1);
  HttpResponse refused;
  ASSERT_TRUE(Answers(key, 429, &refused));
  EXPECT_NE(refused.body.find("for this model"), std::string::npos) << refused.body;
  EXPECT_EQ(Chat(key, "", "sim/vision").status, 200) << "another model";
  EXPECT_EQ(Chat(other).status, 200) << "another key of the workspace";
}

// An operator edits the catalog file; no process is restarted.
TEST_P(ModelLimitsTest, TheCapacityOfAModelIsOfAllWorkspacesTogether) {
  const ApiKey one = Customer(), two = Customer();
  const std::string before = ReadFile(cluster().dir() + "/models.yaml");
  const std::string id = "id: sim/vision\n";
  const size_t model = before.find(id);
  ASSERT_NE(model, std::string::npos);
  const auto with_capacity = [&](int per_minute) {
    std::string text = before;
    text.insert(model + id.size(),
                "    capacity: {requests_per_minute: " + std::to_string(per_minute) + "}\n");
    return text;
  };
  ASSERT_EQ(Chat(one, "", "sim/vision").status, 200);
  cluster().WriteCatalog(with_capacity(1));
  HttpResponse refused;
  EXPECT_TRUE(WaitUntil(
      [&] {
        refused = Chat(one, "", "sim/vision");
        return refused.status == 429;
      },
      10'000, 20));
  EXPECT_NE(refused.body.find("shared by all callers"), std::string::npos) << refused.body;
  EXPECT_FALSE(refused.header("retry-after").empty());
  refused = Chat(two, "", "sim/vision");
  ExpectError(refused, 429, "rate_limited", "rate_limit_error");
  EXPECT_NE(refused.body.find("shared by all callers"), std::string::npos) << refused.body;
  EXPECT_EQ(Chat(two).status, 200) << "another model";
  cluster().WriteCatalog(with_capacity(100'000));
  for (const ApiKey& key : {one, two}) {
    EXPECT_TRUE(WaitUntil([&] { return Chat(key, "", "sim/vision").status == 200; }, 10'000, 20));
  }
  cluster().WriteCatalog(before);
  EXPECT_TRUE(WaitUntil(
      [&] { return Chat(one, "", "sim/vision").header("x-ratelimit-limit-requests").empty(); },
      10'000, 20));
}

}  // namespace
}  // namespace tollgate::test
