// Decides whether a request is within its limits. Pure: the state of each subject comes as a
// Reading, from this process's memory or from Redis, and is judged here in both cases. See
// docs/design/limits.md 2.
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
  // Shadow mode: refusals are only counted.
  bool shadow = false;
  bool none() const {
    return requests_per_minute <= 0 && tokens_per_minute <= 0 && concurrent_requests <= 0;
  }
};

// Kinds of limits in order of precedence (decision 16): if several refuse, the first is reported.
enum class Kind : uint8_t { kNone, kRequests, kConcurrency, kTokens };

// Owner of a limit. The values are those of v1::LimitSubject.
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

// What one request takes from the subjects of one scope, all or nothing. A scope is a workspace or
// a model's capacity. Its state is in one place (a shard, a hash slot of Redis).
struct Claim {
  Id slot;
  std::string scope;
  std::vector<SubjectClaim> subjects;
  int64_t tokens = 0;
};

inline constexpr int64_t kDefaultHoldUs = 2'000'000;
// The median hold time is forgotten after this time without a released slot.
inline constexpr int64_t kForgetHoldUs = 600'000'000;

// State of a subject before the decision.
struct Reading {
  int64_t requests_ns = 0;  // until the rate has recovered
  int64_t tokens_ns = 0;
  int64_t running = 0;  // slots taken; counted only for subjects with a limit on concurrency
  int64_t median_hold_us = kDefaultHoldUs;
};

// Cost of a claim under one subject's limits.
struct Cost {
  int64_t requests_ns = 0;
  int64_t tokens_ns = 0;
  bool slot = false;
};
Cost CostOf(const Limits& limits, int64_t tokens);
// Limits of a subject that refuse the cost.
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
  // The enforced limit with the least remaining.
  Status requests;
  Status tokens;
  // Limits in shadow mode that would have refused.
  std::vector<Kind> shadow_refusals;
  // The shared store was unreachable: rates were checked against the local share, concurrency was
  // not checked.
  bool local_share = false;
  bool granted() const { return denied_by == Kind::kNone; }
};

// Outcome of a claim. held: the slot exists already, so no limit was charged.
AcquireOutcome Judge(const Claim& claim, std::span<const Reading> readings, bool held);

struct PeekOutcome {
  Status requests;
  Status tokens;
  Status concurrency;
};
PeekOutcome Describe(const Claim& claim, std::span<const Reading> readings);
// Keeps the tighter of two scopes.
void Combine(const PeekOutcome& other, PeekOutcome& into);
void Combine(const AcquireOutcome& other, AcquireOutcome& into);

}  // namespace tollgate::ratelimit
