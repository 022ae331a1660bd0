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

 private:
  void Arm();
  Loop& loop_;
  RateLimitClient& limiter_;
  std::unordered_set<std::string> leases_;
  Loop::TimerId timer_ = 0;
};

// A place within the limits. Until Finish, its end refunds everything that was taken.
class Lease {
 public:
  Lease() = default;
  // Of the limiter service, which may or may not have heard of it yet.
  Lease(RateLimitClient& limiter, LeaseKeeper& keeper, ratelimit::v1::ReleaseItem item)
      : limiter_(&limiter), keeper_(&keeper), item_(std::move(item)) {
    keeper_->Add(item_.lease_id());
  }
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept {
    GiveBack();
    limiter_ = std::exchange(other.limiter_, nullptr);
    keeper_ = other.keeper_;
    item_ = std::move(other.item_);
    return *this;
  }
  ~Lease() { GiveBack(); }

  // The request ran: only what it did not use is given back.
  void Finish(int64_t actual_tokens) {
    item_.set_actual_tokens(actual_tokens);
    finished_ = true;
    GiveBack();
  }
  // The limiter refused: nothing was taken.
  void Forget() {
    if (limiter_ != nullptr) keeper_->Remove(item_.lease_id());
    limiter_ = nullptr;
  }

 private:
  void GiveBack();
  RateLimitClient* limiter_ = nullptr;
  LeaseKeeper* keeper_ = nullptr;
  ratelimit::v1::ReleaseItem item_;
  bool finished_ = false;
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
