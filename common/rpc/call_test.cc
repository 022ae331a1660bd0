// Unary calls over both transports: results, errors, deadlines and cancellation.
#include "common/rpc/call.h"

#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "common/rpc/testing/auth_server.h"

namespace tollgate::rpc {
namespace {

using tollgate::testing::RunOn;

class CallTest : public testing::RpcTest {};

TEST_P(CallTest, ErrorsKeepTheirIdAndFields) {
  auto result = Call("slow down");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kTokenLimited);
  EXPECT_EQ(result.error().message, "slow down");
  EXPECT_EQ(result.error().param, "p");
  EXPECT_EQ(result.error().retry_after_ms, 1234);
}

// gRPC reports details above 8 KiB as RESOURCE_EXHAUSTED without details
// (docs/design/toolchain.md 2).
TEST_P(CallTest, LongTextsAreTruncated) {
  auto result = Call(std::string(20'000, 'x'));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kTokenLimited);
  EXPECT_EQ(result.error().message.substr(0, 3), "xxx");
  EXPECT_LT(result.error().message.size(), 2'000u);
}

TEST_P(CallTest, AStatusWithoutDetailIsNotAClientError) {
  auto result = Call("bare status");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServerError);
}

TEST_P(CallTest, ADeadlineEndsTheCall) {
  auto result = Call("never", 50);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

TEST_P(CallTest, ConcurrentCallsAllComplete) {
  int found = RunOn(loop(), [&](Loop& loop) -> Task<int> {
    int found = 0;
    int open = 500;
    Event done(loop);
    auto one = [](Loop& loop, testing::AuthService::Stub& stub, int& found, int& open,
                  Event& done) -> Task<void> {
      auto result = co_await testing::Verify(loop, stub, "loop");
      if (result.ok() && result->found()) ++found;
      if (--open == 0) done.Set();
    };
    for (int i = 0; i < 500; ++i) loop.Spawn(one(loop, *stub_, found, open, done));
    co_await done.Wait();
    co_return found;
  });
  EXPECT_EQ(found, 500);
}

INSTANTIATE_TEST_SUITE_P(Transport, CallTest, testing::kTransports, testing::TransportName);

Task<void> CallUntilCancelled(Loop& loop, testing::AuthService::Stub& stub) {
  auto result = co_await testing::Verify(loop, stub, "never", 60'000);
  EXPECT_FALSE(result.ok());
}

Task<void> UntilStarted(Loop& loop, const testing::FakeAuth& service) {
  while (!service.never_started) co_await loop.Sleep(1);
}

TEST(Unary, ACancelledCallIsCancelledAtTheServer) {
  using asio::experimental::awaitable_operators::operator||;
  LoopPool loops(1);
  loops.Start();
  testing::AuthServer server(loops);
  auto stub = testing::AuthService::NewStub(server.channels.Channel("inproc:", "auth"));
  RunOn(loops.loop(0), [&](Loop& loop) -> Task<int> {
    auto first = co_await (CallUntilCancelled(loop, *stub) || UntilStarted(loop, *server.service));
    EXPECT_EQ(first.index(), 1u);
    co_return 0;
  });
  while (!server.service->never_cancelled) std::this_thread::yield();
}

}  // namespace
}  // namespace tollgate::rpc
