#include "common/runtime/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tollgate {

TimerWheel::TimerWheel(int64_t now_us) : current_tick_(now_us / kTickUs) { heads_.fill(kNone); }

uint32_t TimerWheel::Allocate() {
  if (!free_.empty()) {
    uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  nodes_.emplace_back();
  return static_cast<uint32_t>(nodes_.size() - 1);
}

TimerWheel::Id TimerWheel::Add(int64_t now_us, int64_t delay_us, Callback callback) {
  // A timer is due after the current tick, which has already run.
  int64_t due_us = now_us + std::max<int64_t>(delay_us, 0);
  int64_t tick = std::max((due_us + kTickUs - 1) / kTickUs, current_tick_ + 1);
  uint32_t index = Allocate();
  Node& node = nodes_[index];
  int slot = static_cast<int>(tick % kSlots);
  node.callback = std::move(callback);
  node.tick = tick;
  node.active = true;
  node.previous = kNone;
  node.next = heads_[slot];
  if (node.next != kNone) nodes_[node.next].previous = index;
  heads_[slot] = index;
  occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
  ++size_;
  return (static_cast<uint64_t>(node.generation) << 32) | index;
}

void TimerWheel::Unlink(uint32_t index) {
  Node& node = nodes_[index];
  int slot = static_cast<int>(node.tick % kSlots);
  if (node.previous != kNone) {
    nodes_[node.previous].next = node.next;
  } else {
    heads_[slot] = node.next;
    if (node.next == kNone) occupied_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  }
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  node.active = false;
  // With generation 0 the id of node 0 would be 0, which means "no timer".
  if (++node.generation == 0) node.generation = 1;
  free_.push_back(index);
  --size_;
}

void TimerWheel::Cancel(Id id) {
  auto index = static_cast<uint32_t>(id);
  if (index >= nodes_.size()) return;
  Node& node = nodes_[index];
  if (!node.active || node.generation != static_cast<uint32_t>(id >> 32)) return;
  // Destroyed last: destructors of its captures may call back into this wheel.
  Callback destroyed = std::move(node.callback);
  node.callback = nullptr;
  Unlink(index);
}

void TimerWheel::RunSlot(int64_t tick) {
  // A callback may change the list of the slot, so each iteration starts at its head. Timers that
  // callbacks add are due at a later tick and are skipped.
  for (;;) {
    uint32_t index = heads_[tick % kSlots];
    while (index != kNone && nodes_[index].tick > tick) index = nodes_[index].next;
    if (index == kNone) return;
    Callback callback = std::move(nodes_[index].callback);
    nodes_[index].callback = nullptr;
    Unlink(index);
    callback();
  }
}

void TimerWheel::Advance(int64_t now_us) {
  int64_t target = now_us / kTickUs;
  while (current_tick_ < target) {
    if (size_ == 0) {
      current_tick_ = target;
      return;
    }
    // After a long pause one revolution visits every slot; the other ticks are skipped.
    if (target - current_tick_ > kSlots) {
      int64_t last = target - kSlots;
      for (int64_t tick = current_tick_ + 1; tick <= current_tick_ + kSlots; ++tick) {
        // Runs the timers of this slot that became due in any revolution up to `last`.
        int64_t revolutions = (last - tick) / kSlots;
        if (last >= tick) RunSlot(tick + revolutions * kSlots);
      }
      current_tick_ = last;
      continue;
    }
    ++current_tick_;
    RunSlot(current_tick_);
  }
}

int64_t TimerWheel::NextUs() const {
  if (size_ == 0) return kNever;
  int start = static_cast<int>((current_tick_ + 1) % kSlots);
  for (int step = 0; step < kSlots;) {
    int slot = (start + step) % kSlots;
    uint64_t word = occupied_[slot / 64] >> (slot % 64);
    if (word != 0) return (current_tick_ + 1 + step + std::countr_zero(word)) * kTickUs;
    step += 64 - slot % 64;
  }
  return kNever;
}

void TimerWheel::Clear() {
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    if (!nodes_[index].active) continue;
    Callback destroyed = std::move(nodes_[index].callback);
    nodes_[index].callback = nullptr;
    Unlink(index);
  }
}

}  // namespace tollgate
