#include "services/auth/rpc/auth_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/keys/key_format.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/testing/store_calls.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"

namespace tollgate::auth {
namespace {

class AuthRpcTest : public ::testing::Test {
 protected:
  AuthRpcTest() {
    std::string folder = ::testing::TempDir() + "authrpc_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    builder.RegisterService(keys_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::AuthService::NewStub(server_->InProcessChannel({}));
    admin_ = admin::v1::KeyService::NewStub(server_->InProcessChannel({}));
  }
  ~AuthRpcTest() override {
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
    backend_ = std::make_shared<AuthBackend>(std::move(*store), 2, SystemClock::Get());
    ASSERT_TRUE(backend_->Start());
    slot_ = backend_.get();
  }
  TestKey CreateKey() {
    MakeWorkspace(backend_->store(), "w");
    return MakeTestKey(backend_->store(), "w");
  }
  template <typename Request>
  grpc::Status Change(grpc::Status (admin::v1::KeyService::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&,
                                                                          admin::v1::Key*),
                      const std::string& name) {
    Request request;
    request.set_name(name);
    admin::v1::Key key;
    grpc::ClientContext context;
    return (admin_.get()->*method)(&context, request, &key);
  }
  grpc::Status Disable(const std::string& name) {
    return Change(&admin::v1::KeyService::Stub::DisableKey, name);
  }

  std::string folder_;
  BackendSlot slot_{nullptr};
  AuthRpc rpc_{slot_};
  std::unique_ptr<grpc::Service> keys_ = MakeKeyAdmin(slot_);
  std::shared_ptr<AuthBackend> backend_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AuthService::Stub> stub_;
  std::unique_ptr<admin::v1::KeyService::Stub> admin_;
};

TEST_F(AuthRpcTest, CallsFailWithUnavailableBeforeTheStart) {
  grpc::ClientContext context;
  v1::VerifyKeyResponse response;
  EXPECT_EQ(stub_->VerifyKey(&context, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext watch;
  auto reader = stub_->WatchKeys(&watch, {});
  v1::WatchKeysResponse message;
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Disable("workspaces/w/keys/abcdefghijkl").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AuthRpcTest, TheVersionIsThatOfTheLatestChange) {
  Start();
  const auto read = [this] {
    v1::ReadVersionResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ReadVersion(&context, {}, &response).ok());
    return response.version();
  };
  EXPECT_EQ(read(), 0);
  CreateKey();
  EXPECT_EQ(read(), 2);
}

TEST_F(AuthRpcTest, ACreatedKeyIsFound) {
  Start();
  const auto created = CreateKey();
  v1::VerifyKeyRequest request;
  request.set_key_digest(KeyDigest(created.secret()));
  v1::VerifyKeyResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->VerifyKey(&context, request, &response).ok());
  EXPECT_TRUE(response.found());
  EXPECT_EQ(response.key().key_id(), created.key().key_id());
}

TEST_F(AuthRpcTest, WatchersGetChangesAtOnceAndAPingEachSecond) {
  Start();
  std::vector<std::string> names = {CreateKey().name()};
  while (names.size() < 10) names.push_back(MakeTestKey(backend_->store(), "w").name());
  grpc::ClientContext context;
  auto reader = stub_->WatchKeys(&context, {});
  v1::WatchKeysResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.version(), 11);
  EXPECT_EQ(message.changes_size(), 0);
  // A busy machine delays some calls: one of ten must return at once.
  bool at_once = false;
  for (size_t i = 0; i < names.size() && !at_once; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(Disable(names[i]).ok());
    do {
      ASSERT_TRUE(reader->Read(&message));
    } while (message.changes_size() == 0);
    at_once = std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);
    ASSERT_EQ(message.changes_size(), 1);
    EXPECT_EQ(message.changes(0).key().state(), v1::KEY_STATE_DISABLED);
  }
  EXPECT_TRUE(at_once);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.changes_size(), 0);  // a ping
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  context.TryCancel();
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(AuthRpcTest, StopEndsTheStreams) {
  Start();
  grpc::ClientContext context;
  auto reader = stub_->WatchKeys(&context, {});
  v1::WatchKeysResponse message;
  ASSERT_TRUE(reader->Read(&message));
  backend_->Stop();
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Disable("workspaces/w/keys/abcdefghijkl").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AuthRpcTest, ManyWatchersConnectAndDisconnectWhileKeysChange) {
  Start();
  const auto created = CreateKey();
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    while (!stop) {
      EXPECT_TRUE(Disable(created.name()).ok());
      EXPECT_TRUE(Change(&admin::v1::KeyService::Stub::EnableKey, created.name()).ok());
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 10; ++i) {
        grpc::ClientContext context;
        v1::WatchKeysRequest request;
        request.set_after_version(i % 2);
        auto reader = stub_->WatchKeys(&context, request);
        v1::WatchKeysResponse message;
        int64_t version = 0;
        for (int n = 0; n < 3; ++n) {
          ASSERT_TRUE(reader->Read(&message));
          EXPECT_GE(message.version(), version);
          version = message.version();
        }
        context.TryCancel();
        reader->Finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  changes.join();
  EXPECT_TRUE(backend_->store().VerifyAudit());
}

}  // namespace
}  // namespace tollgate::auth
