// A bounded map with second-chance (CLOCK) eviction, an approximation of LRU. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tollgate::gateway {

template <typename V>
class SecondChanceMap {
 public:
  using OnEvict = std::function<void(const V&)>;

  // on_evict is called for evicted values, not for erased or cleared ones.
  explicit SecondChanceMap(size_t capacity, OnEvict on_evict = {})
      : capacity_(capacity), on_evict_(std::move(on_evict)) {}

  V* Find(std::string_view key) {
    const auto found = map_.find(key);
    if (found == map_.end()) return nullptr;
    found->second.used = true;
    return &found->second.value;
  }

  // Adds or replaces a value. The reference is valid until the next Insert.
  V& Insert(const std::string& key, V value) {
    if (V* found = Find(key)) return *found = std::move(value);
    if (map_.size() >= capacity_) EvictOne();
    order_.push_back(key);
    Slot& slot = map_[key];
    slot.value = std::move(value);
    return slot.value;
  }

  // The key stays in the eviction order; EvictOne skips it later.
  void Erase(std::string_view key) {
    if (const auto found = map_.find(key); found != map_.end()) map_.erase(found);
    if (order_.size() > 2 * capacity_ + 16) Compact();
  }

  void Clear() {
    map_.clear();
    order_.clear();
  }
  size_t size() const { return map_.size(); }

 private:
  struct Slot {
    V value{};
    bool used = false;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  // Terminates because the second visit of a key finds its flag cleared.
  void EvictOne() {
    while (!order_.empty()) {
      std::string oldest = std::move(order_.front());
      order_.pop_front();
      const auto found = map_.find(oldest);
      if (found == map_.end()) continue;
      if (!found->second.used) {
        if (on_evict_) on_evict_(found->second.value);
        map_.erase(found);
        return;
      }
      found->second.used = false;
      order_.push_back(std::move(oldest));
    }
  }

  void Compact() {
    order_.clear();
    for (const auto& [key, slot] : map_) order_.push_back(key);
  }

  const size_t capacity_;
  const OnEvict on_evict_;
  std::unordered_map<std::string, Slot, Hash, std::equal_to<>> map_;
  std::deque<std::string> order_;
};

}  // namespace tollgate::gateway
