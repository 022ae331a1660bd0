// The virtual keys that one loop has looked up: filled by lookups at auth, corrected by auth's
// change stream. See docs/design/keys.md, decision 14.
//
//  - A known key is valid for 30 s, an unknown one for 5 s. Keys in use are refreshed in the
//    background before that, so that requests do not wait.
//  - Auth pushes changes. While the stream has been silent for more than 3 s, a key is revalidated
//    on each use; when auth is unreachable, it is served for up to 30 s after auth's last message.
//
//  - A key that one loop finds is known to the others at once, so that they can serve it, too, when
//    auth becomes unreachable.
//  - A response carries the version of the database at which it was read, a message of the stream
//    the version up to which all changes have been sent. So a key that was read before the stream
//    began is revalidated on its next use, and a response that a change has overtaken is read
//    again.
//  - When the state of a key cannot be determined, the answer is a 503, never a 401.
//  - A flood of made-up keys does not reach auth's database (H49). A key that is missing from the
//    filter of live keys is refused without a lookup, once auth has no newer change than the stream
//    (ADR 0013). Lookups that find nothing are limited per client address and in total. Beyond
//    the limits the client gets 503: the key was not looked up, and a 401 would make it drop a
//    valid key.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/address_limiter.h"
#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/notify.h"
#include "gateway/worker/live_filter.h"
#include "gateway/worker/lookup_budget.h"
#include "gateway/worker/second_chance_map.h"
#include "gateway/worker/version_reader.h"

namespace tollgate::gateway {

using KeyPtr = std::shared_ptr<const auth::v1::Key>;

struct KeyCacheCounters {
  int64_t hits = 0;
  int64_t negative_hits = 0;
  int64_t lookups = 0;
  // Served without revalidation because auth did not respond.
  int64_t stale = 0;
  int64_t unavailable = 0;
  // Not looked up, because this address or all addresses together sent too many unknown keys.
  int64_t throttled = 0;
  // Not looked up, because the filter of live keys does not contain it.
  int64_t filtered = 0;
  // Reads of auth's version before a key that is missing from the filter is refused.
  int64_t version_reads = 0;
};

class KeyCache : public std::enable_shared_from_this<KeyCache> {
 public:
  // Limit on lookups that find nothing, per address: 50/s (H49). A lookup in flight counts until it
  // has found a key, hence the burst.
  static constexpr AddressLimiter::Options kUnknownKeysPerAddress{.interval_us = 20'000,
                                                                  .burst = 200};

  // unknown_key_limiter is shared by the caches of all loops. loops: their number.
  KeyCache(Loop& loop, const Clock& clock, AuthClient& auth,
           std::shared_ptr<AddressLimiter> unknown_key_limiter, int loops);

  // Returns the key with this digest, or null if auth has none. Fails with 503 when that cannot be
  // determined. peer: the client's address. key_id: the public id in the key, empty for a legacy
  // key. traceparent: passed to the lookup that this call starts; empty when the request is not
  // traced.
  Task<Result<KeyPtr>> Get(std::string digest, std::string_view peer, std::string_view key_id = {},
                           std::string traceparent = {});

  // Call before any request. The caches of the other loops, which get every key that this one
  // finds.
  struct Peer {
    Loop* loop = nullptr;
    std::weak_ptr<KeyCache> cache;
  };
  void ShareWith(std::vector<Peer> peers) { peers_ = std::move(peers); }

  // Returns what the cache knows without asking auth; nullopt when only Get can tell. A found key
  // does not count as a hit, because the request still has to call Get.
  std::optional<KeyPtr> Peek(const std::string& digest);

  // Applies a message of auth's change stream.
  void OnChanges(const auth::v1::WatchKeysResponse& message);
  // Sets the filter, which contains every key up to the next message that OnChanges gets. Null:
  // none.
  void SetFilter(LiveFilterPtr filter) { filter_ = std::move(filter); }

  // Makes no more calls to auth, whose client is about to be destroyed. Lookups in flight may still
  // finish.
  void Stop();

  // Whether auth has sent anything within the last 30 s.
  bool HasRecentContact() const;
  KeyCacheCounters counters() const;

 private:
  // Below every version of a database.
  static constexpr int64_t kNoVersion = -1;

