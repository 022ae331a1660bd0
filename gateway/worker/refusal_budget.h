// Bounds the requests of a key that take a hold and then end without a charge, for keys that no
// request limit bounds. Each takes a hold and releases it, which the ledger stores forever and
// nobody pays for (ADR 0016). Shared by all loops of a process, without locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tollgate::gateway {

class RefusalBudget {
 public:
  // Refusals that a subject may cause: one per second, with a burst of kBurst.
  static constexpr int64_t kIntervalUs = 1'000'000;
  static constexpr int64_t kBurst = 60;

  RefusalBudget();

  // The subject of the bound: a key, or with a model the key's requests for that model.
  using Subject = uint64_t;
  static Subject SubjectOf(std::string_view key_id, std::string_view model = {});

  // Milliseconds until the subject may ask again; 0: now. Times are monotonic µs.
  int64_t WaitMs(Subject subject, int64_t now_us) const;
  // Counts a refusal, or a part of one. Refusals of concurrent requests can exceed the budget by
  // one burst.
  void Take(Subject subject, int64_t now_us, int64_t cost_us = kIntervalUs);
  // A paid answer makes up for one refusal, so a caller who pays for most requests is never
  // limited. Paid answers are not saved up.
  void GiveBack(Subject subject, int64_t now_us);

 private:
  // A count-min sketch of the times at which the whole budget is back (GCRA). A subject has one
  // cell in each row, and its time is the lowest of them. Other subjects can only make it appear
  // later, by sharing all of its cells. Two loops that count for one subject at the same instant
  // may count once.
  static constexpr size_t kRows = 4;
  static constexpr size_t kCells = 16'384;  // per row, 8 bytes each: 512 KiB in total
  using Cell = std::atomic<int64_t>;
  std::array<Cell*, kRows> CellsOf(Subject subject) const;
  static int64_t FullUs(const std::array<Cell*, kRows>& cells);

  const uint64_t seed_;
  const std::unique_ptr<Cell[]> cells_;
};

}  // namespace tollgate::gateway
