#include "services/auth/storage/key_memory.h"

#include <algorithm>

namespace tollgate::auth {

void KeyMemory::Remember(const std::string& lookup, const v1::Key& key, int64_t read_version) {
  const std::lock_guard lock(mutex_);
  if (read_version < version_) return;
  if (keys_.size() >= most_ && !keys_.contains(lookup)) {
    // Evicts any key: a key in use comes back with its next lookup.
    lookup_of_.erase(keys_.begin()->second.key_id());
    keys_.erase(keys_.begin());
  }
  lookup_of_[key.key_id()] = lookup;
  keys_[lookup] = key;
}

void KeyMemory::Forget(const std::string& lookup) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(lookup);
  if (found == keys_.end()) return;
  lookup_of_.erase(found->second.key_id());
  keys_.erase(found);
}

void KeyMemory::Apply(const v1::Key& key) {
  const std::lock_guard lock(mutex_);
  version_ = std::max(version_, key.version());
  const auto lookup = lookup_of_.find(key.key_id());
  if (lookup == lookup_of_.end()) return;
  v1::Key& kept = keys_[lookup->second];
  if (kept.version() < key.version()) kept = key;
}

void KeyMemory::AdvanceTo(int64_t version) {
  const std::lock_guard lock(mutex_);
  version_ = std::max(version_, version);
}

void KeyMemory::Clear() {
  const std::lock_guard lock(mutex_);
  keys_.clear();
  lookup_of_.clear();
  version_ = 0;
}

std::optional<KeyMemory::Vouched> KeyMemory::Find(const std::string& lookup) const {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(lookup);
  if (found == keys_.end()) return std::nullopt;
  return Vouched{found->second, version_};
}

}  // namespace tollgate::auth
