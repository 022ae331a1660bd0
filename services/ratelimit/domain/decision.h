// Whether a request is within its limits. Pure: the state of each subject comes as a Reading, from
// this process's memory or from Redis, and both are judged here. See docs/design/limits.md 2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "services/ratelimit/domain/gcra.h"

namespace tollgate::ratelimit {

// 0 means: no such limit.
struct Limits {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;
  int64_t concurrent_requests = 0;
  // Refusals are only counted.
  bool shadow = false;
  bool none() const {
    return requests_per_minute <= 0 && tokens_per_minute <= 0 && concurrent_requests <= 0;
  }
};

// In order of precedence (decision 16): when several limits refuse, the first is reported.
enum class Kind : uint8_t { kNone, kRequests, kConcurrency, kTokens };

// Whose limit it is. The values of v1::LimitSubject.
enum class Who : uint8_t { kNone, kKey, kWorkspace, kKeyModel, kWorkspaceModel, kModel };

struct Status {
  int64_t limit = 0;  // 0: no such limit
  int64_t remaining = 0;
  int64_t reset_ms = 0;
};

// One subject that a request takes from.
struct SubjectClaim {
  Who who = Who::kKey;
  std::string name;  // unique within the scope
  Limits limits;
};

// What one request takes from the subjects of one scope: all of it or nothing. A scope is a
// workspace, or a model's capacity; its state is in one place (a shard, a hash slot of Redis).
struct Claim {
  Id lease;
  std::string scope;
  std::vector<SubjectClaim> subjects;
  int64_t tokens = 0;
};

inline constexpr int64_t kDefaultHoldUs = 2'000'000;
// How long leases are held is forgotten after this time without an end of one.
inline constexpr int64_t kForgetHoldUs = 600'000'000;

// The state of a subject at the time of the decision, before it.
struct Reading {
  int64_t requests_ns = 0;  // until the rate has recovered
  int64_t tokens_ns = 0;
  int64_t running = 0;  // slots taken; only counted for subjects with a limit on concurrency
  int64_t median_hold_us = kDefaultHoldUs;
};

// What one subject's limits say to a claim.
struct Cost {
  int64_t requests_ns = 0;
  int64_t tokens_ns = 0;
  bool slot = false;
};
Cost CostOf(const Limits& limits, int64_t tokens);
// Which of a subject's limits do not admit the cost.
struct Refusals {
  bool requests = false;
  bool concurrency = false;
  bool tokens = false;
  bool any() const { return requests || concurrency || tokens; }
};
Refusals RefusalsOf(const Limits& limits, const Cost& cost, const Reading& reading);

struct AcquireOutcome {
  Kind denied_by = Kind::kNone;
  Who denied_subject = Who::kNone;
  int64_t retry_after_ms = 0;
  // The one with the least left of all enforced limits.
  Status requests;
  Status tokens;
  // Limits in shadow mode that would have refused.
  std::vector<Kind> shadow_refusals;
  // The shared store was unreachable: rates were checked against a share, concurrency was not.
  bool local_share = false;
  bool granted() const { return denied_by == Kind::kNone; }
};

// The outcome of a claim. held: the lease is held already, so nothing was asked of any limit.
AcquireOutcome Judge(const Claim& claim, std::span<const Reading> readings, bool held);

struct PeekOutcome {
  Status requests;
  Status tokens;
  Status concurrency;
};
PeekOutcome Describe(const Claim& claim, std::span<const Reading> readings);
// The tighter of two scopes.
void Combine(const PeekOutcome& other, PeekOutcome& into);
void Combine(const AcquireOutcome& other, AcquireOutcome& into);

}  // namespace tollgate::ratelimit
