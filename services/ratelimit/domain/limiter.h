// State of the limits of a set of scopes, in memory. A claim takes from all its subjects or from
// none. Time is an argument (monotonic microseconds). Not thread-safe; storage/memory_store.h adds
// locks. See docs/design/limits.md, decision 16.
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

// A slot is what a request has at the limiter from Acquire to Release. It keeps what it took from
// each subject, and the limits on concurrency count it.
class Limiter {
 public:
  // full_at_us: when buckets of subjects without state are full. Before that they hold what has
  // refilled so far. For a process that does not know what was used before it started.
  explicit Limiter(int64_t slot_life_us, int64_t full_at_us = 0)
      : slot_life_us_(slot_life_us), first_full_ns_(full_at_us * 1000) {}
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // Takes from all limits of the claim or from none. A slot that exists is renewed and not charged
  // again.
  AcquireOutcome Acquire(const Claim& claim, int64_t now_us);
  // Frees the slot and replaces the estimated tokens by the actual ones, or refunds everything.
  // Returns false if the scope has no such slot.
  bool Release(std::string_view scope, const Id& slot, int64_t actual_tokens, bool refund,
               int64_t now_us);

  enum class Renewal : uint8_t { kUnknown, kRenewed, kRestored };
  // Extends the slot. An unknown slot is counted again, even above the limit, so that a
  // restart does not forget running requests.
  Renewal Renew(const Claim& claim, int64_t now_us);

  // Returns one reading per subject of the claim. Takes nothing.
  std::vector<Reading> Read(const Claim& claim, int64_t now_us);
  // Adopts the rates that another limiter has read and then charged.
  void Observe(const Claim& claim, const std::vector<Reading>& readings, bool charged,
               int64_t now_us);
  // Rates of a subject that this limiter remembers, for a store that may have lost them.
  struct Recollection {
    int64_t requests_ns = 0;
    int64_t tokens_ns = 0;
    // This limiter has granted requests since the last Observe.
    bool own = false;
  };
  std::vector<Recollection> Recall(const Claim& claim, int64_t now_us) const;
  // Use of a subject in the last hour.
  std::vector<MinuteUse> ReadUse(std::string_view scope, std::string_view subject,
                                 int64_t now_us) const;
  // Ends expired slots. Every ten seconds it also drops idle subjects, which have full buckets, no
  // slot and no use in the last hour.
  void Sweep(int64_t now_us);

  // Called for each subject whose rates have not recovered.
  using SaveFn = std::function<void(std::string_view scope, std::string_view subject,
                                    int64_t requests_ns, int64_t tokens_ns)>;
  void Save(int64_t now_us, const SaveFn& save) const;
  void Restore(std::string_view scope, std::string_view subject, int64_t requests_ns,
               int64_t tokens_ns, int64_t now_us);

  size_t slots() const { return slots_.size(); }
  size_t subjects() const { return subjects_.size(); }
  // Number of slots that expired without a release.
  int64_t expired() const { return expired_; }

 private:
  struct Subject {
    Bucket requests;
    Bucket tokens;
    int64_t running = 0;  // slots that the limit on concurrency counts
    int64_t slots = 0;    // all slots that point here
    UseHistory use;
    // For Recall: the use that Observe reported and that was granted here, without the empty bucket
    // that a process starts with.
    bool own = false;
    Bucket known_requests;
    Bucket known_tokens;
    // Estimated median of the hold time of slots: moves one step towards each sample. Determines
    // retry_after_ms when all slots are in use.
    int64_t median_hold_us = kDefaultHoldUs;
    int64_t median_at_us = -kForgetHoldUs;
    int64_t MedianHoldUs(int64_t now_us) const {
      return now_us - median_at_us < kForgetHoldUs ? median_hold_us : kDefaultHoldUs;
    }
  };
  // What a slot took from one subject.
  struct Share {
    Subject* subject = nullptr;
    Cost cost;
    int64_t tokens_per_minute = 0;
  };
  struct Slot {
    Id id;
    std::string scope;
    std::vector<Share> shares;
    // Tokens as admitted; -1: restored, so their use was counted elsewhere.
    int64_t tokens = -1;
    int64_t since_us = 0;
    int64_t expires_us = 0;
    // List in order of renewal. All lifetimes are equal, so this is also the order of expiry.
    Slot* older = nullptr;
    Slot* newer = nullptr;
  };
  // A slot id may be held in two scopes: a workspace's and a model's.
  struct SlotKey {
    Id id;
    std::string scope;
    friend bool operator==(const SlotKey&, const SlotKey&) = default;
  };
  struct SlotKeyHash {
    size_t operator()(const SlotKey& key) const {
      return IdHash()(key.id) ^ std::hash<std::string>()(key.scope);
    }
  };

  Subject& FindOrAdd(std::string_view scope, std::string_view name);
  const Subject* Find(std::string_view scope, std::string_view name) const;
  Reading ReadingOf(const Subject& subject, int64_t now_us) const;
  Slot& AddSlot(const Claim& claim, int64_t now_us);
  static void Take(Slot& slot, Subject& subject, const Cost& cost, int64_t tokens_per_minute,
                   int64_t now_us);
  static void GiveBackSlot(const Share& share);
  static void Settle(const Slot& slot, const Share& share, int64_t actual_tokens, bool refund,
                     int64_t now_us);
  // Corrects the use that was counted when the slot was admitted.
  static void CorrectUse(const Slot& slot, const Share& share, int64_t actual_tokens, bool refund,
                         int64_t now_us);
  void Append(Slot& slot);
  void Unlink(Slot& slot);
  void EndExpired(int64_t now_us);
  void DropIdle(int64_t now_us);

  const int64_t slot_life_us_;
  const int64_t first_full_ns_;
  // Keyed by scope, separator and subject name.
  std::unordered_map<std::string, Subject> subjects_;
  std::unordered_map<SlotKey, Slot, SlotKeyHash> slots_;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
  // Idle subjects are dropped at this number, so that memory stays proportional to the subjects in
  // use.
  size_t drop_at_ = 1024;
  int64_t drop_after_us_ = 0;
  int64_t expired_ = 0;
};

}  // namespace tollgate::ratelimit
