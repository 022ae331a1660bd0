// The workspaces whose requests go to a router without a hold, as billing says
// (AuthorizeResult.lease); the router admits them from its lease on the workspace's credit.
// One per loop. See docs/adr/0042.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace tollgate::gateway {

class LeasedWorkspaces {
 public:
  // Beyond so many, requests are authorized one by one.
  static constexpr size_t kMaxWorkspaces = 4096;
  // A router that has no lease yet takes one meanwhile.
  static constexpr int64_t kPauseUs = 200'000;

  // Whether a request of the workspace goes without a hold.
  bool Has(const std::string& workspace, int64_t now_us) const {
    const auto found = paused_until_us_.find(workspace);
    return found != paused_until_us_.end() && now_us >= found->second;
  }
  // Billing has authorized a request, and says whether the workspace has leases.
  void OnAuthorized(const std::string& workspace, bool lease) {
    if (lease) {
      any_ = true;
      Add(workspace);
    } else {
      paused_until_us_.erase(workspace);
    }
  }
  // Whether a router may have a lease that only other loops were told of: worth a try when billing
  // is unreachable.
  bool MayHave(const std::string& workspace) const {
    return any_ && !paused_until_us_.contains(workspace);
  }
  // Billing is unreachable: routers are asked, until they or billing say otherwise.
  void OnUnreachable(const std::string& workspace) { Add(workspace); }
  // No lease of the router that was asked covered a request.
  void OnNoLease(const std::string& workspace, int64_t now_us) {
    const auto found = paused_until_us_.find(workspace);
    if (found != paused_until_us_.end()) found->second = now_us + kPauseUs;
  }

 private:
  void Add(const std::string& workspace) {
    if (paused_until_us_.size() < kMaxWorkspaces) {
      paused_until_us_.try_emplace(workspace, INT64_MIN);
    }
  }

  // Billing grants leases.
  bool any_ = false;
  std::unordered_map<std::string, int64_t> paused_until_us_;
};

}  // namespace tollgate::gateway
