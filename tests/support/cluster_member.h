// One process of a Cluster.
#pragma once

#include "tests/support/cluster.h"
#include "tests/support/port.h"

namespace tollgate::test {

struct Cluster::Member {
  std::string name;
  std::string binary;
  bool has_grpc = false;
  bool has_admin_grpc = false;
  std::unique_ptr<Process> process;
  // Ports, kept across restarts.
  TestPort admin_port, grpc_port, admin_grpc_port;
  // Bound addresses; empty before the first start.
  std::string admin_address;
  std::string grpc_address;
  std::string admin_grpc_address;
  std::string http_address;
  std::string dashboard_address;
};

// "…:8080" → 8080; 0 when there is none.
int PortOf(const std::string& address);

}  // namespace tollgate::test
