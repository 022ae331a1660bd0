#include "services/catalog/rpc/model_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/admin/caller.h"

namespace tollgate::catalog {
namespace {

namespace pb = tollgate::admin::v1;

class ModelRpcTest : public ::testing::Test {
 protected:
  ModelRpcTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    server_ = builder.BuildAndStart();
    stub_ = pb::ModelService::NewStub(server_->InProcessChannel({}));
  }
  ~ModelRpcTest() override {
    publisher_.Close();
    server_->Shutdown();
  }
  void Publish() {
    v1::Snapshot snapshot;
    for (const char* id : {"b/two", "a/one", "private/three"}) {
      v1::Model& model = *snapshot.add_models();
      model.set_id(id);
      model.set_serving(true);
      model.mutable_price()->set_input_pico_usd(150'000);
      model.add_capabilities(v1::CAPABILITY_CHAT);
    }
    snapshot.mutable_models(2)->set_workspace_id("acme");
    publisher_.Publish(snapshot);
  }
  // Lists as a person with this workspace; "" is the operator.
  std::string List(const std::string& member, int page_size = 0) {
    pb::ListModelsRequest request;
    request.set_page_size(page_size);
    std::string ids;
    do {
      grpc::ClientContext context;
      if (!member.empty()) As(member, context);
      pb::ListModelsResponse page;
      const auto status = stub_->ListModels(&context, request, &page);
      if (!status.ok()) return "code " + std::to_string(status.error_code());
      for (const pb::Model& model : page.models()) ids += model.name() + " ";
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return ids;
  }
  static void As(const std::string& member, grpc::ClientContext& context) {
    common::v1::Identity identity;
    identity.set_actor("user:ann");
    identity.set_user_id("ann");
    auto& membership = *identity.add_memberships();
    membership.set_workspace(member);
    membership.set_role(common::v1::ROLE_VIEWER);
    context.AddMetadata(admin::kIdentityKey, identity.SerializeAsString());
  }

  LoopPool loops_{1};
  CatalogPublisher publisher_{loops_.loop(0)};
  ModelRpc rpc_{publisher_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<pb::ModelService::Stub> stub_;
};

TEST_F(ModelRpcTest, PrivateModelsAreSeenByTheirWorkspaceAndByOperators) {
  EXPECT_EQ(List(""), "code 14") << "UNAVAILABLE while it starts";
  Publish();
  EXPECT_EQ(List("other"), "models/a/one models/b/two ");
  EXPECT_EQ(List("acme"), "models/a/one models/b/two models/private/three ");
  EXPECT_EQ(List("", 1), "models/a/one models/b/two models/private/three ");
}

TEST_F(ModelRpcTest, AModelIsFoundByItsNameWithPricesAsDecimals) {
  Publish();
  pb::GetModelRequest request;
  request.set_name("models/a/one");
  pb::Model model;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.input_usd_per_million(), "0.15");
  EXPECT_EQ(model.capabilities(0), "chat");
  request.set_name("models/private/three");
  grpc::ClientContext foreign;
  As("other", foreign);
  EXPECT_EQ(stub_->GetModel(&foreign, request, &model).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_name("models/");
  grpc::ClientContext empty;
  EXPECT_EQ(stub_->GetModel(&empty, request, &model).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tollgate::catalog
