#include "gateway/worker/slot.h"

#include <unordered_set>
#include <vector>

#include "common/runtime/notify.h"

namespace tollgate::gateway {

namespace {

// A third of the slot's lifetime (docs/design/limits.md 4): two renewals in a row may be lost.
constexpr int64_t kRenewIntervalMs = 3'000;
// The longest delay at the end of a request when the limiter does not respond.
constexpr int64_t kMaxReleaseWaitMs = 200;

ratelimit::v1::ReleaseItem ReleaseOf(const ratelimit::v1::RenewItem& slot) {
  ratelimit::v1::ReleaseItem item;
  item.set_lease_id(slot.lease_id());
  item.set_workspace_id(slot.workspace_id());
  item.set_key_id(slot.key_id());
  if (slot.has_model_limits()) item.set_model(slot.model());
  return item;
}

Task<void> AwaitAndSet(Task<void> release, std::shared_ptr<Event> applied) {
  co_await std::move(release);
  applied->Set();
}

}  // namespace

void SlotKeeper::ArmTimer() {
  timer_ = loop_.RunAfter(kRenewIntervalMs, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    if (self->slots_.empty()) return;
    self->loop_.Spawn(Renew(self));
    self->ArmTimer();
  });
}

Task<void> SlotKeeper::Renew(std::shared_ptr<SlotKeeper> self) {
  std::vector<ratelimit::v1::RenewItem> items;
  items.reserve(self->slots_.size());
  for (const auto& [id, item] : self->slots_) items.push_back(item);
  const std::vector<ratelimit::v1::RenewItem> sent = items;
  const std::vector<std::string> restored = co_await self->limiter_.Renew(std::move(items));
  if (restored.empty() || self->stopped_) co_return;
  // The release of a request that ended meanwhile reached the limiter before it restored the slot.
  const std::unordered_set<std::string> again(restored.begin(), restored.end());
  for (const ratelimit::v1::RenewItem& item : sent) {
    if (!again.contains(item.lease_id()) || self->slots_.contains(item.lease_id())) continue;
    ratelimit::v1::ReleaseItem release = ReleaseOf(item);
    release.set_refund(true);
    self->Release(std::move(release));
  }
}

void SlotKeeper::Stop() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_ = 0;
  stopped_ = true;
}

void SlotKeeper::Add(ratelimit::v1::RenewItem item) {
  std::string id = item.lease_id();
  slots_.insert_or_assign(std::move(id), std::move(item));
  if (timer_ == 0) ArmTimer();
}

void SlotKeeper::Remove(const std::string& slot_id) { slots_.erase(slot_id); }

void SlotKeeper::Release(ratelimit::v1::ReleaseItem item) {
  loop_.Spawn(limiter_.Release(std::move(item)));
}

Task<void> SlotKeeper::ReleaseAndWait(ratelimit::v1::ReleaseItem item) {
  const auto applied = std::make_shared<Event>(loop_);
  loop_.Spawn(AwaitAndSet(limiter_.Release(std::move(item)), applied));
  (void)co_await applied->WaitFor(kMaxReleaseWaitMs);
}

Slot::Slot(SlotKeeper& keeper, ratelimit::v1::RenewItem item, bool limits_concurrency)
    : keeper_(&keeper),
      item_(ReleaseOf(item)),
      renewal_(std::move(item)),
      limits_concurrency_(limits_concurrency) {}

ratelimit::v1::ReleaseItem Slot::TakeItem(bool refund) {
  std::exchange(keeper_, nullptr)->Remove(item_.lease_id());
  item_.set_refund(refund);
  return std::move(item_);
}

Task<void> Slot::Refund() {
  if (!held()) co_return;
  SlotKeeper& keeper = *keeper_;
  co_await keeper.ReleaseAndWait(TakeItem(true));
}

Task<void> Slot::Finish(int64_t actual_tokens) {
  if (!held()) co_return;
  SlotKeeper& keeper = *keeper_;
  item_.set_actual_tokens(actual_tokens);
  if (limits_concurrency_) co_return co_await keeper.ReleaseAndWait(TakeItem(false));
  keeper.Release(TakeItem(false));
}

}  // namespace tollgate::gateway
