// Faults of engines at random times. The seed decides kind, time and engine.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/engine_faults/engines.h"

namespace tollgate::test {

struct FaultCounts {
  int64_t kills = 0;
  int64_t stops = 0;      // SIGSTOP, continued later
  int64_t slow = 0;       // periods of slow answers
  int64_t garbled = 0;    // periods of garbled answers
  int64_t unhealthy = 0;  // periods of failing health checks
  int64_t blackouts = 0;  // all engines killed at once; included in kills
  int64_t all() const { return kills + stops + slow + garbled + unhealthy; }
};

class FaultSchedule {
 public:
  FaultSchedule(std::vector<std::unique_ptr<EngineProcess>>& engines, int64_t seed);

  // Call on the thread that owns the engines.
  void Run(int64_t milliseconds);
  // Ends every fault. Returns whether all engines listen.
  bool Repair();
  const FaultCounts& counts() const { return counts_; }

 private:
  enum class Kind { kNone, kKilled, kStopped, kScript };
  struct State {
    Kind kind = Kind::kNone;
    int64_t until_us = 0;
  };
  int64_t Between(int64_t least, int64_t most);
  void Begin(size_t engine);
  void Kill(size_t engine, int64_t for_ms);
  void Garble(size_t engine);
  void End(size_t engine);

  std::vector<std::unique_ptr<EngineProcess>>& engines_;
  std::vector<State> states_;
  std::mt19937 random_;
  FaultCounts counts_;
};

}  // namespace tollgate::test
