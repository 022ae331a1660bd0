// What the contract is held against: the all-in-one process, the cluster over TCP, or what
// TOLLGATE_CONTRACT_URL (http://host:port) names; then TOLLGATE_FACTS holds what
// tests/support/facts.h describes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/json.h"

namespace tollgate::test {

struct Target {
  EngineSim engines[2];
  // Null for an address of somebody else's.
  std::unique_ptr<Cluster> cluster;
  std::string host = "127.0.0.1";
  int port = 0;
  Json facts;
  std::string failure;
};

// "url", or "allinone" and "tcp".
std::vector<std::string> TargetKinds();
// Started when it is first asked for, one of each kind for the whole binary; at its end the books
// must be right and everything must stop cleanly.
Target& TargetOf(const std::string& kind);

}  // namespace tollgate::test
