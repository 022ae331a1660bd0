// What a request has taken and must give back on every way out: its lease on the rate limits, and
// its hold on the workspace's credit. Both are guards: letting them die gives back. One loop only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "common/base/id.h"
#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::gateway {

// Renews the leases of one loop's running requests, all in one call every 10 s.
class LeaseKeeper : public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(Loop& loop, RateLimitClient& limiter) : loop_(loop), limiter_(limiter) {}
  // Without it the timer that is set would outlive the clients. On the loop.
  void Stop();

  void Add(const std::string& lease_id);
  void Remove(const std::string& lease_id);
  size_t size() const { return leases_.size(); }

  // Sends it in the background.
  void Release(ratelimit::v1::ReleaseItem item);
  // The same, and waits until the limiter has applied it; not for long, should it be away.
  Task<void> ReleaseAndWait(ratelimit::v1::ReleaseItem item);

 private:
  void Arm();
  Loop& loop_;
  RateLimitClient& limiter_;
  std::unordered_set<std::string> leases_;
  Loop::TimerId timer_ = 0;
};

// A place within the limits. Its end refunds everything that was taken.
class Lease {
 public:
  Lease() = default;
  // Of the limiter service, which may or may not have heard of it yet. slots: it takes one of a
  // bounded number of requests at a time.
  Lease(LeaseKeeper& keeper, ratelimit::v1::ReleaseItem item, bool slots)
      : keeper_(&keeper), item_(std::move(item)), slots_(slots) {
    keeper_->Add(item_.lease_id());
  }
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept {
    if (held()) keeper_->Release(TakeItem(true));
    keeper_ = std::exchange(other.keeper_, nullptr);
    item_ = std::move(other.item_);
    slots_ = other.slots_;
    return *this;
  }
  ~Lease() {
    if (held()) keeper_->Release(TakeItem(true));
  }

  bool held() const { return keeper_ != nullptr; }
  // Refunds everything. Ends when the limiter has heard of it: the caller's next request, on
  // whatever connection, finds it free.
  Task<void> Refund();
  // The request ran: gives back what it did not use. Waits only where somebody may wait for its
  // slot.
  Task<void> Finish(int64_t actual_tokens);
  // The limiter refused: nothing was taken.
  void Forget() {
    if (held()) keeper_->Remove(item_.lease_id());
    keeper_ = nullptr;
  }

 private:
  // Lets go of it.
  ratelimit::v1::ReleaseItem TakeItem(bool refund);

  LeaseKeeper* keeper_ = nullptr;
  ratelimit::v1::ReleaseItem item_;
  bool slots_ = false;
};

// Reserved money. Voided at its end unless the router has taken charge of it.
class HoldGuard {
 public:
  HoldGuard() = default;
  HoldGuard(BillingClient& billing, Id request_id, std::string workspace_id)
      : billing_(&billing), request_id_(request_id), workspace_id_(std::move(workspace_id)) {}
  HoldGuard(HoldGuard&& other) noexcept { *this = std::move(other); }
  HoldGuard& operator=(HoldGuard&& other) noexcept {
    Void("replaced");
    billing_ = std::exchange(other.billing_, nullptr);
    request_id_ = other.request_id_;
    workspace_id_ = std::move(other.workspace_id_);
    return *this;
  }
  ~HoldGuard() { Void("request ended before it reached an engine"); }

  void Void(std::string_view reason);
  // The router settles it from here on, or there never was one.
  void Disarm() { billing_ = nullptr; }

 private:
  BillingClient* billing_ = nullptr;
  Id request_id_;
  std::string workspace_id_;
};

}  // namespace tollgate::gateway
