// Finds event loops that hang. A process with a hung loop still accepts connections and answers
// some requests, so the fault would be invisible from outside.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/runtime/loop.h"
#include "common/runtime/periodic_thread.h"

namespace tollgate::host {

class LoopWatch {
 public:
  // A loop that has not turned for this long hangs.
  static constexpr int64_t kHangUs = 1'000'000;
  static constexpr int64_t kPeriodMs = 200;

  // Called every kPeriodMs on a thread of its own. all_turn: every loop has turned within kHangUs.
  // The loops must outlive the watch.
  using OnTick = std::function<void(bool all_turn)>;
  LoopWatch(LoopPool& loops, OnTick on_tick);
  ~LoopWatch() { thread_.Stop(); }

 private:
  // When the pending callback of a loop was posted; 0: none is pending. Shared with the callbacks.
  using Posted = std::shared_ptr<std::atomic<int64_t>>;
  void Check();
  bool AllTurn() const;

  LoopPool& loops_;
  const OnTick on_tick_;
  std::vector<Posted> posted_us_;  // one per loop
  PeriodicThread thread_;
};

}  // namespace tollgate::host
