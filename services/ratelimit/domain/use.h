// What was used of a subject's limits in the last hour, by minutes (docs/design/limits.md 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/time_units.h"
#include "services/ratelimit/domain/decision.h"

namespace tollgate::ratelimit {

// How many minutes are told: the one that runs and those before it.
inline constexpr int64_t kMinutesOfUse = 60;
// More tokens of one request than any limit are counted as this many, so that sums stay exact in
// Redis's floating point.
inline constexpr int64_t kMaxCountedTokens = 1'000'000'000'000;

struct MinuteUse {
  uint32_t minute = 0;    // since the clock's zero
  uint32_t requests = 0;  // admitted and not given back
  // Of the requests that were admitted in this minute: the estimate while one runs, then what it
  // used. Counted where there is a limit on tokens.
  int64_t tokens = 0;
  // The fullest that the buckets were after a charge: the time until they would have been whole.
  uint32_t requests_peak_us = 0;
  uint32_t tokens_peak_us = 0;
  // The most slots that were taken at a time.
  uint32_t running_peak = 0;
  // Requests that this limit refused, or would have in shadow mode. One that several limits refuse
  // counts at each.
  uint32_t refused_requests = 0;
  uint32_t refused_concurrency = 0;
  uint32_t refused_tokens = 0;

  friend bool operator==(const MinuteUse&, const MinuteUse&) = default;
};

// Only minutes in which something happened take memory. Not thread-safe.
class UseHistory {
 public:
  // One request more, after whose charge this much is used of the buckets. tokens: -1 without a
  // limit on tokens.
  void Admit(int64_t tokens, int64_t requests_ns, int64_t tokens_ns, int64_t now_us);
  void Refuse(const Refusals& refusals, int64_t now_us);
  // So many slots are taken. To be called at each call of the limiter that concerns one of them,
  // before and after it: then no minute lacks those that were taken before it.
  void Running(int64_t running, int64_t now_us);
  // So much is used of the bucket of tokens after a correction.
  void TokensUsed(int64_t tokens_ns, int64_t now_us);
  // Corrects what Admit counted at that time, if it is still told.
  void Correct(int64_t admitted_us, int64_t requests, int64_t tokens, int64_t now_us);
  // Drops what is too old to be told. Returns whether nothing is left.
  bool Forget(int64_t now_us);
  // The minutes to tell, in order of time.
  std::vector<MinuteUse> Read(int64_t now_us) const;

 private:
  MinuteUse& At(int64_t now_us);
  std::vector<MinuteUse> minutes_;  // in order of time
};

}  // namespace tollgate::ratelimit
