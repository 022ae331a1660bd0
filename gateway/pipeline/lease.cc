#include "gateway/pipeline/lease.h"

#include <vector>

namespace tollgate::gateway {

namespace {

// A third of the limiter's lease (reliability.md section 2): two renewals may be lost.
constexpr int64_t kRenewMs = 10'000;

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

void Lease::GiveBack() {
  if (limiter_ == nullptr) return;
  RateLimitClient* const limiter = std::exchange(limiter_, nullptr);
  keeper_->Remove(item_.lease_id());
  item_.set_refund(!finished_);
  limiter->Release(std::move(item_));
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
