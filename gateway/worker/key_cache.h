// The virtual keys that one loop knows: filled by look-ups at auth, corrected by auth's change
// stream. spec: reliability.md section 3, decisions.md 14.
//
//  - A known key is good for 30 s, an unknown one for 5 s. Keys in use are looked up again in the
//    background before that, so that nobody waits for it.
//  - Changes are pushed. While the stream has been silent for more than 3 s a key is looked up on
//    each use, and when auth can not be reached it is served for at most 30 s after auth was last
//    heard of.
//  - What can not be decided is an outage of ours (503), never the caller's fault.
//  - A peer that floods us with made-up keys does not reach auth's database with them: only so many
//    look-ups per address and second may find nothing (H49). Beyond that the address gets 503,
//    since nobody has looked and 401 would make a client drop a good key. Keys that are known are
//    not touched by it, nor are other addresses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/address_limiter.h"
#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/notify.h"
#include "gateway/worker/second_chance_map.h"

namespace tollgate::gateway {

using KeyPtr = std::shared_ptr<const auth::v1::Key>;

struct KeyCacheCounters {
  int64_t hits = 0;
  int64_t negative_hits = 0;
  int64_t lookups = 0;
  // Served although auth could not be asked.
  int64_t stale = 0;
  int64_t unavailable = 0;
  // Not looked up: too many keys from this address were unknown.
  int64_t throttled = 0;
};

class KeyCache : public std::enable_shared_from_this<KeyCache> {
 public:
  // Look-ups that find nothing, of one peer: 50/s (H49). A look-up under way counts as one until it
  // has found something, hence the burst.
  static constexpr AddressLimiter::Options kLookupsPerAddress{.interval_us = 20'000, .burst = 200};

  // lookups is shared by the caches of all loops.
  KeyCache(Loop& loop, const Clock& clock, AuthClient& auth,
           std::shared_ptr<AddressLimiter> lookups);

  // The key with this digest; null when auth knows none. An error means that nobody could say.
  // peer: the address that it came from.
  Task<Result<KeyPtr>> Look(std::string digest, std::string_view peer);

  // What auth pushed.
  void OnChanges(const auth::v1::WatchKeysResponse& message);

  // Whether auth has been heard of within the last 30 s.
  bool InContact() const;
  const KeyCacheCounters& counters() const { return counters_; }

 private:
  struct Known {
    KeyPtr key;
    int64_t verified_us = 0;
  };
  // One look-up at auth that any number of requests wait for.
  struct Flight {
    explicit Flight(Loop& loop) : done(loop) {}
    Event done;
    // The address whose turn it took; empty: none.
    std::string peer;
    Result<KeyPtr> result = KeyPtr();
  };
  struct Change {
    KeyPtr key;
    int64_t number = 0;
  };

  std::shared_ptr<Flight> StartFlight(const std::string& digest, std::string_view peer = {});
  static Task<void> Fly(std::shared_ptr<KeyCache> self, std::string digest,
                        std::shared_ptr<Flight> flight);
  void Land(const std::string& digest, int64_t changes_before, int64_t resets_before,
            Flight& flight, Result<auth::v1::VerifyKeyResponse> answer);
  KeyPtr Newest(KeyPtr answered, const std::string& digest, int64_t changes_before);
  Task<Result<KeyPtr>> LookUp(std::string digest, std::string_view peer);
  Task<Result<KeyPtr>> Revalidate(std::string digest, Known known);
  bool Streaming(int64_t now_us) const;

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const std::shared_ptr<AddressLimiter> lookups_;
  SecondChanceMap<Known> known_;
  // Public id → digest of what known_ holds: changes are addressed by id.
  std::unordered_map<std::string, std::string> digest_of_;
  // Digest → monotonic µs of the look-up that found nothing.
  SecondChanceMap<int64_t> unknown_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
  // The latest changes: a look-up that was under way when one came must not undo it.
  std::array<Change, 256> changes_;
  int64_t change_count_ = 0;
  int64_t reset_count_ = 0;
  // Monotonic µs; when the stream or a look-up last brought word from auth.
  int64_t stream_heard_us_;
  int64_t heard_us_;
  int64_t failed_us_;
  KeyCacheCounters counters_;
};

}  // namespace tollgate::gateway
