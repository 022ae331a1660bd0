#include "services/ratelimit/storage/memory_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kStoreSlotLifeUs = 30'000'000;

template <typename Body>
void OnThreads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

Claim ClaimOf(const Id& slot, const Limits& limits) {
  return {.slot = slot, .scope = "w", .subjects = {{Who::kKey, "key", limits}}};
}

AcquireOutcome Acquire(MemoryStore& store, const Id& slot, const Limits& limits) {
  AcquireOutcome outcome;
  store.Acquire(ClaimOf(slot, limits), [&](auto got) { outcome = std::move(*got); });
  return outcome;
}

// Concurrent callers never exceed a limit, and can use all of it.
TEST(MemoryStore, ConcurrentCallersGetExactlyTheLimit) {
  ManualClock clock;
  MemoryStore store(clock, kStoreSlotLifeUs);
  std::atomic<int> granted{0};
  OnThreads(8, [&](int thread) {
    for (uint64_t i = 0; i < 500; ++i) {
      const Limits limits{.requests_per_minute = 1000, .concurrent_requests = 1500};
      if (Acquire(store, Id::Make(thread, 0, i), limits).granted()) ++granted;
    }
  });
  EXPECT_EQ(granted, 1000);
  EXPECT_EQ(store.Sweep().slots, 1000u);
}

TEST(MemoryStore, ConcurrencyNeverExceedsTheLimit) {
  ManualClock clock;
  MemoryStore store(clock, kStoreSlotLifeUs);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> granted{0};
  OnThreads(8, [&](int thread) {
    for (uint64_t i = 0; i < 2000; ++i) {
      const Id slot = Id::Make(thread, 0, i);
      if (!Acquire(store, slot, {.concurrent_requests = 3}).granted()) continue;
      ++granted;
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      --running;
      store.Release("w", slot, 0, i % 2 == 0, [](auto known) { EXPECT_TRUE(*known); });
    }
  });
  EXPECT_LE(most, 3);
  EXPECT_GT(granted, 0);
  store.Peek(ClaimOf(Id(), {.concurrent_requests = 3}),
             [](auto left) { EXPECT_EQ(left->concurrency.remaining, 3); });
}

// Purpose of the state file: after a restart each subject has what is left, not a second burst.
TEST(MemoryStore, SavedRatesGoOnInAnotherStore) {
  ManualClock clock;
  MemoryStore before(clock, kStoreSlotLifeUs);
  const Limits limits{.requests_per_minute = 60, .tokens_per_minute = 600};
  for (uint64_t i = 0; i < 60; ++i)
    ASSERT_TRUE(Acquire(before, Id::Make(1, 0, i), limits).granted());
  ASSERT_FALSE(Acquire(before, Id::Make(1, 0, 60), limits).granted());
  const v1::SavedState state = before.Save();
  MemoryStore after(clock, kStoreSlotLifeUs);
  after.Restore(state, 5'000'000);
  int granted = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    granted += Acquire(after, Id::Make(2, 0, i), limits).granted() ? 1 : 0;
  }
  EXPECT_EQ(granted, 5);  // refilled in five seconds
  // If the wall clock was set back, nothing recovers.
  MemoryStore again(clock, kStoreSlotLifeUs);
  again.Restore(state, -1'000'000'000);
  EXPECT_FALSE(Acquire(again, Id::Make(3, 0, 1), limits).granted());
}

}  // namespace
}  // namespace tollgate::ratelimit
