#include "common/clients/batcher.h"

#include <google/protobuf/repeated_field.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/clock.h"
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

// A method that takes and returns numbers.
using Numbers = google::protobuf::RepeatedField<int>;
struct DoubleMethod : BatchedMethod<int, int> {
  using Request = Numbers;
  using Response = Numbers;
  static Numbers& Items(Numbers& request) { return request; }
  static Numbers& Results(Numbers& response) { return response; }
};
struct DoubleAtOnceMethod : DoubleMethod {
  static constexpr bool kAnsweredAtOnce = true;
};
struct TestRoute {
  std::function<Task<Result<Numbers>>(Numbers items, int64_t timeout_ms)> call;
  rpc::DirectCall<Numbers, Numbers> direct_call = {};

  Task<Result<Numbers>> Call(Numbers items, int64_t timeout_ms) const {
    return call(std::move(items), timeout_ms);
  }
  const rpc::DirectCall<Numbers, Numbers>* direct() const {
    return direct_call ? &direct_call : nullptr;
  }
};
using IntBatcher = Batcher<DoubleMethod, TestRoute>;

Task<Result<Numbers>> Answer(Gate& gate, Numbers items) {
  gate.batches.push_back(static_cast<size_t>(items.size()));
  co_await gate.opened.Wait();
  if (gate.failure) co_return Fail{*gate.failure};
  for (int& item : items) item *= 2;
  if (gate.lose_one) items.RemoveLast();
  co_return items;
}

// Its time advances only with the test's clock.
std::shared_ptr<IntBatcher> MakeBatcher(Loop& loop, Gate& gate, const ManualClock& clock) {
  return std::make_shared<IntBatcher>(
      loop, TestRoute{[&gate](Numbers items, int64_t) { return Answer(gate, std::move(items)); }},
      clock);
}

template <typename AnyBatcher>
Task<void> CallOne(std::shared_ptr<AnyBatcher> batcher, int item, int& succeeded, int& failed) {
  auto reply = co_await batcher->Call(item, 30'000);
  if (!reply.ok()) {
    ++failed;
  } else if (*reply == item * 2) {
    ++succeeded;
  }
}

TEST(Batcher, WaitingCallsShareABatchAndGetTheirOwnReplies) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
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
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
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
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
    int succeeded = 0;
    int failed = 0;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 3) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 3);
    // A wrong number of replies cannot be assigned to items.
    gate.failure.reset();
    gate.lose_one = true;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 6) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 6);
    co_return 0;
  });
}

Task<void> CallFor(std::shared_ptr<IntBatcher> batcher, int item, int64_t timeout_ms,
                   std::vector<int>& failed) {
  const auto reply = co_await batcher->Call(item, timeout_ms);
  if (reply.ok()) co_return;
  EXPECT_EQ(reply.error().id, ErrorId::kServiceUnavailable);
  failed.push_back(item);
}

// The service never answers, whatever its timeout.
TEST(Batcher, ACallWaitsNoLongerThanItsTimeoutForADeadService) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
    std::vector<int> failed;
    // Two batches are in flight, and a third call times out before these are stuck.
    for (int i = 0; i < 2; ++i) {
      loop.Spawn(CallFor(batcher, i, 90, failed));
      co_await loop.Sleep(0);
    }
    for (int i = 2; i < 300; ++i) loop.Spawn(CallFor(batcher, i, i < 100 ? 40 : 80, failed));
    const auto failed_are = [&](size_t count) -> Task<void> {
      while (failed.size() < count) co_await loop.Sleep(1);
      co_await loop.Sleep(2 * IntBatcher::kSweepMs);
      EXPECT_EQ(failed.size(), count);
    };
    clock.Advance(39'999);
    co_await failed_are(0);
    clock.Advance(1);
    co_await failed_are(98);
    EXPECT_EQ(failed.front(), 2) << "the shorter timeouts end first";
    clock.Advance(40'000);
    co_await failed_are(298);
    clock.Advance(10'000);
    co_await failed_are(300);
    // A call that timed out is not sent later.
    gate.opened.Set();
    int succeeded = 0;
    int lost = 0;
    co_await CallOne(batcher, 1'000, succeeded, lost);
    EXPECT_EQ(succeeded, 1);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{1, 1, 1}));
    co_return 0;
  });
}

TEST(Batcher, TheShortTimeOfOneCallDoesNotEndItsBatch) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
    std::vector<int> failed;
    int succeeded = 0;
    int lost = 0;
    loop.Spawn(CallFor(batcher, 1, 50, failed));
    loop.Spawn(CallOne(batcher, 2, succeeded, lost));
    clock.Advance(50'000);
    while (failed.empty()) co_await loop.Sleep(5);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{2}));
    gate.opened.Set();
    while (succeeded + lost < 1) co_await loop.Sleep(5);
    EXPECT_EQ(succeeded, 1);
    co_return 0;
  });
}

