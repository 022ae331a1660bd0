#include "gateway/worker/lease.h"

#include "common/runtime/notify.h"

namespace tollgate::gateway {

namespace {

// A third of the lease's lifetime (docs/design/limits.md 4): two renewals in a row may be lost.
constexpr int64_t kRenewIntervalMs = 10'000;
// How long a limiter that does not respond can delay the end of a request.
constexpr int64_t kMaxReleaseWaitMs = 200;

Task<void> AwaitAndSet(Task<void> release, std::shared_ptr<Event> applied) {
  co_await std::move(release);
  applied->Set();
}

}  // namespace

void LeaseKeeper::ArmTimer() {
  timer_ = loop_.RunAfter(kRenewIntervalMs, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    if (self->leases_.empty()) return;
    self->limiter_.Renew({self->leases_.begin(), self->leases_.end()});
    self->ArmTimer();
  });
}

void LeaseKeeper::Stop() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_ = 0;
}

void LeaseKeeper::Add(const std::string& lease_id) {
  leases_.insert(lease_id);
  if (timer_ == 0) ArmTimer();
}

void LeaseKeeper::Remove(const std::string& lease_id) { leases_.erase(lease_id); }

void LeaseKeeper::Release(ratelimit::v1::ReleaseItem item) {
  loop_.Spawn(limiter_.Release(std::move(item)));
}

Task<void> LeaseKeeper::ReleaseAndWait(ratelimit::v1::ReleaseItem item) {
  const auto applied = std::make_shared<Event>(loop_);
  loop_.Spawn(AwaitAndSet(limiter_.Release(std::move(item)), applied));
  (void)co_await applied->WaitFor(kMaxReleaseWaitMs);
}

ratelimit::v1::ReleaseItem Lease::TakeItem(bool refund) {
  std::exchange(keeper_, nullptr)->Remove(item_.lease_id());
  item_.set_refund(refund);
  return std::move(item_);
}

Task<void> Lease::Refund() {
  if (!held()) co_return;
  LeaseKeeper& keeper = *keeper_;
  co_await keeper.ReleaseAndWait(TakeItem(true));
}

Task<void> Lease::Finish(int64_t actual_tokens) {
  if (!held()) co_return;
  LeaseKeeper& keeper = *keeper_;
  item_.set_actual_tokens(actual_tokens);
  if (limits_concurrency_) co_return co_await keeper.ReleaseAndWait(TakeItem(false));
  keeper.Release(TakeItem(false));
}

}  // namespace tollgate::gateway
