#include "common/rpc/server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "common/rpc/testing/auth_server.h"

namespace tollgate::rpc {
namespace {

using testing::VerifyKeyRequest;
using testing::VerifyKeyResponse;
using testing::WatchKeysResponse;

class ServerTest : public testing::RpcTest {};

TEST_P(ServerTest, HandlersRunOnWorkersAndOnLoops) {
  auto worker = Call("worker");
  ASSERT_TRUE(worker.ok());
  EXPECT_TRUE(worker->found());
  auto on_loop = Call("loop");
  ASSERT_TRUE(on_loop.ok());
  EXPECT_TRUE(on_loop->found());
}

// H79: only this call fails; the connection and the calls of others continue.
TEST_P(ServerTest, AMessageAboveTheLimitIsRefusedAndTheConnectionLives) {
  grpc::ClientContext watching;
  const auto watch = stub_->WatchKeys(&watching, {});
  WatchKeysResponse message;
  ASSERT_TRUE(watch->Read(&message));
  for (const size_t bytes : {size_t{5} << 20, size_t{kMaxMessageBytes}}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    VerifyKeyRequest request;
    request.set_key_digest(std::string(bytes, 'x'));
    VerifyKeyResponse response;
    const grpc::Status refused = stub_->VerifyKey(&context, request, &response);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_NE(refused.error_message().find("4194304"), std::string::npos)
        << "by gRPC, before it reached the service: " << refused.error_message();
  }
  EXPECT_TRUE(Call("worker").ok());
  EXPECT_TRUE(watch->Read(&message)) << "the stream on the same connection still gets its pings";
  watching.TryCancel();
  watch->Finish();
}

TEST_P(ServerTest, AnAnswerAboveTheLimitFailsItsCallOnly) {
  auto large = Call("large");
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().id, ErrorId::kServiceUnavailable);
  EXPECT_TRUE(Call("worker").ok());
}

INSTANTIATE_TEST_SUITE_P(Transport, ServerTest, testing::kTransports, testing::TransportName);

}  // namespace
}  // namespace tollgate::rpc
