#include "common/host/loop_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/clock.h"

namespace tollgate::host {

LoopWatch::LoopWatch(LoopPool& loops, OnTick on_tick)
    : loops_(loops), on_tick_(std::move(on_tick)) {
  for (int i = 0; i < loops_.size(); ++i) {
    posted_us_.push_back(std::make_shared<std::atomic<int64_t>>(0));
  }
  thread_.Start("loop-watch", std::chrono::milliseconds(kPeriodMs), [this] { Check(); });
}

bool LoopWatch::AllTurn() const {
  const int64_t now_us = SystemClock::Get().MonotonicUs();
  return std::all_of(posted_us_.begin(), posted_us_.end(), [now_us](const Posted& posted) {
    const int64_t since_us = posted->load();
    return since_us == 0 || now_us - since_us < kHangUs;
  });
}

void LoopWatch::Check() {
  for (int i = 0; i < loops_.size(); ++i) {
    const Posted posted = posted_us_[static_cast<size_t>(i)];
    if (posted->load() != 0) continue;
    posted->store(SystemClock::Get().MonotonicUs());
    loops_.loop(i).Post([posted] { posted->store(0); });
  }
  on_tick_(AllTurn());
}

}  // namespace tollgate::host
