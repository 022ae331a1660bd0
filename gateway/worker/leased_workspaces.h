// The workspaces whose requests go to a router without a hold, as billing reports them
// (AuthorizeResult.lease). The router admits these requests from its lease on the workspace's
// credit. One per loop. See docs/adr/0042.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace tollgate::gateway {

class LeasedWorkspaces {
 public:
  // With more workspaces than this, further ones are authorized request by request.
  static constexpr size_t kMaxWorkspaces = 4096;
  // Pause after a router without a lease was asked. The router takes a lease during it.
  static constexpr int64_t kPauseUs = 200'000;

  // Whether requests of the workspace go without a hold now.
  bool Has(const std::string& workspace, int64_t now_us) const {
    const auto found = paused_until_us_.find(workspace);
    return found != paused_until_us_.end() && now_us >= found->second;
  }
  // Call when billing has authorized a request. lease: whether billing reports leases of the
  // workspace.
  void OnAuthorized(const std::string& workspace, bool lease) {
    if (lease) {
      any_ = true;
      Add(workspace);
    } else {
      paused_until_us_.erase(workspace);
    }
  }
  // Whether a router may have a lease that billing reported to another loop. Used when billing is
  // unreachable.
  bool MayHave(const std::string& workspace) const {
    return any_ && !paused_until_us_.contains(workspace);
  }
  // Call when billing is unreachable: requests go to routers until a router or billing says
  // otherwise.
  void OnUnreachable(const std::string& workspace) { Add(workspace); }
  // Call when the router that was asked had no lease that covers the request.
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

  // Whether billing has reported any lease.
  bool any_ = false;
  std::unordered_map<std::string, int64_t> paused_until_us_;
};

}  // namespace tollgate::gateway
