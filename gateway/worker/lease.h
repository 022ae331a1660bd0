// A request's lease at the rate limiter: released on every early return, renewed while the request
// runs. One loop only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::gateway {

// Renews the leases of one loop's running requests: all of them in one call every 3 s.
class LeaseKeeper : public std::enable_shared_from_this<LeaseKeeper> {
 public:
  LeaseKeeper(Loop& loop, RateLimitClient& limiter) : loop_(loop), limiter_(limiter) {}
  // Cancels the timer. On the loop, before the clients are destroyed.
  void Stop();

  void Add(ratelimit::v1::RenewItem item);
  void Remove(const std::string& lease_id);
  size_t size() const { return leases_.size(); }

  // Sends the release in the background.
  void Release(ratelimit::v1::ReleaseItem item);
  // The same, and waits until the limiter has applied it, for 200 ms at most.
  Task<void> ReleaseAndWait(ratelimit::v1::ReleaseItem item);

 private:
  void ArmTimer();
  static Task<void> Renew(std::shared_ptr<LeaseKeeper> self);
  Loop& loop_;
  RateLimitClient& limiter_;
  std::unordered_map<std::string, ratelimit::v1::RenewItem> leases_;
  Loop::TimerId timer_ = 0;
  bool stopped_ = false;
};

// What the limiter has granted to a request. The destructor refunds all of it.
class Lease {
 public:
  Lease() = default;
  // The limiter may or may not have received the request for it yet. limits_concurrency: the lease
  // takes a concurrency slot.
  Lease(LeaseKeeper& keeper, ratelimit::v1::RenewItem item, bool limits_concurrency);
  // The limiter has granted it. It is renewed from here on, and not before: the limiter restores a
  // lease that it does not know, above the limit, and then takes the acquire for its repetition.
  void KeepAlive() { keeper_->Add(std::move(renewal_)); }
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept {
    if (held()) keeper_->Release(TakeItem(true));
    keeper_ = std::exchange(other.keeper_, nullptr);
    item_ = std::move(other.item_);
    renewal_ = std::move(other.renewal_);
    limits_concurrency_ = other.limits_concurrency_;
    return *this;
  }
  ~Lease() {
    if (held()) keeper_->Release(TakeItem(true));
  }

  bool held() const { return keeper_ != nullptr; }
  // Refunds everything. Waits until the limiter has applied it, so that the client's next request
  // finds it free on any connection.
  Task<void> Refund();
  // The request ran: returns the tokens that it did not use. Waits only if it releases a
  // concurrency slot, which the client's next request may need.
  Task<void> Finish(int64_t actual_tokens);
  // The limiter refused: there is nothing to release.
  void Disarm() {
    if (held()) keeper_->Remove(item_.lease_id());
    keeper_ = nullptr;
  }

 private:
  // The message that releases the lease, which is not held any more.
  ratelimit::v1::ReleaseItem TakeItem(bool refund);

  LeaseKeeper* keeper_ = nullptr;
  ratelimit::v1::ReleaseItem item_;
  ratelimit::v1::RenewItem renewal_;  // until KeepAlive
  bool limits_concurrency_ = false;
};

}  // namespace tollgate::gateway
