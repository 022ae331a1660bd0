// 64 gateways, 32 routers and 16 ledger nodes in virtual time: crashes, fail-overs, slow disks and
// cut networks break no invariant of the ledger. TOLLGATE_SIM_SEED runs one seed.
// TOLLGATE_SIM_CLUSTERS sets the number of seeds (20 when not set), TOLLGATE_SIM_FIRST the first
// one (1).
#include "tests/simulation/cluster_simulation.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace tollgate::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

TEST(ClusterSimulation, KeepsTheInvariants) {
  const uint64_t only = FromEnvironment("TOLLGATE_SIM_SEED", 0);
  const uint64_t first = only != 0 ? only : FromEnvironment("TOLLGATE_SIM_FIRST", 1);
  const uint64_t runs = only != 0 ? 1 : FromEnvironment("TOLLGATE_SIM_CLUSTERS", 20);
  ClusterCounts all;
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    ClusterSimulation simulation(seed);
    ASSERT_TRUE(simulation.Run()) << "seed " << seed << ": " << simulation.why();
    all += simulation.counts();
  }
  const auto n = [](int64_t number) { return static_cast<long long>(number); };
  std::printf(
      "CLUSTER_SIMULATION | %llu | %lld | %lld, %lld, %lld, %lld, %lld | %lld | %lld | %lld, %lld "
      "| %lld, %lld, %lld, %lld | %lld | %lld | %lld, %lld, %lld, %lld |\n",
      static_cast<unsigned long long>(runs), n(all.requests), n(all.complete), n(all.refused),
      n(all.failed), n(all.left), n(all.unknown), n(all.moved), n(all.expired), n(all.operations),
      n(all.commits), n(all.crashes), n(all.failovers), n(all.cuts), n(all.slow_disks),
      n(all.lost_commits), n(all.top_ups), n(all.admitted), n(all.no_lease), n(all.recalled),
      n(all.lease_overrun));
  if (only != 0) return;
  // The runs must contain each of these events.
  for (const int64_t count :
       {all.complete, all.refused, all.failed, all.left, all.unknown, all.moved, all.expired,
        all.overrun, all.lost_commits, all.top_ups, all.admitted, all.no_lease}) {
    EXPECT_GT(count, 0);
  }
}

}  // namespace
}  // namespace tollgate::simulation
