// How many requests of a key an engine may refuse, of those that no limit on requests bounds. Each
// takes a hold and releases it, which the ledger keeps for ever and nobody pays for (ADR 0016). One
// loop only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "gateway/worker/second_chance_map.h"

namespace tollgate::gateway {

class RefusalBudget {
 public:
  // One a second, and so many at once.
  static constexpr int64_t kIntervalUs = 1'000'000;
  static constexpr int64_t kBurst = 60;

  // Milliseconds until the key may ask again; 0: now.
  int64_t WaitMs(const std::string& key_id, int64_t now_us) {
    const int64_t* full_us = full_us_.Find(key_id);
    if (full_us == nullptr) return 0;
    const int64_t wait_us = *full_us - now_us - (kBurst - 1) * kIntervalUs;
    return std::max<int64_t>(0, (wait_us + 999) / 1000);
  }
  // A refusal. Those of requests that ran at the same time count up to one burst more.
  void Take(const std::string& key_id, int64_t now_us) {
    const int64_t* full_us = full_us_.Find(key_id);
    const int64_t next_us = std::max(full_us == nullptr ? now_us : *full_us, now_us) + kIntervalUs;
    full_us_.Insert(key_id, std::min(next_us, now_us + 2 * kBurst * kIntervalUs));
  }
  // A paid answer makes up for a refusal: who pays for most requests is never limited.
  void GiveBack(const std::string& key_id) {
    if (int64_t* full_us = full_us_.Find(key_id)) *full_us -= kIntervalUs;
  }

 private:
  // By key: when all of it is back (GCRA), monotonic.
  SecondChanceMap<int64_t> full_us_{20'000};
};

}  // namespace tollgate::gateway
