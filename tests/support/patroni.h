// A highly available PostgreSQL for tests, from Debian's packages: two nodes that Patroni manages,
// each with its PostgreSQL in a process namespace of its own, which ends at once as a lost machine
// does, and three etcd. The standby is synchronous: what is acknowledged is on both.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/port.h"
#include "tests/support/process.h"

namespace tollgate::test {

class TestPatroni {
 public:
  static constexpr int kNodes = 2;
  // How long etcd lets a primary lead that does not report.
  static constexpr int kTtlSeconds = 20;

  // Why there can be none: Patroni or etcd is not installed, or no right to make namespaces (root).
  // Empty: there can.
  static std::string WhyNot();
  // Waits until both nodes run and the standby is synchronous. Null when they do not; then why is
  // set.
  static std::unique_ptr<TestPatroni> Start(std::string& why);
  ~TestPatroni();
  TestPatroni(const TestPatroni&) = delete;
  TestPatroni& operator=(const TestPatroni&) = delete;

  // Creates an empty database and returns the URL that names both servers.
  std::string MakeDatabase(const std::string& name);

  // The node that leads; -1: none does.
  int Primary();
  // Waits until one node leads and the other is its synchronous standby.
  bool WaitHealthy(int64_t timeout_ms = 90'000);
  // A planned change of the primary. Returns when Patroni has done it; false: it refused.
  bool SwitchOver();
  // Ends a node and all of its processes (SIGKILL), and starts it again on its data.
  void Kill(int node);
  bool Restart(int node);
  std::string Logs() const;

 private:
  struct Node {
    std::string folder;
    TestPort postgres, rest;
    std::unique_ptr<Process> process;
  };
  TestPatroni() = default;
  bool StartEtcd();
  void Configure(int node);
  // The status of its REST API at a path; 0: no answer.
  int Status(int node, const std::string& path);

  TempDir dir_;
  std::string bin_;  // of PostgreSQL
  std::string etcd_hosts_;
  std::array<TestPort, 3> etcd_clients_, etcd_peers_;
  std::array<std::unique_ptr<Process>, 3> etcd_;
  std::array<Node, kNodes> nodes_;
};

}  // namespace tollgate::test
