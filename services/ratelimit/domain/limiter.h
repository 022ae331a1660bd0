// All limits of a set of workspaces: request rate, token rate and concurrency of each key and of
// its workspace, taken in one step or not at all. Time is an argument (monotonic microseconds); not
// thread-safe: limiter_store.h puts a lock in front. spec: reliability.md section 2,
// decisions.md 16.
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

// In the order of decisions.md 16: when several refuse, the first is named.
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
  // Of key and workspace the one with less left.
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

  // Takes from every limit or from none. A lease that is already held is granted again at no cost,
  // so that a caller may repeat the call.
  AcquireOutcome Acquire(const AcquireArgs& args, int64_t now_us);
  // Ends a lease: with refund everything that it took is given back, else its token estimate is
  // replaced by the actual count. False: this workspace has no such lease (ended, expired or never
  // granted).
  bool Release(std::string_view workspace_id, const Id& lease, int64_t actual_tokens, bool refund,
               int64_t now_us);
  // Gives a lease its whole life again. False: there is no such lease.
  bool Renew(const Id& lease, int64_t now_us);
  PeekOutcome Peek(std::string_view workspace_id, std::string_view key_id, const Limits& key_limits,
                   const Limits& workspace_limits, int64_t now_us);
  // Ends expired leases and forgets subjects about which there is nothing to remember.
  void Sweep(int64_t now_us);

  size_t leases() const { return leases_.size(); }
  size_t subjects() const { return keys_.size() + workspaces_.size(); }
  // Leases that ended because nobody renewed them.
  int64_t expired() const { return expired_; }

 private:
  struct Subject {
    Bucket requests;
    Bucket tokens;
    int64_t running = 0;
    // Median of how long leases are held, roughly (a frugal estimate: one step towards each
    // sample).
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
    // Every lease lives equally long, so the order of renewal is the order of expiry.
    Lease* older = nullptr;
    Lease* newer = nullptr;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Subjects = std::unordered_map<std::string, Subject, NameHash, std::equal_to<>>;

  static Subject& Touch(Subjects& subjects, std::string_view name);
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
  // Sweeping when this many subjects are known keeps memory in proportion to those in use.
  size_t sweep_at_ = 1024;
  int64_t expired_ = 0;
};

}  // namespace tollgate::ratelimit
