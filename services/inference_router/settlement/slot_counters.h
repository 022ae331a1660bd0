// Counters of one request in the journal that detect damage. Two copies are written in turn, each
// with its version and a checksum seeded with the request's id. A copy that is torn, has a flipped
// bit or belongs to an earlier request of the slot is rejected, and the other copy is at most one
// update old. A plain CRC would cost more than the stores.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

namespace tollgate::inference_router {

// One step of the checksum: a bijection of `word` and of `sum`, so that a change of one word always
// changes the result.
inline uint64_t MixWord(uint64_t sum, uint64_t word) {
  return (std::rotl(sum, 29) ^ word) * 0x9e3779b97f4a7c15;
}

template <size_t N>
class SlotCounters {
 public:
  using Values = std::array<int64_t, N>;
  struct Found {
    Values values{};
    uint64_t version = 0;
    // The other copy was unusable, so these may be the values before the last update.
    bool older = false;
  };

  // version: number of this write, from 1. Call on one thread only.
  void Write(uint64_t seed, uint64_t version, const Values& values) {
    Copy& copy = copies_[version & 1];
    uint64_t check = MixWord(seed, version);
    copy.version.store(version, std::memory_order_relaxed);
    for (size_t i = 0; i < N; ++i) {
      copy.values[i].store(values[i], std::memory_order_relaxed);
      check = MixWord(check, static_cast<uint64_t>(values[i]));
    }
    copy.check.store(check, std::memory_order_release);
  }

  // Empty if neither copy is usable.
  std::optional<Found> Read(uint64_t seed) const {
    std::optional<Found> newest;
    int usable = 0;
    for (size_t i = 0; i < 2; ++i) {
      const Copy& copy = copies_[i];
      Found found;
      found.version = copy.version.load(std::memory_order_relaxed);
      uint64_t check = MixWord(seed, found.version);
      for (size_t k = 0; k < N; ++k) {
        found.values[k] = copy.values[k].load(std::memory_order_relaxed);
        check = MixWord(check, static_cast<uint64_t>(found.values[k]));
      }
      if (check != copy.check.load() || (found.version & 1) != i || found.version == 0) continue;
      ++usable;
      if (!newest || found.version > newest->version) newest = found;
    }
    // After the first write the other copy still belongs to the slot's earlier request.
    if (newest) newest->older = usable == 1 && newest->version > 1;
    return newest;
  }

 private:
  struct Copy {
    std::atomic<uint64_t> version;
    std::array<std::atomic<int64_t>, N> values;
    std::atomic<uint64_t> check;
  };
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  Copy copies_[2];
};

}  // namespace tollgate::inference_router
