#include "services/billing/rpc/lease_recalls_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/loop.h"

namespace tollgate::billing {
namespace {

using Workspaces = std::vector<std::string>;

class LeaseRecallRpcTest : public ::testing::Test {
 protected:
  LeaseRecallRpcTest() {
    pool_.Start();
    rpc_ = std::make_unique<LeaseRecallRpc>(pool_.loop(0));
    grpc::ServerBuilder builder;
    builder.RegisterService(rpc_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::LeaseRecallService::NewStub(server_->InProcessChannel({}));
  }
  ~LeaseRecallRpcTest() override {
    rpc_->Close();
    server_->Shutdown();
    pool_.Stop();
  }
  std::unique_ptr<grpc::ClientReader<v1::WatchLeaseRecallsResponse>> Watch() {
    return stub_->WatchLeaseRecalls(&context_, {});
  }
  static Workspaces Next(grpc::ClientReader<v1::WatchLeaseRecallsResponse>& reader) {
    v1::WatchLeaseRecallsResponse message;
    if (!reader.Read(&message)) return {"the stream has ended"};
    return {message.workspace_ids().begin(), message.workspace_ids().end()};
  }

  LoopPool pool_{1};
  std::unique_ptr<LeaseRecallRpc> rpc_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::LeaseRecallService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(LeaseRecallRpcTest, ARouterHasTheListFirstThenEachChange) {
  rpc_->Publish({"a"});
  const auto reader = Watch();
  EXPECT_EQ(Next(*reader), Workspaces{"a"});
  rpc_->Publish({"a", "b"});
  Workspaces now = Next(*reader);
  while (now == Workspaces{"a"}) now = Next(*reader);  // pings
  EXPECT_EQ(now, (Workspaces{"a", "b"}));
  rpc_->Publish({});
  while (now == (Workspaces{"a", "b"})) now = Next(*reader);
  EXPECT_EQ(now, Workspaces());
}

// A router notices a lost stream by its silence.
TEST_F(LeaseRecallRpcTest, AQuietStreamRepeatsTheList) {
  rpc_->Publish({"a"});
  const auto reader = Watch();
  EXPECT_EQ(Next(*reader), Workspaces{"a"});
  EXPECT_EQ(Next(*reader), Workspaces{"a"});
}

TEST_F(LeaseRecallRpcTest, CloseEndsTheStreams) {
  const auto reader = Watch();
  EXPECT_EQ(Next(*reader), Workspaces());
  rpc_->Close();
  v1::WatchLeaseRecallsResponse message;
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tollgate::billing
