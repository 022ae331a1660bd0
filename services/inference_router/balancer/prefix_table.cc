#include "services/inference_router/balancer/prefix_table.h"

#include <algorithm>
#include <bit>

namespace tollgate::inference_router {
namespace {

constexpr size_t kBytesPerEngine = 128 << 10;
constexpr size_t kLeastBytes = 256 << 10;
constexpr size_t kMostBytes = 8 << 20;

}  // namespace

PrefixTable::PrefixTable(size_t engines)
    : sets_(std::bit_ceil(std::clamp(engines * kBytesPerEngine, kLeastBytes, kMostBytes)) /
            sizeof(Set)) {}

void PrefixTable::Write(uint64_t hash, uint16_t engine, int64_t now_us, bool moves) {
  const uint16_t now = TimeOf(now_us);
  Set& set = sets_[hash & (sets_.size() - 1)];
  std::atomic<uint64_t>* oldest = nullptr;
  int oldest_age = -1;
  for (auto& word : set.words) {
    const uint64_t entry = word.load(std::memory_order_relaxed);
    if (entry != 0 && TagOf(entry) == TagOf(hash) && (moves || EngineOf(entry) == engine)) {
      oldest = &word;
      break;
    }
    const int age = entry == 0 ? UINT16_MAX + 1 : Age(entry, now);
    if (age > oldest_age) {
      oldest = &word;
      oldest_age = age;
    }
  }
  const uint64_t entry = (hash >> 32 << 32) | static_cast<uint64_t>(engine) << 16 | now;
  // Avoids taking the cache line from another core without need.
  if (oldest->load(std::memory_order_relaxed) != entry) {
    oldest->store(entry, std::memory_order_relaxed);
  }
}

}  // namespace tollgate::inference_router
