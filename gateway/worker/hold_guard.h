// A request's hold on its workspace's credit. One loop only.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/id.h"
#include "common/clients/clients.h"

namespace tollgate::gateway {

// Voids the hold in its destructor unless a router has taken it over. Every void of this class,
// except Release, undoes whatever was charged (decision 52).
class HoldGuard {
 public:
  HoldGuard() = default;
  HoldGuard(BillingClient& billing, Id request_id, std::string workspace_id)
      : billing_(&billing), request_id_(request_id), workspace_id_(std::move(workspace_id)) {}
  HoldGuard(HoldGuard&& other) noexcept { *this = std::move(other); }
  HoldGuard& operator=(HoldGuard&& other) noexcept {
    if (!handed_over_) Refuse("replaced");
    billing_ = std::exchange(other.billing_, nullptr);
    handed_over_ = std::exchange(other.handed_over_, false);
    request_id_ = other.request_id_;
    workspace_id_ = std::move(other.workspace_id_);
    return *this;
  }
  ~HoldGuard() {
    if (!handed_over_) Refuse("request ended before it reached an engine");
  }

  bool held() const { return billing_ != nullptr; }
  // The caller gets an error, so nothing may be charged, even if a router has the hold.
  void Refuse(std::string_view reason) { Void(reason, true); }
  // The request needs no engine.
  void Release(std::string_view reason) { Void(reason, false); }
  // From here on a router settles the hold.
  void HandOver() { handed_over_ = true; }
  // There is no hold: billing refused to place it.
  void Disarm() { billing_ = nullptr; }

 private:
  void Void(std::string_view reason, bool refused);

  BillingClient* billing_ = nullptr;
  bool handed_over_ = false;
  Id request_id_;
  std::string workspace_id_;
};

}  // namespace tollgate::gateway
