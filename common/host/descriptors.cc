#include "common/host/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <string>

#include "common/observability/log.h"

namespace tollgate::host {
namespace {

constexpr int64_t kLeastReserve = 256;
constexpr int64_t kReserveShare = 8;  // one eighth
constexpr int64_t kLeastConnections = 64;

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log::Warn("cannot raise the descriptor limit", {});
}

int64_t DescriptorLimit() {
  rlimit limit{};
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > rlim_t{kMost}) return kMost;
  return static_cast<int64_t>(limit.rlim_cur);
}

Result<ConnectionPlan> PlanConnections(int wanted, int64_t limit) {
  const int64_t room = limit - std::max(kLeastReserve, limit / kReserveShare);
  const std::string advice =
      "raise the limit of open files (ulimit -Hn, LimitNOFILE of systemd) or set max_connections";
  if (room < std::min<int64_t>(kLeastConnections, wanted)) {
    return Internal("only " + std::to_string(limit) + " file descriptors: " + advice);
  }
  if (wanted > room) {
    log::Warn("max_connections lowered: not enough file descriptors",
              {{"wanted", wanted}, {"used", room}, {"descriptors", limit}, {"advice", advice}});
  }
  return ConnectionPlan{static_cast<int>(std::min<int64_t>(wanted, room)), static_cast<int>(room)};
}

}  // namespace tollgate::host
