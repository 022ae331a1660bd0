#include "services/auth/rpc/auth_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/keys/key_format.h"

namespace tollgate::auth {
namespace {

class AuthRpcTest : public ::testing::Test {
 protected:
  AuthRpcTest() {
    std::string folder = ::testing::TempDir() + "authrpc_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    builder.RegisterService(&admin_rpc_);
    server_ = builder.BuildAndStart();
    stub_ = v1::AuthService::NewStub(server_->InProcessChannel({}));
    admin_ = v1::AuthAdminService::NewStub(server_->InProcessChannel({}));
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
  v1::CreateKeyResponse CreateKey() {
    v1::CreateWorkspaceRequest workspace;
    workspace.set_workspace_id("w");
    v1::CreateWorkspaceResponse created;
    grpc::ClientContext first;
    EXPECT_TRUE(admin_->CreateWorkspace(&first, workspace, &created).ok());
    v1::CreateKeyRequest request;
    request.set_workspace_id("w");
    v1::CreateKeyResponse response;
    grpc::ClientContext second;
    EXPECT_TRUE(admin_->CreateKey(&second, request, &response).ok());
    return response;
  }
  grpc::Status Disable(const std::string& key) {
    v1::SetKeyStateRequest request;
    request.set_key_id(key);
    request.set_state(v1::KEY_STATE_DISABLED);
    v1::SetKeyStateResponse response;
    grpc::ClientContext context;
    return admin_->SetKeyState(&context, request, &response);
  }

  std::string folder_;
  BackendSlot slot_{nullptr};
  AuthRpc rpc_{slot_};
  AuthAdminRpc admin_rpc_{slot_};
  std::shared_ptr<AuthBackend> backend_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AuthService::Stub> stub_;
  std::unique_ptr<v1::AuthAdminService::Stub> admin_;
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
  EXPECT_EQ(Disable("abcdefghijkl").error_code(), grpc::StatusCode::UNAVAILABLE);
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

TEST_F(AuthRpcTest, ACreatedKeyIsFoundAndListed) {
  Start();
  const auto created = CreateKey();
  v1::VerifyKeyRequest request;
  request.set_key_digest(KeyDigest(created.secret()));
  v1::VerifyKeyResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->VerifyKey(&context, request, &response).ok());
  EXPECT_TRUE(response.found());
  EXPECT_EQ(response.key().key_id(), created.key().key_id());
  v1::ListKeysResponse keys;
  grpc::ClientContext list;
  ASSERT_TRUE(admin_->ListKeys(&list, {}, &keys).ok());
  EXPECT_EQ(keys.keys_size(), 1);
  v1::ListWorkspacesResponse workspaces;
  grpc::ClientContext list_workspaces;
  ASSERT_TRUE(admin_->ListWorkspaces(&list_workspaces, {}, &workspaces).ok());
  EXPECT_EQ(workspaces.workspaces_size(), 1);
  v1::ListAuditEventsResponse events;
  grpc::ClientContext audit;
  ASSERT_TRUE(admin_->ListAuditEvents(&audit, {}, &events).ok());
  EXPECT_EQ(events.events_size(), 2);
}

TEST_F(AuthRpcTest, RefusalsCarryErrorIdAndParam) {
  Start();
  const Error error = rpc::FromStatus(Disable("abcdefghijkl"));
  EXPECT_EQ(error.id, ErrorId::kNotFound);
  EXPECT_EQ(error.param, "key_id");
}

TEST_F(AuthRpcTest, WatchersGetChangesAtOnceAndAPingEachSecond) {
  Start();
  const auto created = CreateKey();
  grpc::ClientContext context;
  auto reader = stub_->WatchKeys(&context, {});
  v1::WatchKeysResponse message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.version(), 2);
  EXPECT_EQ(message.changes_size(), 0);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(Disable(created.key().key_id()).ok());
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  ASSERT_EQ(message.changes_size(), 1);
  EXPECT_EQ(message.changes(0).key().state(), v1::KEY_STATE_DISABLED);
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.changes_size(), 0);  // a ping
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
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
  EXPECT_EQ(Disable("abcdefghijkl").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AuthRpcTest, ManyWatchersConnectAndDisconnectWhileKeysChange) {
  Start();
  const auto created = CreateKey();
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    while (!stop) {
      for (const auto state : {v1::KEY_STATE_DISABLED, v1::KEY_STATE_ACTIVE}) {
        v1::SetKeyStateRequest request;
        request.set_key_id(created.key().key_id());
        request.set_state(state);
        v1::SetKeyStateResponse response;
        grpc::ClientContext context;
        EXPECT_TRUE(admin_->SetKeyState(&context, request, &response).ok());
      }
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
