#include "services/ratelimit/storage/limiter_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kLease = 30'000'000;

template <typename Body>
void OnThreads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

// Concurrent callers never exceed a limit and leave none of it unused.
TEST(LimiterStore, ConcurrentCallersGetExactlyTheLimit) {
  ManualClock clock;
  LimiterStore store(clock, kLease);
  std::atomic<int> granted{0};
  OnThreads(8, [&](int thread) {
    for (uint64_t i = 0; i < 500; ++i) {
      const AcquireOutcome outcome = store.Acquire(
          {.lease = Id::Make(thread, 0, i),
           .workspace_id = "w",
           .key_id = "k" + std::to_string(thread % 3),
           .workspace_limits = {.requests_per_minute = 1000, .concurrent_requests = 1500}});
      if (outcome.granted()) ++granted;
    }
  });
  EXPECT_EQ(granted, 1000);
  EXPECT_EQ(store.Sweep().leases, 1000u);
}

TEST(LimiterStore, ConcurrencyNeverExceedsTheLimit) {
  ManualClock clock;
  LimiterStore store(clock, kLease);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> granted{0};
  OnThreads(8, [&](int thread) {
    for (uint64_t i = 0; i < 2000; ++i) {
      const Id lease = Id::Make(thread, 0, i);
      if (!store
               .Acquire({.lease = lease,
                         .workspace_id = "w",
                         .key_id = "k",
                         .key_limits = {.concurrent_requests = 3}})
               .granted()) {
        continue;
      }
      ++granted;
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      --running;
      EXPECT_TRUE(store.Release("w", lease, 0, i % 2 == 0));
    }
  });
  EXPECT_LE(most, 3);
  EXPECT_GT(granted, 0);
  EXPECT_EQ(store.Peek("w", "k", {.concurrent_requests = 3}, {}).concurrency.remaining, 3);
}

TEST(LimiterStore, RenewNeedsOnlyTheLeaseIds) {
  ManualClock clock;
  LimiterStore store(clock, kLease);
  std::vector<Id> leases;
  for (uint64_t i = 0; i < 200; ++i) {
    leases.push_back(Id::Make(1, 0, i));
    const std::string workspace = "w" + std::to_string(i);
    store.Acquire({.lease = leases.back(), .workspace_id = workspace, .key_id = "k"});
  }
  clock.Advance(kLease - 1);
  std::vector<Id> half(leases.begin(), leases.begin() + 100);
  half.push_back(Id::Make(2, 0, 0));  // unknown: ignored
  EXPECT_EQ(store.Renew(half), 100u);
  clock.Advance(1);
  const LimiterStore::Totals totals = store.Sweep();
  EXPECT_EQ(totals.leases, 100u);
  EXPECT_EQ(totals.expired, 100);
}

}  // namespace
}  // namespace tollgate::ratelimit
