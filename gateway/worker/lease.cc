#include "gateway/worker/lease.h"

#include <vector>

#include "common/runtime/notify.h"

namespace tollgate::gateway {

namespace {

// A third of the limiter's lease (reliability.md section 2): two renewals may be lost.
constexpr int64_t kRenewMs = 10'000;
// What an answer may be held up by a limiter that does not reply.
constexpr int64_t kHearMs = 200;

Task<void> ThenTell(Task<void> release, std::shared_ptr<Event> applied) {
  co_await std::move(release);
  applied->Set();
}

}  // namespace

void LeaseKeeper::Arm() {
  timer_ = loop_.RunAfter(kRenewMs, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    if (self->leases_.empty()) return;
    self->limiter_.Renew({self->leases_.begin(), self->leases_.end()});
    self->Arm();
  });
}

void LeaseKeeper::Stop() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_ = 0;
}

void LeaseKeeper::Add(const std::string& lease_id) {
  leases_.insert(lease_id);
  if (timer_ == 0) Arm();
}

void LeaseKeeper::Remove(const std::string& lease_id) { leases_.erase(lease_id); }

void LeaseKeeper::Release(ratelimit::v1::ReleaseItem item) {
  loop_.Spawn(limiter_.Release(std::move(item)));
}

Task<void> LeaseKeeper::ReleaseAndWait(ratelimit::v1::ReleaseItem item) {
  const auto applied = std::make_shared<Event>(loop_);
  loop_.Spawn(ThenTell(limiter_.Release(std::move(item)), applied));
  (void)co_await applied->WaitFor(kHearMs);
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
  if (slots_) co_return co_await keeper.ReleaseAndWait(TakeItem(false));
  keeper.Release(TakeItem(false));
}

void HoldGuard::Void(std::string_view reason) {
  if (billing_ == nullptr) return;
  BillingClient* const billing = std::exchange(billing_, nullptr);
  billing::v1::VoidItem item;
  item.set_request_id(request_id_.ToBytes());
  item.set_workspace_id(workspace_id_);
  item.set_reason(std::string(reason));
  billing->Void(std::move(item));
}

}  // namespace tollgate::gateway