  struct CachedKey {
    KeyPtr key;
    int64_t verified_us = 0;  // monotonic
    // The version of the database when the key was read. Later changes have been applied if the
    // stream has been complete since that version.
    int64_t read_version = kNoVersion;
  };
  struct UnknownKey {
    int64_t looked_up_us = 0;  // monotonic
    int64_t read_version = kNoVersion;
  };
  // A key that another loop has found.
  struct FoundKey {
    std::string digest;
    CachedKey cached;
    int64_t resets = 0;
  };
  // A lookup in flight, shared by all requests for the key (singleflight).
  struct Lookup {
    explicit Lookup(Loop& loop) : done(loop) {}
    Event done;
    // The address that is charged if nothing is found. Known keys are not charged.
    std::optional<std::string> peer;
    std::string traceparent;  // from the request that started the lookup
    int attempts = 0;
    // The stream's version when the current attempt began.
    int64_t stream_version = kNoVersion;
    int64_t resets = 0;
    Result<KeyPtr> result = KeyPtr();
  };

  // Joins the lookup of this key that is in flight, or starts one.
  std::shared_ptr<Lookup> Start(const std::string& digest,
                                std::optional<std::string> peer = std::nullopt,
                                std::string traceparent = {});
  static Task<void> Run(std::shared_ptr<KeyCache> self, std::string digest,
                        std::shared_ptr<Lookup> lookup);
  // Ends a lookup without making the call.
  void Drop(const std::string& digest, Lookup& lookup, Error error);
  // Returns false if the response may lack changes that the stream has sent: read it again.
  bool Finish(const std::string& digest, Lookup& lookup,
              const Result<auth::v1::VerifyKeyResponse>& answer);
  void Store(const std::string& digest, Lookup& lookup, const auth::v1::VerifyKeyResponse& answer,
             int64_t read_version);
  void Share(const std::string& digest, const CachedKey& cached) const;
  void Adopt(const FoundKey& found);
  // Whether changes after this version may be missing: the ring no longer has them.
  bool IsOvertaken(int64_t read_version) const {
    return stream_version_ != kNoVersion &&
           read_version < std::max(complete_from_, lost_change_version_);
  }
  // The newest version of the key in the response, the latest changes and the cache.
  KeyPtr NewestVersion(KeyPtr answered, const std::string& digest);
  // Whether the stream has sent every change after this version.
  bool IsCovered(int64_t read_version) const {
    return stream_version_ != kNoVersion && read_version >= complete_from_;
  }
  bool IsStillUnknown(const UnknownKey& unknown, int64_t now_us) const;
  // Returns true if the filter does not contain the key although it contains every key that existed
  // when this was called.
  Task<bool> IsMadeUp(std::string_view digest, std::string_view key_id);
  // For a key that is not cached.
  Task<Result<KeyPtr>> Fetch(std::string digest, std::string_view peer, std::string traceparent);
  // For a cached key that is too old, or whose changes may have been missed.
  Task<Result<KeyPtr>> Revalidate(std::string digest, CachedKey cached);
  bool StreamIsLive(int64_t now_us) const;

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const std::shared_ptr<AddressLimiter> unknown_key_limiter_;
  const std::shared_ptr<LookupBudget> lookup_budget_;
  const std::shared_ptr<VersionReader> version_reader_;
  LiveFilterPtr filter_;
  // Notified when the stream reaches a higher version.
  Notify stream_advanced_;
  std::vector<Peer> peers_;
  SecondChanceMap<CachedKey> known_;
  // Key id → digest of the entry in known_, because changes carry only the id.
  std::unordered_map<std::string, std::string> digest_of_;
  SecondChanceMap<UnknownKey> unknown_;
  std::unordered_map<std::string, std::shared_ptr<Lookup>> in_flight_;
  // Ring of the latest changes: a response that was on its way when a change arrived must not undo
  // that change.
  std::array<KeyPtr, 256> changes_;
  size_t next_change_ = 0;
  // Version of the newest change that the ring has dropped, and version of the newest change of
  // all.
  int64_t lost_change_version_ = kNoVersion;
  int64_t last_change_version_ = kNoVersion;
  // Every change after complete_from_ and up to stream_version_ has been received.
  int64_t complete_from_ = kNoVersion;
  int64_t stream_version_ = kNoVersion;
  int64_t reset_count_ = 0;
  // Whether the stream's replica vouches without its database, and whether another replica has
  // answered since. After that, vouched answers no longer count (decision 58).
  bool stream_vouches_ = false;
  bool others_answer_ = false;
  // Monotonic times of the last message of the stream, the last message or response, and the last
  // failed lookup.
  int64_t last_stream_message_us_;
  int64_t last_contact_us_;
  int64_t last_failure_us_;
  bool stopped_ = false;
  KeyCacheCounters counters_;
};

}  // namespace tollgate::gateway
