// The gateway's copy of auth's filter of live keys (ADR 0013): assembled from the pieces in the
// change stream and updated by the changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/keys/key_filter.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::gateway {

// Thread-safe: loop 0 adds keys while all loops read.
class LiveFilter {
 public:
  LiveFilter(std::shared_ptr<KeyFilter> keys, std::string tag_key)
      : keys_(std::move(keys)), tag_key_(std::move(tag_key)) {}

  // Returns false if no such key existed at the last message of the stream. key_id: empty for a
  // legacy key.
  bool MayContain(std::string_view digest, std::string_view key_id) const;
  void Add(const auth::v1::KeyChange& change);
  void SetHasUntagged() { has_untagged_.store(true, std::memory_order_relaxed); }
  KeyFilter& keys() { return *keys_; }
  const KeyFilter& keys() const { return *keys_; }

 private:
  const std::shared_ptr<KeyFilter> keys_;
  const std::string tag_key_;
  // Some keys are in the filter by their public id.
  std::atomic<bool> has_untagged_{false};
};
using LiveFilterPtr = std::shared_ptr<const LiveFilter>;

// Used by one thread only.
class LiveFilterReceiver {
 public:
  // Applies a message of the stream. Returns true if current() has changed.
  bool Apply(const auth::v1::WatchKeysResponse& message);
  // Null until a filter is complete, and after a reset.
  LiveFilterPtr current() const { return current_; }

 private:
  // Returns true if the piece completed a filter.
  bool AddPiece(const auth::v1::KeyFilterPiece& piece);

  std::shared_ptr<LiveFilter> current_;
  // The filter whose pieces are arriving, and the number of bytes received.
  std::shared_ptr<LiveFilter> next_;
  uint64_t received_ = 0;
};

}  // namespace tollgate::gateway
