// The workspaces for which a charge of auto-reload is under way: their credit may rise within
// seconds.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace tollgate::billing {

// Thread-safe.
class ReloadingWorkspaces {
 public:
  // Replaces the list.
  void Set(const std::vector<std::string>& workspaces) {
    const std::lock_guard lock(mutex_);
    names_ = {workspaces.begin(), workspaces.end()};
    any_ = !names_.empty();
  }
  bool Has(const std::string& workspace) const {
    if (!any_) return false;
    const std::lock_guard lock(mutex_);
    return names_.contains(workspace);
  }

 private:
  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;
  std::unordered_set<std::string> names_;
};

}  // namespace tollgate::billing
