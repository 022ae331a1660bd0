// Auth's filter of live keys (ADR 0013), as the gateway keeps it: assembled from the pieces in the
// change stream, and kept by the changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/keys/key_filter.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::gateway {

// Thread-safe: loop 0 adds keys while all loops look.
class LiveFilter {
 public:
  LiveFilter(std::shared_ptr<KeyFilter> keys, std::string tag_key)
      : keys_(std::move(keys)), tag_key_(std::move(tag_key)) {}

  // False: there was no such key, up to the last message of the stream. key_id: empty for a legacy
  // key.
  bool MayContain(std::string_view digest, std::string_view key_id) const;
  void Add(const auth::v1::KeyChange& change);
  void SetHasUntagged() { has_untagged_.store(true, std::memory_order_relaxed); }
  KeyFilter& keys() { return *keys_; }
  const KeyFilter& keys() const { return *keys_; }

 private:
  const std::shared_ptr<KeyFilter> keys_;
  const std::string tag_key_;
  // Some keys are in it by their public id.
  std::atomic<bool> has_untagged_{false};
};
using LiveFilterPtr = std::shared_ptr<const LiveFilter>;

// Used by one thread.
class LiveFilterReceiver {
 public:
  // Applies a message of the stream. True: current() is another one now.
  bool Apply(const auth::v1::WatchKeysResponse& message);
  // Null until a filter is complete, and after a reset.
  LiveFilterPtr current() const { return current_; }

 private:
  // True: the piece completed a filter.
  bool AddPiece(const auth::v1::KeyFilterPiece& piece);

  std::shared_ptr<LiveFilter> current_;
  // The one whose pieces are arriving, and the bytes that have arrived.
  std::shared_ptr<LiveFilter> next_;
  uint64_t received_ = 0;
};

}  // namespace tollgate::gateway
