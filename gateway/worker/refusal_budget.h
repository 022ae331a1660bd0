// How many requests of a key may end free after they took a hold, of those that no limit on
// requests bounds. Each takes a hold and releases it, which the ledger keeps for ever and nobody
// pays for (ADR 0016). Shared by all loops of a process, without locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tollgate::gateway {

class RefusalBudget {
 public:
  // One a second, and so many at once.
  static constexpr int64_t kIntervalUs = 1'000'000;
  static constexpr int64_t kBurst = 60;

  RefusalBudget();

  // What is bounded: a key, or with a model the key's requests for that model.
  using Subject = uint64_t;
  static Subject SubjectOf(std::string_view key_id, std::string_view model = {});

  // Milliseconds until the subject may ask again; 0: now. Times are monotonic µs.
  int64_t WaitMs(Subject subject, int64_t now_us) const;
  // A refusal, or a part of one. Those of requests that ran at the same time count up to one burst
  // more.
  void Take(Subject subject, int64_t now_us, int64_t cost_us = kIntervalUs);
  // A paid answer makes up for a refusal: who pays for most requests is never limited. Nothing is
  // saved up.
  void GiveBack(Subject subject, int64_t now_us);

 private:
  // A count-min sketch of times at which all of the budget is back (GCRA): a subject has a cell in
  // each row, and its time is the lowest of them. Others can only make it look later, by sharing
  // all of its cells. Two loops that count for one subject in the same instant may count once.
  static constexpr size_t kRows = 4;
  static constexpr size_t kCells = 16'384;  // of 8 bytes, per row: 512 KiB
  using Cell = std::atomic<int64_t>;
  std::array<Cell*, kRows> CellsOf(Subject subject) const;
  static int64_t FullUs(const std::array<Cell*, kRows>& cells);

  const uint64_t seed_;
  const std::unique_ptr<Cell[]> cells_;
};

}  // namespace tollgate::gateway
