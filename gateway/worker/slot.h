// A request's slot at the rate limiter: released on every early return, renewed while the request
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

// Renews the slots of all running requests of one loop, in one call every 3 s.
class SlotKeeper : public std::enable_shared_from_this<SlotKeeper> {
 public:
  SlotKeeper(Loop& loop, RateLimitClient& limiter) : loop_(loop), limiter_(limiter) {}
  // Cancels the timer. Call on the loop, before the clients are destroyed.
  void Stop();

  void Add(ratelimit::v1::RenewItem item);
  void Remove(const std::string& slot_id);
  size_t size() const { return slots_.size(); }

  // Sends the release in the background.
  void Release(ratelimit::v1::ReleaseItem item);
  // Sends the release and waits until the limiter has applied it, at most 200 ms.
  Task<void> ReleaseAndWait(ratelimit::v1::ReleaseItem item);

 private:
  void ArmTimer();
  static Task<void> Renew(std::shared_ptr<SlotKeeper> self);
  Loop& loop_;
  RateLimitClient& limiter_;
  std::unordered_map<std::string, ratelimit::v1::RenewItem> slots_;
  Loop::TimerId timer_ = 0;
  bool stopped_ = false;
};

// Everything that the limiter granted to a request. The destructor refunds all of it.
class Slot {
 public:
  Slot() = default;
  // Create it before the limiter is asked: the limiter may grant it even if the response is lost.
  // limits_concurrency: a limit on concurrent requests counts the slot.
  Slot(SlotKeeper& keeper, ratelimit::v1::RenewItem item, bool limits_concurrency);
  // Starts to renew the slot. Call it only after the limiter has granted the slot: the limiter
  // restores an unknown slot even above the limit, and would then treat the acquire as a
  // repetition.
  void KeepAlive() { keeper_->Add(std::move(renewal_)); }
  Slot(Slot&& other) noexcept { *this = std::move(other); }
  Slot& operator=(Slot&& other) noexcept {
    if (held()) keeper_->Release(TakeItem(true));
    keeper_ = std::exchange(other.keeper_, nullptr);
    item_ = std::move(other.item_);
    renewal_ = std::move(other.renewal_);
    limits_concurrency_ = other.limits_concurrency_;
    return *this;
  }
  ~Slot() {
    if (held()) keeper_->Release(TakeItem(true));
  }

  bool held() const { return keeper_ != nullptr; }
  // Refunds everything. Waits until the limiter has applied it, so that the client's next request
  // finds it free on any connection.
  Task<void> Refund();
  // Call when the request has run: returns the unused tokens. Waits only if a limit on concurrent
  // requests counts the slot, because the client's next request may need it.
  Task<void> Finish(int64_t actual_tokens);
  // The limiter refused, so there is nothing to release.
  void Disarm() {
    if (held()) keeper_->Remove(item_.lease_id());
    keeper_ = nullptr;
  }

 private:
  // Builds the message that releases the slot, and gives up the slot.
  ratelimit::v1::ReleaseItem TakeItem(bool refund);

  SlotKeeper* keeper_ = nullptr;
  ratelimit::v1::ReleaseItem item_;
  ratelimit::v1::RenewItem renewal_;  // moved out by KeepAlive
  bool limits_concurrency_ = false;
};

}  // namespace tollgate::gateway
