#include "common/rpc/server.h"

#include <gtest/gtest.h>

#include "common/rpc/testing/auth_server.h"

namespace tollgate::rpc {
namespace {

class ServerTest : public testing::RpcTest {};

TEST_P(ServerTest, HandlersRunOnWorkersAndOnLoops) {
  auto worker = Call("worker");
  ASSERT_TRUE(worker.ok());
  EXPECT_TRUE(worker->found());
  auto on_loop = Call("loop");
  ASSERT_TRUE(on_loop.ok());
  EXPECT_TRUE(on_loop->found());
}

INSTANTIATE_TEST_SUITE_P(Transport, ServerTest, testing::kTransports, testing::TransportName);

}  // namespace
}  // namespace tollgate::rpc
