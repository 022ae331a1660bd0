// A highly available PostgreSQL for tests, from Debian's packages: three etcd, and two nodes
// managed by Patroni, each with its PostgreSQL in its own process namespace, which ends at once
// like a lost machine. The standby is synchronous: acknowledged commits are on both nodes.
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
  // Time after which etcd drops a primary that does not report.
  static constexpr int kTtlSeconds = 20;

  // Why it is not available: Patroni or etcd is not installed, or no right to make namespaces
  // (root). Empty: it is available.
  static std::string WhyNot();
  // Waits until both nodes run and the standby is synchronous. Returns nullptr, and sets why, when
  // they do not.
  static std::unique_ptr<TestPatroni> Start(std::string& why);
  ~TestPatroni();
  TestPatroni(const TestPatroni&) = delete;
  TestPatroni& operator=(const TestPatroni&) = delete;

  // Creates an empty database and returns the URL that names both servers.
  std::string MakeDatabase(const std::string& name);

  // The primary node; -1: none.
  int Primary();
  // Waits until one node is primary and the other is its synchronous standby.
  bool WaitHealthy(int64_t timeout_ms = 90'000);
  // Changes the primary as planned. Returns when Patroni has done it; false: Patroni refused.
  bool SwitchOver();
  // Kills a node and all of its processes (SIGKILL), and starts it again on its data.
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
  // Status of its REST API at a path; 0: no response.
  int Status(int node, const std::string& path);

  TempDir dir_;
  std::string bin_;  // of PostgreSQL
  std::string etcd_hosts_;
  std::array<TestPort, 3> etcd_clients_, etcd_peers_;
  std::array<std::unique_ptr<Process>, 3> etcd_;
  std::array<Node, kNodes> nodes_;
};

}  // namespace tollgate::test
