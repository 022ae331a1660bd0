// The file descriptors of the process.
#pragma once

#include <cstdint>

#include "common/error/error.h"

namespace tollgate::host {

// Raises the soft limit of open descriptors to the hard limit.
void RaiseDescriptorLimit();
// Returns the soft limit.
int64_t DescriptorLimit();

struct ConnectionPlan {
  int max_connections = 0;
  // Connections whose descriptor is this or higher are refused (http::ServerOptions).
  int max_descriptor = 0;
};

// Returns how many of the wanted connections fit into this descriptor limit, after a reserve for
// everything else: ledger, outbox, logs, gRPC, engines. The reserve is an eighth of the limit, at
// least 256. Logs a warning if fewer than wanted fit; fails if almost none fit.
Result<ConnectionPlan> PlanConnections(int wanted, int64_t limit);

}  // namespace tollgate::host
