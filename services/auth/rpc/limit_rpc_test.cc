#include "services/auth/rpc/limit_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <tuple>

#include "common/admin/caller.h"
#include "services/auth/testing/store_calls.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::auth {
namespace {

namespace av = admin::v1;

class LimitRpcTest : public ::testing::Test {
 protected:
  LimitRpcTest() {
    std::string folder = ::testing::TempDir() + "limitrpc_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = av::LimitService::NewStub(server_->InProcessChannel({}));
  }
  ~LimitRpcTest() override {
    slot_ = nullptr;
    if (backend_) backend_->Stop();
    server_->Shutdown();
    server_.reset();
    backend_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start() {
    auto store = AuthStore::Open({.database = {.url = "sqlite:" + folder_ + "/auth.db"},
                                  .pepper = std::string(32, 'p'),
                                  .brand = "tollgate"},
                                 SystemClock::Get());
    ASSERT_TRUE(store);
    MakeWorkspace(**store, "acme");
    key_ = MakeTestKey(**store, "acme").key().key_id();
    BackendOptions options;
    options.peers.limit_use = [this](const ratelimit::v1::GetUseRequest& question, auto done) {
      asked_ = question;
      done(use_);
    };
    backend_ =
        std::make_shared<AuthBackend>(std::move(*store), 2, SystemClock::Get(), std::move(options));
    ASSERT_TRUE(backend_->Start());
    slot_ = backend_.get();
  }
  // Calls as the operator's command line, or as a viewer of the workspace acme.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (av::LimitService::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                    const Request& request, Response& response, bool is_operator = true) {
    grpc::ClientContext context;
    common::v1::Identity viewer;
    viewer.set_actor("user:u1");
    viewer.set_user_id("u1");
    viewer.add_memberships()->set_workspace("acme");
    viewer.mutable_memberships(0)->set_role(common::v1::ROLE_VIEWER);
    if (is_operator) {
      context.AddMetadata(admin::kOperatorKey, "tester");
    } else {
      context.AddMetadata(admin::kIdentityKey, viewer.SerializeAsString());
    }
    response.Clear();
    return (stub_.get()->*method)(&context, request, &response);
  }