TEST(Batcher, BatchesThatAreStuckKeepNoOthersWaiting) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    ManualClock clock;
    auto batcher = std::make_shared<IntBatcher>(
        loop, TestRoute{[&gate](Numbers items, int64_t) -> Task<Result<Numbers>> {
          if (items.Get(0) >= 100) return Answer(gate, std::move(items));  // hangs
          return [](Numbers items) -> Task<Result<Numbers>> {
            for (int& item : items) item *= 2;
            co_return items;
          }(std::move(items));
        }},
        clock);
    int succeeded = 0;
    int failed = 0;
    for (int i = 0; i < IntBatcher::kMaxInFlight; ++i) {
      loop.Spawn(CallOne(batcher, 100 + i, succeeded, failed));
      co_await loop.Sleep(0);
    }
    clock.Advance(IntBatcher::kStuckUs);
    const auto reply = co_await batcher->Call(1, 30'000);
    EXPECT_TRUE(reply.ok());
    EXPECT_EQ(succeeded + failed, 0);
    gate.opened.Set();
    while (succeeded < IntBatcher::kMaxInFlight) co_await loop.Sleep(0);
    co_return 0;
  });
}

TEST(Batcher, CallsAboveTheBoundAreRefusedAtOnce) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    ManualClock clock;
    auto batcher = MakeBatcher(loop, gate, clock);
    int succeeded = 0;
    int failed = 0;
    const int all = static_cast<int>(IntBatcher::kMaxWaiting) + 10;
    for (int i = 0; i < all; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    co_await loop.Sleep(0);
    EXPECT_EQ(failed, 10);
    gate.opened.Set();
    while (succeeded + failed < all) co_await loop.Sleep(5);
    co_return 0;
  });
}

// A service of the same process that answers on this or another thread.
struct DirectService {
  using Done = std::function<void(Result<Numbers>)>;
  std::vector<size_t> batches;
  std::function<void(Numbers, Done)> answer = [](Numbers items, Done done) {
    for (int& item : items) item *= 2;
    done(std::move(items));
  };

  template <typename Method = DoubleMethod>
  auto Batch(Loop& loop) {
    return std::make_shared<Batcher<Method, TestRoute>>(
        loop, TestRoute{{}, [this](Numbers items, Done done) {
                          batches.push_back(static_cast<size_t>(items.size()));
                          answer(std::move(items), std::move(done));
                        }});
  }
};

TEST(DirectBatcher, AnAnswerWithinTheCallDoesNotSuspend) {
  RunTask([](Loop& loop) -> Task<int> {
    DirectService service;
    auto batcher = service.Batch<DoubleAtOnceMethod>(loop);
    int succeeded = 0;
    int failed = 0;
    int turns = 0;
    loop.Post([&turns] { ++turns; });
    for (int i = 0; i < 3; ++i) co_await CallOne(batcher, i, succeeded, failed);
    EXPECT_EQ(turns, 0);
    EXPECT_EQ(succeeded, 3);
    EXPECT_EQ(service.batches, (std::vector<size_t>{1, 1, 1}));
    co_return 0;
  });
}

TEST(DirectBatcher, CallsOfOneTurnShareABatchThatAnotherThreadAnswers) {
  RunTask([](Loop& loop) -> Task<int> {
    DirectService service;
    std::vector<std::thread> threads;
    service.answer = [&](Numbers items, DirectService::Done done) {
      threads.emplace_back([items = std::move(items), done = std::move(done)]() mutable {
        for (int& item : items) item *= 2;
        done(std::move(items));
      });
    };
    auto batcher = service.Batch(loop);
    int succeeded = 0;
    int failed = 0;
    for (int i = 0; i < 10; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 10) co_await loop.Sleep(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(succeeded, 10);
    EXPECT_EQ(service.batches, (std::vector<size_t>{10}));
    co_return 0;
  });
}

TEST(DirectBatcher, ErrorsAndLostResultsReachEveryCall) {
  RunTask([](Loop& loop) -> Task<int> {
    DirectService service;
    service.answer = [](Numbers items, const DirectService::Done& done) {
      if (items.size() == 1) return done(Unavailable("away"));
      items.RemoveLast();
      done(std::move(items));
    };
    auto batcher = service.Batch(loop);
    int succeeded = 0;
    int failed = 0;
    co_await CallOne(batcher, 1, succeeded, failed);
    for (int i = 0; i < 4; ++i) loop.Spawn(CallOne(batcher, i, succeeded, failed));
    while (succeeded + failed < 5) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 5);
    co_return 0;
  });
}

TEST(DirectBatcher, ALateAnswerOfACallThatTimedOutIsDropped) {
  RunTask([](Loop& loop) -> Task<int> {
    DirectService service;
    std::vector<DirectService::Done> kept;
    service.answer = [&](Numbers, DirectService::Done done) { kept.push_back(std::move(done)); };
    auto batcher = service.Batch(loop);
    std::vector<int> failed;
    loop.Spawn(CallFor(batcher, 1, 30, failed));
    while (failed.empty()) co_await loop.Sleep(5);
    Numbers late;
    late.Add(2);
    kept.front()(std::move(late));
    kept.clear();
    co_await loop.Sleep(0);
    EXPECT_EQ(failed, (std::vector<int>{1}));
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate
