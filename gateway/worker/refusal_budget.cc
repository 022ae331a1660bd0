#include "gateway/worker/refusal_budget.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "common/base/crypto.h"

namespace tollgate::gateway {

namespace {

// The finalizer of SplitMix64: every bit of the result depends on every bit of the value.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// A random seed: nobody can predict which keys share cells.
uint64_t RandomSeed() {
  uint64_t seed = 0;
  const std::string random = RandomBytes(sizeof(seed));
  std::memcpy(&seed, random.data(), sizeof(seed));
  return seed;
}

}  // namespace

RefusalBudget::RefusalBudget() : seed_(RandomSeed()), cells_(new Cell[kRows * kCells]) {
  std::fill_n(cells_.get(), kRows * kCells, std::numeric_limits<int64_t>::min());
}

RefusalBudget::Subject RefusalBudget::SubjectOf(std::string_view key_id, std::string_view model) {
  const std::hash<std::string_view> hash;
  return model.empty() ? hash(key_id) : Mix(hash(key_id)) ^ hash(model);
}

std::array<RefusalBudget::Cell*, RefusalBudget::kRows> RefusalBudget::CellsOf(
    Subject subject) const {
  std::array<Cell*, kRows> cells;
  uint64_t hash = subject ^ seed_;
  for (size_t row = 0; row < kRows; ++row) {
    hash = Mix(hash);
    cells[row] = &cells_[row * kCells + hash % kCells];
  }
  return cells;
}

int64_t RefusalBudget::FullUs(const std::array<Cell*, kRows>& cells) {
  int64_t full_us = std::numeric_limits<int64_t>::max();
  for (const Cell* cell : cells) full_us = std::min(full_us, cell->load(std::memory_order_relaxed));
  return full_us;
}

int64_t RefusalBudget::WaitMs(Subject subject, int64_t now_us) const {
  const int64_t full_us = std::max(FullUs(CellsOf(subject)), now_us);
  const int64_t wait_us = full_us - now_us - (kBurst - 1) * kIntervalUs;
  return std::max<int64_t>(0, (wait_us + 999) / 1000);
}

void RefusalBudget::Take(Subject subject, int64_t now_us, int64_t cost_us) {
  const auto cells = CellsOf(subject);
  const int64_t after_us =
      std::min(std::max(FullUs(cells), now_us) + cost_us, now_us + 2 * kBurst * kIntervalUs);
  // Raises each cell only as far as this subject needs: a higher cell is shared with another
  // subject.
  for (Cell* cell : cells) {
    int64_t before_us = cell->load(std::memory_order_relaxed);
    while (before_us < after_us &&
           !cell->compare_exchange_weak(before_us, after_us, std::memory_order_relaxed)) {
    }
  }
}

void RefusalBudget::GiveBack(Subject subject, int64_t now_us) {
  const auto cells = CellsOf(subject);
  const int64_t full_us = FullUs(cells);
  if (full_us <= now_us) return;
  // Lowers only the lowest cells, which are the subject's own. A failed exchange means that another
  // loop has counted.
  for (Cell* cell : cells) {
    int64_t expected_us = full_us;
    cell->compare_exchange_strong(expected_us, full_us - kIntervalUs, std::memory_order_relaxed);
  }
}

}  // namespace tollgate::gateway
