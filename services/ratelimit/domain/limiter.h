// The state of the limits of a set of scopes in memory. A claim takes from all its subjects or from
// none. Time is an argument (monotonic microseconds). Not thread-safe: storage/memory_store.h adds
// the locks. See docs/design/limits.md, decision 16.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "services/ratelimit/domain/decision.h"
#include "services/ratelimit/domain/use.h"

namespace tollgate::ratelimit {

class Limiter {
 public:
  // full_at_us: buckets of subjects without state are full from this time on, and before it what
  // the time since has refilled; for a process that does not know what was used before it started.
  explicit Limiter(int64_t lease_us, int64_t full_at_us = 0)
      : lease_us_(lease_us), first_full_ns_(full_at_us * 1000) {}
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // Takes from all limits of the claim or from none. A lease that is held is renewed and not
  // charged again.
  AcquireOutcome Acquire(const Claim& claim, int64_t now_us);
  // Gives the slots back and replaces the estimated tokens by the actual ones, or refunds all.
  // False: there is no such lease in this scope.
  bool Release(std::string_view scope, const Id& lease, int64_t actual_tokens, bool refund,
               int64_t now_us);

  enum class Renewal : uint8_t { kUnknown, kRenewed, kRestored };
  // Extends the lease. One that is unknown takes its slots again, above the limit if it must, so
  // that a restart does not forget running requests.
  Renewal Renew(const Claim& claim, int64_t now_us);

  // One reading per subject of the claim. Takes nothing.
  std::vector<Reading> Read(const Claim& claim, int64_t now_us);
  // Takes over what another limiter has read and then charged: rates only.
  void Observe(const Claim& claim, const std::vector<Reading>& readings, bool charged,
               int64_t now_us);
  // What this limiter remembers of a subject, for a store that may have lost it.
  struct Recollection {
    int64_t requests_ns = 0;
    int64_t tokens_ns = 0;
    // Requests were granted here since the last Observe.
    bool own = false;
  };
  std::vector<Recollection> Recall(const Claim& claim, int64_t now_us) const;
  // What was used of a subject in the last hour.
  std::vector<MinuteUse> ReadUse(std::string_view scope, std::string_view subject,
                                 int64_t now_us) const;
  // Ends expired leases and, every ten seconds, drops idle subjects: those with full buckets, no
  // slot and no use in the last hour.
  void Sweep(int64_t now_us);

  // Calls back for each subject whose rates have not recovered.
  using SaveFn = std::function<void(std::string_view scope, std::string_view subject,
                                    int64_t requests_ns, int64_t tokens_ns)>;
  void Save(int64_t now_us, const SaveFn& save) const;
  void Restore(std::string_view scope, std::string_view subject, int64_t requests_ns,
               int64_t tokens_ns, int64_t now_us);

  size_t leases() const { return leases_.size(); }
  size_t subjects() const { return subjects_.size(); }
  // The number of leases that expired without a release.
  int64_t expired() const { return expired_; }

 private:
  struct Subject {
    Bucket requests;
    Bucket tokens;
    int64_t running = 0;  // slots
    int64_t leases = 0;   // that point here
    UseHistory use;
    // For Recall. What is known to be used: what Observe reported and what was granted here, but
    // not the empty bucket that a process starts with.
    bool own = false;
    Bucket known_requests;
    Bucket known_tokens;
    // Estimated median of how long slots are held: moves one step towards each sample. Gives
    // retry_after_ms when all slots are in use.
    int64_t median_hold_us = kDefaultHoldUs;
    int64_t median_at_us = -kForgetHoldUs;
    int64_t MedianHoldUs(int64_t now_us) const {
      return now_us - median_at_us < kForgetHoldUs ? median_hold_us : kDefaultHoldUs;
    }
  };
  // What a lease took from one subject.
  struct Share {
    Subject* subject = nullptr;
    Cost cost;
    int64_t tokens_per_minute = 0;
  };
  struct Lease {
    Id id;
    std::string scope;
    std::vector<Share> shares;
    // As it was admitted; -1: restored, so that others have counted its use.
    int64_t tokens = -1;
    int64_t since_us = 0;
    int64_t expires_us = 0;
    // A list in the order of renewal, which is the order of expiry: all lifetimes are equal.
    Lease* older = nullptr;
    Lease* newer = nullptr;
  };
  // A lease id may be held in two scopes: a workspace's and a model's.
  struct LeaseKey {
    Id id;
    std::string scope;
    friend bool operator==(const LeaseKey&, const LeaseKey&) = default;
  };
  struct LeaseKeyHash {
    size_t operator()(const LeaseKey& key) const {
      return IdHash()(key.id) ^ std::hash<std::string>()(key.scope);
    }
  };

  Subject& FindOrAdd(std::string_view scope, std::string_view name);
  const Subject* Find(std::string_view scope, std::string_view name) const;
  Reading ReadingOf(const Subject& subject, int64_t now_us) const;
  Lease& AddLease(const Claim& claim, int64_t now_us);
  static void Take(Lease& lease, Subject& subject, const Cost& cost, int64_t tokens_per_minute,
                   int64_t now_us);
  static void GiveBackSlot(const Share& share);
  static void Settle(const Lease& lease, const Share& share, int64_t actual_tokens, bool refund,
                     int64_t now_us);
  // Corrects what was counted of the lease when it was admitted.
  static void CorrectUse(const Lease& lease, const Share& share, int64_t actual_tokens, bool refund,
                         int64_t now_us);
  void Append(Lease& lease);
  void Unlink(Lease& lease);
  void EndExpired(int64_t now_us);
  void DropIdle(int64_t now_us);

  const int64_t lease_us_;
  const int64_t first_full_ns_;
  // By scope, a separator and the subject's name.
  std::unordered_map<std::string, Subject> subjects_;
  std::unordered_map<LeaseKey, Lease, LeaseKeyHash> leases_;
  Lease* oldest_ = nullptr;
  Lease* newest_ = nullptr;
  // Dropping idle ones at this number of subjects keeps memory proportional to those in use.
  size_t drop_at_ = 1024;
  int64_t drop_after_us_ = 0;
  int64_t expired_ = 0;
};

}  // namespace tollgate::ratelimit
