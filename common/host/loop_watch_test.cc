#include "common/host/loop_watch.h"

#include <gtest/gtest.h>

#include <future>

namespace tollgate::host {
namespace {

// Waits for the condition, for a minute at most.
template <typename Condition>
bool Becomes(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(LoopWatch, OneLoopThatHangsIsFoundAndSoIsItsReturn) {
  LoopPool loops(2);
  loops.Start();
  std::atomic<int> ticks{0};
  std::atomic<bool> all_turn{false};
  LoopWatch watch(loops, [&](bool turn) {
    all_turn = turn;
    ++ticks;
  });
  ASSERT_TRUE(Becomes([&] { return ticks > 2; }));
  EXPECT_TRUE(all_turn);

  std::promise<void> release;
  loops.loop(1).Post([&] { release.get_future().wait(); });
  EXPECT_TRUE(Becomes([&] { return !all_turn; }));
  release.set_value();
  EXPECT_TRUE(Becomes([&] { return all_turn.load(); }));
}

}  // namespace
}  // namespace tollgate::host
