// Which workspaces have so many requests that routers get leases on their credit
// (docs/design/ledger.md 13). As far as this process sees them. Counting is one addition; a slot
// may count several workspaces together, so a small one beside a busy one has leases as well, which
// is harmless.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

class BusyWorkspaces {
 public:
  static constexpr int64_t kQuietUs = 30'000'000;

  // 0: none is busy.
  explicit BusyWorkspaces(int64_t above_per_second);

  // Counts the requests that a committed batch has begun and ended. Thread-safe.
  void OnBatch(std::span<const Operation> operations, const Applied& applied);
  // Whether routers may have leases. Thread-safe.
  bool IsBusy(std::string_view workspace) const;
  // Decides anew, about once a second, on one thread.
  void Tick(int64_t monotonic_us);

 private:
  static constexpr size_t kSlots = 8192;
  static constexpr size_t kTicks = 3;  // the window
  struct Slot {
    // A gateway authorizes at one process what a router may settle at another one.
    std::atomic<uint32_t> begun = 0;
    std::atomic<uint32_t> ended = 0;
    std::atomic<bool> busy = false;
    // Of Tick only. The larger of the two above, by tick.
    std::array<uint32_t, kTicks> counts{};
    int64_t quiet_since_us = 0;
  };

  Slot& SlotOf(std::string_view workspace) const;

  const int64_t above_per_second_;
  const std::unique_ptr<std::array<Slot, kSlots>> slots_;  // null: off
  std::array<int64_t, kTicks> took_us_{};                  // by tick
  size_t tick_ = 0;
  int64_t ticked_us_ = 0;
};

}  // namespace tollgate::billing
