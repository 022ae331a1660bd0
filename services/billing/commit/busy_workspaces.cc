#include "services/billing/commit/busy_workspaces.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tollgate::billing {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

BusyWorkspaces::BusyWorkspaces(int64_t above_per_second)
    : above_per_second_(above_per_second),
      slots_(above_per_second > 0 ? std::make_unique<std::array<Slot, kSlots>>() : nullptr) {}

BusyWorkspaces::Slot& BusyWorkspaces::SlotOf(std::string_view workspace) const {
  return (*slots_)[std::hash<std::string_view>()(workspace) % kSlots];
}

void BusyWorkspaces::OnBatch(std::span<const Operation> operations, const Applied& applied) {
  if (slots_ == nullptr) return;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (!applied.replies[i].ok) continue;
    if (const auto* authorize = std::get_if<Authorize>(&operations[i])) {
      if (!authorize->check_only) SlotOf(authorize->workspace).begun.fetch_add(1, kRelaxed);
    } else if (const auto* settle = std::get_if<Settle>(&operations[i])) {
      SlotOf(settle->workspace).ended.fetch_add(1, kRelaxed);
    }
  }
}

bool BusyWorkspaces::IsBusy(std::string_view workspace) const {
  return slots_ != nullptr && SlotOf(workspace).busy.load(kRelaxed);
}

void BusyWorkspaces::Tick(int64_t monotonic_us) {
  if (slots_ == nullptr) return;
  const int64_t took_us = monotonic_us - std::exchange(ticked_us_, monotonic_us);
  const bool is_first = took_us == monotonic_us;
  tick_ = (tick_ + 1) % kTicks;
  took_us_[tick_] = is_first ? 0 : took_us;
  const int64_t window_us = std::reduce(took_us_.begin(), took_us_.end());
  for (Slot& slot : *slots_) {
    const uint32_t begun = slot.begun.exchange(0, kRelaxed);
    const uint32_t ended = slot.ended.exchange(0, kRelaxed);
    // The counts before the first tick cover an unknown period.
    slot.counts[tick_] = is_first ? 0 : std::max(begun, ended);
    const int64_t count =
        std::accumulate(slot.counts.begin(), slot.counts.end(), int64_t{0}) * 1'000'000;
    const bool was_busy = slot.busy.load(kRelaxed);
    if (count == 0 && !was_busy) continue;
    if (count > above_per_second_ * window_us && window_us > 0) {
      slot.busy.store(true, kRelaxed);
      slot.quiet_since_us = monotonic_us;
    } else if (count * 2 >= above_per_second_ * window_us) {
      slot.quiet_since_us = monotonic_us;
    } else if (was_busy && monotonic_us - slot.quiet_since_us >= kQuietUs) {
      slot.busy.store(false, kRelaxed);
    }
  }
}

}  // namespace tollgate::billing
