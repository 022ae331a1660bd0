// Use of a subject's limits in the last hour, by minute (docs/design/limits.md 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/time_units.h"
#include "services/ratelimit/domain/decision.h"

namespace tollgate::ratelimit {

// Number of reported minutes: the current one and those before it.
inline constexpr int64_t kMinutesOfUse = 60;
// Most tokens counted for one request. Larger than any limit, and small enough that sums stay exact
// in Redis's floating point.
inline constexpr int64_t kMaxCountedTokens = 1'000'000'000'000;

struct MinuteUse {
  uint32_t minute = 0;    // number since the clock's zero
  uint32_t requests = 0;  // admitted and not refunded
  // Tokens of requests admitted in this minute: the estimate while a request runs, then the actual
  // number. Counted only under a limit on tokens.
  int64_t tokens = 0;
  // Highest use of the buckets after a charge, as the time until they are full again.
  uint32_t requests_peak_us = 0;
  uint32_t tokens_peak_us = 0;
  // Most slots taken at the same time.
  uint32_t running_peak = 0;
  // Requests that this limit refused, or would have in shadow mode. A request that several limits
  // refuse counts at each.
  uint32_t refused_requests = 0;
  uint32_t refused_concurrency = 0;
  uint32_t refused_tokens = 0;

  friend bool operator==(const MinuteUse&, const MinuteUse&) = default;
};

// Stores only minutes in which something happened. Not thread-safe.
class UseHistory {
 public:
  // Counts one request. requests_ns and tokens_ns: use of the buckets after its charge. tokens: -1
  // without a limit on tokens.
  void Admit(int64_t tokens, int64_t requests_ns, int64_t tokens_ns, int64_t now_us);
  void Refuse(const Refusals& refusals, int64_t now_us);
  // Records the number of slots in use. Call it at the start and the end of each limiter call that
  // concerns a slot, renewals included, so that each minute counts the slots taken earlier.
  void Running(int64_t running, int64_t now_us);
  // Records the use of the token bucket after a correction.
  void TokensUsed(int64_t tokens_ns, int64_t now_us);
  // Corrects what Admit counted at that time, if that minute is still kept.
  void Correct(int64_t admitted_us, int64_t requests, int64_t tokens, int64_t now_us);
  // Drops minutes that are too old. Returns true if none is left.
  bool Forget(int64_t now_us);
  // Minutes in order of time.
  std::vector<MinuteUse> Read(int64_t now_us) const;

 private:
  MinuteUse& At(int64_t now_us);
  std::vector<MinuteUse> minutes_;  // in order of time
};

}  // namespace tollgate::ratelimit
