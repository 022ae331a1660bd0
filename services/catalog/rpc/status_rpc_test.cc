#include "services/catalog/rpc/status_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/admin/caller.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::catalog {
namespace {

namespace pb = tollgate::admin::v1;

class StatusRpcTest : public ::testing::Test {
 protected:
  StatusRpcTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    server_ = builder.BuildAndStart();
    stub_ = pb::CatalogStatusService::NewStub(server_->InProcessChannel({}));
  }
  ~StatusRpcTest() override {
    publisher_.Close();
    server_->Shutdown();
  }
  void Publish() {
    v1::Snapshot snapshot;
    snapshot.set_version(7);
    snapshot.set_digest("d1");
    for (const char* id : {"b/two", "a/one", "c/unlimited"}) {
      v1::Model& model = *snapshot.add_models();
      model.set_id(id);
      if (std::string(id) != "c/unlimited") model.mutable_capacity()->set_tokens_per_minute(100);
    }
    snapshot.mutable_models(0)->mutable_capacity()->set_shadow(true);
    for (int i = 0; i < 2; ++i) snapshot.add_pools()->add_engines();
    publisher_.Publish(snapshot);
    rpc_.Loaded(true);
  }
  pb::CatalogStatus Status() {
    grpc::ClientContext context;
    pb::CatalogStatus status;
    EXPECT_TRUE(stub_->GetCatalogStatus(&context, {}, &status).ok());
    return status;
  }

  LoopPool loops_{1};
  bool started_ = (loops_.Start(), true);
  ManualClock clock_{1'700'000'000'000'000};
  CatalogPublisher publisher_{loops_.loop(0)};
  StatusRpc rpc_{publisher_, clock_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<pb::CatalogStatusService::Stub> stub_;
};

TEST_F(StatusRpcTest, SaysWhatIsServedAndWhatWasRefused) {
  Publish();
  pb::CatalogStatus status = Status();
  EXPECT_EQ(status.version(), 7);
  EXPECT_EQ(status.digest(), "d1");
  EXPECT_EQ(status.models(), 3);
  EXPECT_EQ(status.pools(), 2);
  EXPECT_EQ(status.engines(), 2);
  EXPECT_EQ(status.load_time().seconds(), 1'700'000'000);
  EXPECT_EQ(status.problems_size(), 0);
  clock_.Advance(5'000'000);
  rpc_.Refused({"models.yaml:3: no such pool", std::string("\xff", 1)});
  status = Status();
  ASSERT_EQ(status.problems_size(), 2);
  EXPECT_EQ(status.problems(0), "models.yaml:3: no such pool");
  EXPECT_EQ(status.refuse_time().seconds(), 1'700'000'005);
  EXPECT_EQ(status.load_time().seconds(), 1'700'000'000) << "the previous catalog is still served";
  rpc_.Loaded(false);
  EXPECT_EQ(Status().problems_size(), 0);
  EXPECT_FALSE(Status().has_refuse_time());
  EXPECT_EQ(Status().load_time().seconds(), 1'700'000'000);
}

TEST_F(StatusRpcTest, ListsTheModelsWithACapacityInPages) {
  Publish();
  pb::ListModelCapacityRequest request;
  request.set_page_size(1);
  std::string seen;
  do {
    grpc::ClientContext context;
    pb::ListModelCapacityResponse page;
    ASSERT_TRUE(stub_->ListModelCapacity(&context, request, &page).ok());
    for (const auto& one : page.capacities()) {
      EXPECT_EQ(one.limits().tokens_per_minute(), 100);
      seen += one.name() + (one.shadow() ? " shadow " : " ");
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(seen, "models/a/one models/b/two shadow ");
}

TEST_F(StatusRpcTest, IsForOperatorsOfThePlatform) {
  Publish();
  common::v1::Identity identity;
  identity.set_actor("user:ann");
  identity.set_user_id("ann");
  grpc::ClientContext context;
  context.AddMetadata(admin::kIdentityKey, identity.SerializeAsString());
  pb::CatalogStatus status;
  EXPECT_EQ(stub_->GetCatalogStatus(&context, {}, &status).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace tollgate::catalog
