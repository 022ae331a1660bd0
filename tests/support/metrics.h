// Counts of the processes of a cluster, from /metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/cluster.h"

namespace tollgate::test {

// Sum of a metric over all processes and labels. nullopt: no process has it.
std::optional<double> SumOfMetric(Cluster& cluster, const std::string& name);

// Waits until every gauge of work is zero: requests, queues, memory of bodies, holds, slots.
// Returns "" or the gauges that are not zero, with their values.
std::string WaitWithoutWork(Cluster& cluster, int64_t timeout_ms = 15'000);

}  // namespace tollgate::test
