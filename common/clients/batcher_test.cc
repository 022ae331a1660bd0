#include "common/clients/batcher.h"

#include <gtest/gtest.h>

#include "common/runtime/testing/run_coro.h"

namespace tollgate {
namespace {

using testing::RunTask;

// A service that answers once the gate is open.
struct Gate {
  explicit Gate(Loop& loop) : opened(loop) {}
  std::vector<size_t> batches;
  Event opened;
  std::optional<Error> failure;
  bool lose_one = false;
};
using IntBatcher = Batcher<int, int>;

Task<Result<std::vector<int>>> Answer(Gate& gate, std::vector<int> items) {
  gate.batches.push_back(items.size());
  co_await gate.opened.Wait();
  if (gate.failure) co_return Fail{*gate.failure};
  for (int& item : items) item *= 2;
  if (gate.lose_one) items.pop_back();
  co_return items;
}

std::shared_ptr<IntBatcher> MakeBatcher(Loop& loop, Gate& gate) {
  return std::make_shared<IntBatcher>(
      loop, [&gate](std::vector<int> items, int64_t) { return Answer(gate, std::move(items)); });
}

Task<void> CallOne(std::shared_ptr<IntBatcher> batcher, int item, int& succeeded, int& failed) {
  auto reply = co_await batcher->Call(item, 1'000);
  if (!reply.ok()) {
    ++failed;
  } else if (*reply == item * 2) {
    ++succeeded;
  }
}

TEST(Batcher, WaitingCallsShareABatchAndGetTheirOwnReplies) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    auto batcher = MakeBatcher(loop, gate);
    int succeeded = 0;
    int failed = 0;
    // One call per turn: each is sent at once, up to the maximum of batches in flight.
    for (int i = 0; i < 2; ++i) {
      loop.Spawn(CallOne(batcher, i, succeeded, failed));
      co_await loop.Sleep(0);
    }
    EXPECT_EQ(gate.batches, (std::vector<size_t>{1, 1}));
    for (int i = 0; i < 600; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    co_await loop.Sleep(0);
    EXPECT_EQ(gate.batches.size(), 2u);
    gate.opened.Set();
    while (succeeded + failed < 602) co_await loop.Sleep(0);
    EXPECT_EQ(succeeded, 602);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{1, 1, 256, 256, 88}));
    co_return 0;
  });
}

TEST(Batcher, CallsOfOneTurnShareABatch) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    gate.opened.Set();
    auto batcher = MakeBatcher(loop, gate);
    int succeeded = 0;
    int failed = 0;
    for (int i = 0; i < 10; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 10) co_await loop.Sleep(0);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{10}));
    co_return 0;
  });
}

TEST(Batcher, AFailedBatchFailsEachOfItsCalls) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    gate.opened.Set();
    gate.failure = Error{.id = ErrorId::kServiceUnavailable};
    auto batcher = MakeBatcher(loop, gate);
    int succeeded = 0;
    int failed = 0;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 3) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 3);
    // With a wrong number of replies, none can be assigned.
    gate.failure.reset();
    gate.lose_one = true;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 6) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 6);
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate
