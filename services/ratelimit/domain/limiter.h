// The limits of a set of workspaces: request rate, token rate and concurrency of each key and of
// its workspace. A request takes from all of them or from none. Time is an argument (monotonic
// microseconds). Not thread-safe: storage/limiter_store.h adds the locks.
// See docs/design/limits.md, decision 16.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/id.h"
#include "services/ratelimit/domain/gcra.h"

namespace tollgate::ratelimit {

// 0 means: no such limit.
struct Limits {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;
  int64_t concurrent_requests = 0;
};

// In order of precedence (decision 16): when several limits refuse, the first is reported.
enum class Kind : uint8_t { kNone, kRequests, kConcurrency, kTokens };

struct Status {
  int64_t limit = 0;  // 0: no such limit
  int64_t remaining = 0;
  int64_t reset_ms = 0;
};

struct AcquireArgs {
  Id lease;
  std::string_view workspace_id;
  std::string_view key_id;
  Limits key_limits;
  Limits workspace_limits;
  int64_t estimated_tokens = 0;
};

struct AcquireOutcome {
  Kind denied_by = Kind::kNone;
  int64_t retry_after_ms = 0;
  // Of the key or of its workspace, whichever has less left.
  Status requests;
  Status tokens;
  bool granted() const { return denied_by == Kind::kNone; }
};

struct PeekOutcome {
  Status requests;
  Status tokens;
  Status concurrency;
};

class Limiter {
 public:
  explicit Limiter(int64_t lease_us) : lease_us_(lease_us) {}
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // Takes from every limit or from none. Idempotent: a lease that is already held is granted again
  // at no cost.
  AcquireOutcome Acquire(const AcquireArgs& args, int64_t now_us);
  // Ends a lease. With refund, everything that it took is returned; otherwise its token estimate is
  // replaced by the actual count. False: the workspace has no such lease (ended, expired or never
  // granted).
  bool Release(std::string_view workspace_id, const Id& lease, int64_t actual_tokens, bool refund,
               int64_t now_us);
  // Extends a lease to its full lifetime from now. False: there is no such lease.
  bool Renew(const Id& lease, int64_t now_us);
  PeekOutcome Peek(std::string_view workspace_id, std::string_view key_id, const Limits& key_limits,
                   const Limits& workspace_limits, int64_t now_us);
  // Ends expired leases and drops idle subjects: those with full buckets and no lease.
  void Sweep(int64_t now_us);

  size_t leases() const { return leases_.size(); }
  size_t subjects() const { return keys_.size() + workspaces_.size(); }
  // The number of leases that expired without a release.
  int64_t expired() const { return expired_; }

 private:
  struct Subject {
    Bucket requests;
    Bucket tokens;
    int64_t running = 0;
    // Estimated median of how long leases are held: moves one step towards each sample. Gives
    // retry_after_ms when all slots are in use.
    int64_t median_hold_us = 2'000'000;
  };
  // What a lease took from one subject.
  struct Share {
    Subject* subject = nullptr;
    int64_t requests_ns = 0;
    int64_t tokens_ns = 0;
    int64_t tokens_per_minute = 0;
  };
  struct Lease {
    Id id;
    Share key;
    Share workspace;
    int64_t since_us = 0;
    int64_t expires_us = 0;
    // A list in the order of renewal, which is the order of expiry: all lifetimes are equal.
    Lease* older = nullptr;
    Lease* newer = nullptr;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Subjects = std::unordered_map<std::string, Subject, NameHash, std::equal_to<>>;

  static Subject& FindOrAdd(Subjects& subjects, std::string_view name);
  static void Charge(Share& share, Subject& subject, const Limits& limits, int64_t tokens,
                     int64_t now_us);
  static void Settle(Share& share, int64_t actual_tokens, bool refund, int64_t held_us,
                     int64_t now_us);
  static void DropIdle(Subjects& subjects, int64_t now_ns);
  void Append(Lease& lease);
  void Unlink(Lease& lease);
  void EndExpired(int64_t now_us);

  const int64_t lease_us_;
  Subjects keys_;
  Subjects workspaces_;
  std::unordered_map<Id, Lease, IdHash> leases_;
  Lease* oldest_ = nullptr;
  Lease* newest_ = nullptr;
  // A sweep at this number of subjects keeps memory proportional to the subjects in use.
  size_t sweep_at_ = 1024;
  int64_t expired_ = 0;
};

}  // namespace tollgate::ratelimit
