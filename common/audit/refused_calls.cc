#include "common/audit/refused_calls.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/base/time_units.h"

namespace tollgate::audit {
namespace {

// Limit of combinations of caller, method and workspace that are tracked; further calls are only
// counted.
constexpr size_t kMaxSlots = 1000;
constexpr size_t kMaxText = 200;

void Count(RefusedCalls::Summary& summary, RefusedCall call, int64_t at_us, int64_t count) {
  if (summary.count == 0) {
    summary.first = std::move(call);
    summary.at_us = at_us;
  }
  summary.count += count;
}

}  // namespace

RefusedCalls& RefusedCalls::OfProcess() {
  // Never destroyed: gRPC's threads may outlive main.
  static auto* const calls = new RefusedCalls();
  return *calls;
}

void RefusedCalls::Note(RefusedCall call, int64_t at_us) {
  if (writers_ == 0) return;
  for (std::string* text :
       {&call.actor, &call.address, &call.method, &call.workspace, &call.reason}) {
    *text = ToValidUtf8(*text, kMaxText);
    // The log refuses texts with NUL, and one such entry would block the others.
    std::ranges::replace(*text, '\0', '?');
  }
  std::string key = call.actor + '\n' + call.method + '\n' + call.workspace;
  const std::lock_guard lock(mutex_);
  auto slot = slots_.find(key);
  if (slot == slots_.end()) {
    if (slots_.size() >= kMaxSlots) return Count(others_, {}, at_us, 1);
    slot = slots_.emplace(std::move(key), Slot{}).first;
  }
  Count(slot->second.waiting, std::move(call), at_us, 1);
}

std::vector<RefusedCalls::Summary> RefusedCalls::Take(int64_t now_us, bool all) {
  std::vector<Summary> taken;
  const std::lock_guard lock(mutex_);
  if (now_us - minute_us_ >= kMinuteUs) {
    minute_us_ = now_us;
    entries_ = 0;
    others_taken_ = false;
  }
  for (auto at = slots_.begin(); at != slots_.end();) {
    Slot& slot = at->second;
    const bool due = all || !slot.taken || now_us - slot.taken_us >= kMinuteUs;
    if (!due) {
      ++at;
      continue;
    }
    if (slot.waiting.count == 0) {
      at = slots_.erase(at);
      continue;
    }
    if (entries_ < kMaxRefusedEntries) {
      ++entries_;
      taken.push_back(std::exchange(slot.waiting, {}));
    } else {
      Count(others_, {}, slot.waiting.at_us, slot.waiting.count);
      slot.waiting = {};
    }
    slot.taken = true;
    slot.taken_us = now_us;
    ++at;
  }
  if (others_.count > 0 && (all || !others_taken_)) {
    others_taken_ = true;
    taken.push_back(std::exchange(others_, {}));
  }
  return taken;
}

}  // namespace tollgate::audit
