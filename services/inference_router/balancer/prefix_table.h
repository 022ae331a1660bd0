// Remembers which engines of a pool were given which prefixes of prompts (prefix_chain.h), so that
// they may still have them cached, and which engine served a session last. Has a fixed size: the
// least recently used entry of a set is replaced. Shared by all loops without a lock: each entry is
// one atomic word, and a race between two loops costs at most one entry, which is only a hint.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tollgate::inference_router {

class PrefixTable {
 public:
  // Unused entries are ignored after this time.
  static constexpr int64_t kExpiryUs = 30LL * 60 * 1'000'000;
  static constexpr size_t kWays = 8;

  // Memory: 128 KiB per engine, at least 256 KiB and at most 8 MiB, rounded up to a power of two.
  explicit PrefixTable(size_t engines);

  // Calls found(number) for each engine (EngineState::number) that was given this prefix.
  template <typename Found>
  void Find(uint64_t hash, int64_t now_us, const Found& found) const {
    const uint16_t now = TimeOf(now_us);
    for (const auto& word : SetOf(hash).words) {
      const uint64_t entry = word.load(std::memory_order_relaxed);
      if (TagOf(entry) != TagOf(hash) || entry == 0 || Age(entry, now) > kExpiry) continue;
      found(EngineOf(entry));
    }
  }
  // Records that the engine was given this prefix now.
  void Add(uint64_t hash, uint16_t engine, int64_t now_us) { Write(hash, engine, now_us, false); }
  // Like Add, but removes all other engines for this hash.
  void Move(uint64_t hash, uint16_t engine, int64_t now_us) { Write(hash, engine, now_us, true); }
  size_t bytes() const { return sets_.size() * sizeof(Set); }

 private:
  // An entry: 32 bits of the hash, the engine, the time. 0: free, because engines have no number 0.
  struct alignas(64) Set {
    std::array<std::atomic<uint64_t>, kWays> words{};
  };
  static constexpr int64_t kTickUs = 4'000'000;
  static constexpr uint16_t kExpiry = kExpiryUs / kTickUs;

  static uint16_t TimeOf(int64_t now_us) { return static_cast<uint16_t>(now_us / kTickUs); }
  static uint32_t TagOf(uint64_t entry) { return static_cast<uint32_t>(entry >> 32); }
  static uint16_t EngineOf(uint64_t entry) { return static_cast<uint16_t>(entry >> 16); }
  // Age in ticks. Wraps around after 73 hours, when an entry appears new again.
  static uint16_t Age(uint64_t entry, uint16_t now) {
    return static_cast<uint16_t>(now - static_cast<uint16_t>(entry));
  }
  void Write(uint64_t hash, uint16_t engine, int64_t now_us, bool moves);
  const Set& SetOf(uint64_t hash) const { return sets_[hash & (sets_.size() - 1)]; }

  std::vector<Set> sets_;
};

}  // namespace tollgate::inference_router
