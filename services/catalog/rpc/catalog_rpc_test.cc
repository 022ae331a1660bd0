#include "services/catalog/rpc/catalog_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tollgate::catalog {
namespace {

class CatalogRpcTest : public ::testing::Test {
 protected:
  CatalogRpcTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    server_ = builder.BuildAndStart();
    stub_ = v1::CatalogService::NewStub(server_->InProcessChannel({}));
  }
  ~CatalogRpcTest() override {
    publisher_.Close();
    server_->Shutdown();
  }
  static v1::Snapshot Version(int64_t version) {
    v1::Snapshot snapshot;
    snapshot.set_version(version);
    return snapshot;
  }

  LoopPool loops_{1};
  CatalogPublisher publisher_{loops_.loop(0)};
  CatalogRpc rpc_{publisher_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::CatalogService::Stub> stub_;
};

TEST_F(CatalogRpcTest, CallsFailWithUnavailableBeforeTheFirstSnapshot) {
  grpc::ClientContext context;
  v1::GetCatalogResponse response;
  EXPECT_EQ(stub_->GetCatalog(&context, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  publisher_.Publish(Version(1));
  grpc::ClientContext again;
  ASSERT_TRUE(stub_->GetCatalog(&again, {}, &response).ok());
  EXPECT_EQ(response.snapshot().version(), 1);
}

TEST_F(CatalogRpcTest, AWatcherGetsTheLatestSnapshotAndThenEachChange) {
  publisher_.Publish(Version(1));
  publisher_.Publish(Version(2));
  grpc::ClientContext context;
  auto reader = stub_->WatchCatalog(&context, {});
  v1::WatchCatalogResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.snapshot().version(), 2);
  publisher_.Publish(Version(3));
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.snapshot().version(), 3);
  context.TryCancel();
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(CatalogRpcTest, EngineKeysAreSentToWhoAsksForThemOnly) {
  v1::Snapshot snapshot = Version(1);
  v1::Engine* engine = snapshot.add_pools()->add_engines();
  engine->set_id("e1");
  engine->set_api_key("engine-secret");
  publisher_.Publish(snapshot);
  for (const bool asks : {false, true}) {
    v1::WatchCatalogRequest request;
    request.set_with_engine_keys(asks);
    grpc::ClientContext context;
    auto reader = stub_->WatchCatalog(&context, request);
    v1::WatchCatalogResponse message;
    const auto seen = [&] { return message.snapshot().pools(0).engines(0); };
    ASSERT_TRUE(reader->Read(&message));
    EXPECT_EQ(seen().id(), "e1");
    EXPECT_EQ(seen().api_key(), asks ? "engine-secret" : "");
    snapshot.set_version(snapshot.version() + 1);
    publisher_.Publish(snapshot);
    ASSERT_TRUE(reader->Read(&message));
    EXPECT_EQ(seen().api_key(), asks ? "engine-secret" : "");
    context.TryCancel();
    while (reader->Read(&message)) {
    }
    reader->Finish();
  }
  grpc::ClientContext context;
  v1::GetCatalogResponse response;
  ASSERT_TRUE(stub_->GetCatalog(&context, {}, &response).ok());
  EXPECT_EQ(response.snapshot().pools(0).engines(0).api_key(), "");
}

TEST_F(CatalogRpcTest, AWatcherBeforeTheFirstSnapshotWaits) {
  grpc::ClientContext context;
  auto reader = stub_->WatchCatalog(&context, {});
  std::thread publish([this] { publisher_.Publish(Version(7)); });
  v1::WatchCatalogResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.snapshot().version(), 7);
  publish.join();
}

TEST_F(CatalogRpcTest, CloseEndsTheStreams) {
  publisher_.Publish(Version(1));
  grpc::ClientContext context;
  auto reader = stub_->WatchCatalog(&context, {});
  v1::WatchCatalogResponse message;
  ASSERT_TRUE(reader->Read(&message));
  publisher_.Close();
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext late;
  auto refused = stub_->WatchCatalog(&late, {});
  EXPECT_FALSE(refused->Read(&message));
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CatalogRpcTest, ManyWatchersConnectAndDisconnect) {
  std::atomic<bool> stop{false};
  std::thread publish([&] {
    for (int64_t version = 1; !stop; ++version) publisher_.Publish(Version(version));
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) {
        grpc::ClientContext context;
        auto reader = stub_->WatchCatalog(&context, {});
        v1::WatchCatalogResponse message;
        EXPECT_TRUE(reader->Read(&message));
        EXPECT_GT(message.snapshot().version(), 0);
        context.TryCancel();
        reader->Finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  publish.join();
}

}  // namespace
}  // namespace tollgate::catalog