  std::string folder_;
  std::string key_;
  // The request that the limiter received, and its answer.
  ratelimit::v1::GetUseRequest asked_;
  ratelimit::v1::GetUseResponse use_;
  BackendSlot slot_{nullptr};
  std::unique_ptr<grpc::Service> service_ = MakeLimitAdmin(slot_);
  std::shared_ptr<AuthBackend> backend_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<av::LimitService::Stub> stub_;
};

TEST_F(LimitRpcTest, LimitsOfAWorkspaceAreThoseOfItsPlanUntilItHasItsOwn) {
  Start();
  av::UpdatePlanRequest plan;
  plan.mutable_plan()->set_name("plans/free");
  plan.mutable_plan()->mutable_workspace_limits()->set_requests_per_minute(100);
  (*plan.mutable_plan()->mutable_workspace_model_limits())["a/b"].set_tokens_per_minute(9);
  av::Plan made;
  ASSERT_TRUE(Call(&av::LimitService::Stub::UpdatePlan, plan, made).ok());
  EXPECT_EQ(made.workspace_limits().requests_per_minute(), 100);

  av::UpdateLimitsRequest update;
  update.mutable_limits()->set_name("workspaces/acme/limits");
  update.mutable_limits()->set_plan("plans/free");
  av::Limits limits;
  const auto first = Call(&av::LimitService::Stub::UpdateLimits, update, limits);
  ASSERT_TRUE(first.ok()) << first.error_message();
  EXPECT_EQ(limits.workspace_limits().requests_per_minute(), 0);
  EXPECT_EQ(limits.effective_workspace_limits().requests_per_minute(), 100);
  EXPECT_EQ(limits.effective_model_limits().at("a/b").tokens_per_minute(), 9);

  update.mutable_limits()->mutable_workspace_limits()->set_concurrent_requests(4);
  update.mutable_limits()->clear_plan();  // not in the mask: unchanged
  update.mutable_update_mask()->add_paths("workspaceLimits");
  ASSERT_TRUE(Call(&av::LimitService::Stub::UpdateLimits, update, limits).ok());
  EXPECT_EQ(limits.plan(), "plans/free");
  EXPECT_EQ(limits.effective_workspace_limits().concurrent_requests(), 4);
  EXPECT_EQ(limits.effective_workspace_limits().requests_per_minute(), 0);

  av::GetLimitsRequest get;
  get.set_name("workspaces/acme/limits");
  av::Limits read;
  ASSERT_TRUE(Call(&av::LimitService::Stub::GetLimits, get, read).ok());
  EXPECT_EQ(read.SerializeAsString().size(), limits.SerializeAsString().size());
  av::ListPlansResponse plans;
  ASSERT_TRUE(Call(&av::LimitService::Stub::ListPlans, av::ListPlansRequest(), plans).ok());
  ASSERT_EQ(plans.plans_size(), 1);
  EXPECT_EQ(plans.plans(0).name(), "plans/free");
}

TEST_F(LimitRpcTest, LimitsOfAKeyForOneModel) {
  Start();
  av::UpdateKeyModelLimitsRequest update;
  update.mutable_key_model_limits()->set_name("workspaces/acme/keys/" + key_ + "/modelLimits");
  (*update.mutable_key_model_limits()->mutable_model_limits())["a/b"].set_requests_per_minute(3);
  av::KeyModelLimits limits;
  ASSERT_TRUE(Call(&av::LimitService::Stub::UpdateKeyModelLimits, update, limits).ok());
  EXPECT_EQ(limits.model_limits().at("a/b").requests_per_minute(), 3);
}

// The iteration order of maps must not change the content of a request.
TEST_F(LimitRpcTest, ARepeatedRequestWithTwoModelsIsTheSame) {
  Start();
  av::KeyModelLimits limits;
  for (int i = 0; i < 50; ++i) {
    av::UpdateKeyModelLimitsRequest update;
    update.set_request_id("same");
    update.mutable_key_model_limits()->set_name("workspaces/acme/keys/" + key_ + "/modelLimits");
    auto& models = *update.mutable_key_model_limits()->mutable_model_limits();
    for (const char* model : {"a/b", "c/d", "e/f"}) models[model].set_requests_per_minute(3);
    const auto status = Call(&av::LimitService::Stub::UpdateKeyModelLimits, update, limits);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
}

TEST_F(LimitRpcTest, BadCallsAreRefusedWithTheirCodes) {
  av::GetLimitsRequest get;
  get.set_name("workspaces/acme/limits");
  av::Limits limits;
  EXPECT_EQ(Call(&av::LimitService::Stub::GetLimits, get, limits).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  Start();
  EXPECT_TRUE(Call(&av::LimitService::Stub::GetLimits, get, limits, false).ok());
  get.set_name("workspaces/none-such/limits");
  EXPECT_EQ(Call(&av::LimitService::Stub::GetLimits, get, limits).error_code(),
            grpc::StatusCode::NOT_FOUND);
  av::UpdateLimitsRequest update;
  update.mutable_limits()->set_name("workspaces/acme/limits");
  EXPECT_EQ(Call(&av::LimitService::Stub::UpdateLimits, update, limits, false).error_code(),
            grpc::StatusCode::PERMISSION_DENIED)
      << "a viewer";
  update.mutable_update_mask()->add_paths("effective_workspace_limits");
  EXPECT_EQ(Call(&av::LimitService::Stub::UpdateLimits, update, limits).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  update.clear_update_mask();
  (*update.mutable_limits()->mutable_model_limits())["no-slash"].set_requests_per_minute(1);
  EXPECT_EQ(Call(&av::LimitService::Stub::UpdateLimits, update, limits).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  av::GetPlanRequest plan;
  plan.set_name("plans/none-such");
  av::Plan found;
  EXPECT_EQ(Call(&av::LimitService::Stub::GetPlan, plan, found).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

// One request-rate limit with two minutes of use.
void AddUse(ratelimit::v1::GetUseResponse& use) {
  use.set_minutes_known(true);
  use.set_counted_ms(3'600'000);
  ratelimit::v1::UseResult& result = *use.add_results();
  result.mutable_requests()->set_limit(5);
  result.mutable_requests()->set_remaining(1);
  for (const auto& [ago, requests, peak, refused] :
       {std::tuple(7, 4, 5, 2), std::tuple(0, 3, 4, 0)}) {
    ratelimit::v1::MinuteUse& minute = *result.add_minutes();
    minute.set_minutes_ago(ago);
    minute.set_requests(requests);
    minute.set_requests_peak(peak);
    minute.set_refused_by_requests(refused);
  }
}

// The hour is the sum of its minutes and has their highest peak. Lists leave out the minutes.
TEST_F(LimitRpcTest, TheUseOfKeysIsThatOfTheLimiter) {
  Start();
  av::UpdateKeyModelLimitsRequest update;
  update.mutable_key_model_limits()->set_name("workspaces/acme/keys/" + key_ + "/modelLimits");
  (*update.mutable_key_model_limits()->mutable_model_limits())["a/b"].set_requests_per_minute(5);
  av::KeyModelLimits limits;
  ASSERT_TRUE(Call(&av::LimitService::Stub::UpdateKeyModelLimits, update, limits).ok());
  MakeTestKey(backend_->store(), "acme");  // without limits: left out
  AddUse(use_);

  av::GetKeyLimitUsageRequest get;
  get.set_name("workspaces/acme/keys/" + key_ + "/limits");
  av::LimitUsage usage;
  auto status = Call(&av::LimitService::Stub::GetKeyLimitUsage, get, usage, false);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(asked_.items_size(), 1);
  EXPECT_EQ(asked_.items(0).workspace_id(), "acme");
  EXPECT_EQ(asked_.items(0).key_id(), key_);
  EXPECT_EQ(asked_.items(0).model(), "a/b");
  EXPECT_EQ(asked_.items(0).limits().requests_per_minute(), 5);
  ASSERT_EQ(usage.uses_size(), 1);
  EXPECT_EQ(usage.uses(0).model(), "a/b");
  EXPECT_EQ(usage.uses(0).remaining(), 1);
  EXPECT_EQ(usage.uses(0).hour().used(), 7);
  EXPECT_EQ(usage.uses(0).hour().peak(), 5);
  EXPECT_EQ(usage.uses(0).hour().refused(), 2);
  ASSERT_EQ(usage.uses(0).hour().minutes_size(), 2);
  EXPECT_EQ(usage.uses(0).hour().minutes(0).minutes_ago(), 7);
  EXPECT_EQ(usage.uses(0).hour().minutes(1).start_time().seconds() -
                usage.uses(0).hour().minutes(0).start_time().seconds(),
            420);
  EXPECT_FALSE(usage.has_counted_since());

  av::ListKeyLimitUsageRequest list;
  list.set_parent("workspaces/acme");
  av::ListKeyLimitUsageResponse listed;
  status = Call(&av::LimitService::Stub::ListKeyLimitUsage, list, listed, false);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(listed.key_limits_size(), 1);
  EXPECT_EQ(listed.key_limits(0).name(), get.name());
  EXPECT_EQ(listed.key_limits(0).uses(0).hour().used(), 7);
  EXPECT_EQ(listed.key_limits(0).uses(0).hour().minutes_size(), 0);
  EXPECT_EQ(listed.next_page_token(), "");
  // The newest key comes first and has no limits: its page is empty, but another one follows.
  list.set_page_size(1);
  ASSERT_TRUE(Call(&av::LimitService::Stub::ListKeyLimitUsage, list, listed, false).ok());
  EXPECT_EQ(listed.key_limits_size(), 0);
  ASSERT_NE(listed.next_page_token(), "");
  list.set_page_token(listed.next_page_token());
  ASSERT_TRUE(Call(&av::LimitService::Stub::ListKeyLimitUsage, list, listed, false).ok());
  ASSERT_EQ(listed.key_limits_size(), 1);
  EXPECT_EQ(listed.next_page_token(), "");
}

// Without known minutes there is no hour. counted_since says from when uses are known.
TEST_F(LimitRpcTest, AnHourThatIsNotWholeIsSaidToBe) {
  Start();
  av::UpdateLimitsRequest update;
  update.mutable_limits()->set_name("workspaces/acme/limits");
  update.mutable_limits()->mutable_workspace_limits()->set_requests_per_minute(5);
  av::Limits limits;
  ASSERT_TRUE(Call(&av::LimitService::Stub::UpdateLimits, update, limits).ok());
  AddUse(use_);
  use_.set_counted_ms(60'000);
  av::GetLimitUsageRequest get;
  get.set_name("workspaces/acme/limits");
  av::LimitUsage usage;
  ASSERT_TRUE(Call(&av::LimitService::Stub::GetLimitUsage, get, usage).ok());
  EXPECT_TRUE(usage.has_counted_since());
  EXPECT_TRUE(usage.uses(0).has_hour());
  use_.set_minutes_known(false);
  ASSERT_TRUE(Call(&av::LimitService::Stub::GetLimitUsage, get, usage).ok());
  EXPECT_FALSE(usage.uses(0).has_hour());
  EXPECT_FALSE(usage.has_counted_since());
  EXPECT_EQ(usage.uses(0).remaining(), 1);
}

}  // namespace
}  // namespace tollgate::auth
