// Finds workspaces with so many requests that routers should get leases on their credit
// (docs/design/ledger.md 13), from the requests that this process sees. Counting is one addition.
// Several workspaces may share a slot, so a small workspace next to a busy one may get leases as
// well, which is harmless.
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

  // above_per_second 0: no workspace is ever busy.
  explicit BusyWorkspaces(int64_t above_per_second);

  // Counts the requests that a committed batch has opened and settled. Thread-safe.
  void OnBatch(std::span<const Operation> operations, const Applied& applied);
  // Whether routers may have leases on the workspace's credit. Thread-safe.
  bool IsBusy(std::string_view workspace) const;
  // Updates which workspaces are busy. Called about once a second, on one thread.
  void Tick(int64_t monotonic_us);

 private:
  static constexpr size_t kSlots = 8192;
  static constexpr size_t kTicks = 3;  // the window
  struct Slot {
    // One process may authorize a request that another one settles.
    std::atomic<uint32_t> begun = 0;
    std::atomic<uint32_t> ended = 0;
    std::atomic<bool> busy = false;
    // Used by Tick only. counts has the larger of begun and ended for each tick.
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
