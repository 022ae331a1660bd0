// The file descriptors of the process.
#pragma once

#include <cstdint>

#include "common/error/error.h"

namespace tollgate::host {

// Raises the soft limit of open descriptors to the hard limit.
void RaiseDescriptorLimit();
// The soft limit.
int64_t DescriptorLimit();

struct ConnectionPlan {
  int max_connections = 0;
  // Connections with this descriptor or a higher one are not taken (http::ServerOptions).
  int max_descriptor = 0;
};

// How many of the wanted connections fit into so many descriptors beside the reserve for everything
// else: ledger, outbox, logs, gRPC, engines. The reserve is an eighth of the limit, at least 256.
// Logs a warning when fewer than wanted fit; fails when hardly any do.
Result<ConnectionPlan> PlanConnections(int wanted, int64_t limit);

}  // namespace tollgate::host
