// The system under test: the all-in-one process, the cluster over TCP, or the address in
// TOLLGATE_CONTRACT_URL (http://host:port); then TOLLGATE_FACTS holds the JSON that
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
  // Null for an external address.
  std::unique_ptr<Cluster> cluster;
  std::string host = "127.0.0.1";
  int port = 0;
  Json facts;
  std::string failure;
};

// "url", or "allinone" and "tcp".
std::vector<std::string> TargetKinds();
// Started at first use, one of each kind for the whole binary; at exit the ledger must verify and
// every process must stop cleanly.
Target& TargetOf(const std::string& kind);

}  // namespace tollgate::test
