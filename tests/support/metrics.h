// What the processes of a cluster count, as /metrics shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/cluster.h"

namespace tollgate::test {

// The sum of a metric over all processes and labels. Empty: no process has it.
std::optional<double> SumOfMetric(Cluster& cluster, const std::string& name);

// Waits until every gauge of work is zero: requests, queues, memory of bodies, holds, leases.
// Returns "" or the gauges that are not, each with its value.
std::string WaitWithoutWork(Cluster& cluster, int64_t timeout_ms = 15'000);

}  // namespace tollgate::test
