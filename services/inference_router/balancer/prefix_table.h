// Which engines of a pool have been given which beginnings of prompts (prefix_chain.h), and so may
// still have them in their caches, and which engine had a session last. Of fixed size: the entry of
// a set that was used longest ago makes room. Shared by all loops without a lock: each entry is one
// atomic word, and a race between two loops costs at most an entry, which is only a hint.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tollgate::inference_router {

class PrefixTable {
 public:
  // Unused entries are no longer believed after this time.
  static constexpr int64_t kExpiryUs = 30LL * 60 * 1'000'000;
  static constexpr size_t kWays = 8;

  // Memory: 128 KiB for each engine, between 256 KiB and 8 MiB, rounded up to a power of two.
  explicit PrefixTable(size_t engines);

  // Calls found(number) for each engine (EngineState::number) that was given this beginning.
  template <typename Found>
  void Find(uint64_t hash, int64_t now_us, const Found& found) const {
    const uint16_t now = TimeOf(now_us);
    for (const auto& word : SetOf(hash).words) {
      const uint64_t entry = word.load(std::memory_order_relaxed);
      if (TagOf(entry) != TagOf(hash) || entry == 0 || Age(entry, now) > kExpiry) continue;
      found(EngineOf(entry));
    }
  }
  // The engine was given this beginning now.
  void Add(uint64_t hash, uint16_t engine, int64_t now_us) { Write(hash, engine, now_us, false); }
  // As Add, and no other engine is found for this hash any more.
  void Move(uint64_t hash, uint16_t engine, int64_t now_us) { Write(hash, engine, now_us, true); }
  size_t bytes() const { return sets_.size() * sizeof(Set); }

 private:
  // An entry: 32 bits of the hash, the engine, the time. 0: free; engines have no number 0.
  struct alignas(64) Set {
    std::array<std::atomic<uint64_t>, kWays> words{};
  };
  static constexpr int64_t kTickUs = 4'000'000;
  static constexpr uint16_t kExpiry = kExpiryUs / kTickUs;

  static uint16_t TimeOf(int64_t now_us) { return static_cast<uint16_t>(now_us / kTickUs); }
  static uint32_t TagOf(uint64_t entry) { return static_cast<uint32_t>(entry >> 32); }
  static uint16_t EngineOf(uint64_t entry) { return static_cast<uint16_t>(entry >> 16); }
  // In ticks. Goes round after 73 hours, when an entry seems to be new again.
  static uint16_t Age(uint64_t entry, uint16_t now) {
    return static_cast<uint16_t>(now - static_cast<uint16_t>(entry));
  }
  void Write(uint64_t hash, uint16_t engine, int64_t now_us, bool moves);
  const Set& SetOf(uint64_t hash) const { return sets_[hash & (sets_.size() - 1)]; }

  std::vector<Set> sets_;
};

}  // namespace tollgate::inference_router
