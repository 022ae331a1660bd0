// A request's hold on its workspace's credit, voided on every early return. One loop only.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/id.h"
#include "common/clients/clients.h"

namespace tollgate::gateway {

// Voids the hold in its destructor unless the router has taken it over.
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
  // The router settles the hold from here on, or billing refused to place it.
  void Disarm() { billing_ = nullptr; }

 private:
  BillingClient* billing_ = nullptr;
  Id request_id_;
  std::string workspace_id_;
};

}  // namespace tollgate::gateway
