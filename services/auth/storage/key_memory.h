// Keys that this replica has answered for, kept current by the change feed. While the database is
// unreachable, the replica vouches for them (decision 58). Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

class KeyMemory {
 public:
  explicit KeyMemory(size_t most = 100'000) : most_(most) {}

  // Adds a key that was read at this version. Ignored if the feed is ahead of it, because a later
  // change may be missing in the key.
  void Remember(const std::string& lookup, const v1::Key& key, int64_t read_version);
  void Forget(const std::string& lookup);
  // Applies a change that the feed has read. Every change must pass through here, in order.
  void Apply(const v1::Key& key);
  // The feed has read all changes up to this version.
  void AdvanceTo(int64_t version);
  // Empties the memory after the database was restored: it may hold newer keys.
  void Clear();

  struct Vouched {
    v1::Key key;
    // The key includes every change up to this version.
    int64_t version = 0;
  };
  std::optional<Vouched> Find(const std::string& lookup) const;

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, v1::Key> keys_;           // by lookup
  std::unordered_map<std::string, std::string> lookup_of_;  // by key id
  int64_t version_ = 0;
};

}  // namespace tollgate::auth
