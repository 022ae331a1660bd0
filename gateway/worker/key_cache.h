// The virtual keys that one loop has looked up: filled by lookups at auth, corrected by auth's
// change stream. See docs/design/keys.md, decision 14.
//
//  - A known key is valid for 30 s, an unknown one for 5 s. Keys in use are refreshed in the
//    background before that, so that requests do not wait.
//  - Auth pushes changes. While the stream has been silent for more than 3 s, a key is revalidated
//    on each use; when auth is unreachable, it is served for up to 30 s after auth's last message.
//  - What cannot be decided is a 503, never a 401.
//  - Lookups that find nothing are limited per client address, so that a flood of invented keys
//    does not reach auth's database (H49). Beyond the limit the address gets 503: the key was not
//    looked up, and a 401 would make a client drop a valid key. Cached keys and other addresses are
//    not affected.
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
  // Served without revalidation because auth did not respond.
  int64_t stale = 0;
  int64_t unavailable = 0;
  // Not looked up: the address has sent too many unknown keys.
  int64_t throttled = 0;
};

class KeyCache : public std::enable_shared_from_this<KeyCache> {
 public:
  // Lookups that find nothing, per address: 50/s (H49). A lookup in flight counts as one until it
  // has found a key, hence the burst.
  static constexpr AddressLimiter::Options kUnknownKeysPerAddress{.interval_us = 20'000,
                                                                  .burst = 200};

  // unknown_key_limiter is shared by the caches of all loops.
  KeyCache(Loop& loop, const Clock& clock, AuthClient& auth,
           std::shared_ptr<AddressLimiter> unknown_key_limiter);

  // The key with this digest, null if auth has none. Fails with 503 when that cannot be determined.
  // peer: the client's address.
  Task<Result<KeyPtr>> Get(std::string digest, std::string_view peer);

  // Applies a message of auth's change stream.
  void OnChanges(const auth::v1::WatchKeysResponse& message);

  // Whether auth has sent anything within the last 30 s.
  bool HasRecentContact() const;
  const KeyCacheCounters& counters() const { return counters_; }

 private:
  struct CachedKey {
    KeyPtr key;
    int64_t verified_us = 0;  // monotonic
  };
  // A lookup in flight, shared by all requests for the key (singleflight).
  struct Lookup {
    explicit Lookup(Loop& loop) : done(loop) {}
    Event done;
    // The address that was charged for it; empty: none.
    std::string peer;
    Result<KeyPtr> result = KeyPtr();
  };
  struct Change {
    KeyPtr key;
    int64_t number = 0;
  };

  // Joins the lookup of this key that is in flight, or starts one.
  std::shared_ptr<Lookup> Start(const std::string& digest, std::string_view peer = {});
  static Task<void> Run(std::shared_ptr<KeyCache> self, std::string digest,
                        std::shared_ptr<Lookup> lookup);
  void Finish(const std::string& digest, int64_t changes_before, int64_t resets_before,
              Lookup& lookup, Result<auth::v1::VerifyKeyResponse> answer);
  // The newest version of the key among the response, the changes since and the cache.
  KeyPtr NewestVersion(KeyPtr answered, const std::string& digest, int64_t changes_before);
  // For a key that is not cached.
  Task<Result<KeyPtr>> Fetch(std::string digest, std::string_view peer);
  // For a cached key that is too old, or whose changes may have been missed.
  Task<Result<KeyPtr>> Revalidate(std::string digest, CachedKey cached);
  bool StreamIsLive(int64_t now_us) const;

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const std::shared_ptr<AddressLimiter> unknown_key_limiter_;
  SecondChanceMap<CachedKey> known_;
  // Key id → digest of the entry in known_: changes carry the id only.
  std::unordered_map<std::string, std::string> digest_of_;
  // Digest → when the lookup found nothing; monotonic µs.
  SecondChanceMap<int64_t> unknown_;
  std::unordered_map<std::string, std::shared_ptr<Lookup>> in_flight_;
  // The latest changes, as a ring: a response that was on its way when a change arrived must not
  // undo it.
  std::array<Change, 256> changes_;
  int64_t change_count_ = 0;
  int64_t reset_count_ = 0;
  // Monotonic: the last message of the stream, the last message or response, the last failed
  // lookup.
  int64_t last_stream_message_us_;
  int64_t last_contact_us_;
  int64_t last_failure_us_;
  KeyCacheCounters counters_;
};

}  // namespace tollgate::gateway
