// Real Redis servers for tests, from Debian's package: single, replicas with Sentinels, or a
// Cluster. Everything is killed with the process that started
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/port.h"
#include "tests/support/process.h"

namespace tollgate::testing {

class TestRedis {
 public:
  struct Options {
    // Lines of the configuration, for example "replicaof 127.0.0.1 7000".
    std::vector<std::string> lines;
    bool sentinel = false;
    bool cluster = false;
  };
  // Null if it cannot be started; the reason is on standard error.
  static std::unique_ptr<TestRedis> Start(const Options& options);
  static std::unique_ptr<TestRedis> Start() { return Start(Options()); }

  int port() const { return port_.number(); }
  std::string address() const { return port_.address(); }
  std::string url() const { return "redis://" + address(); }
  test::Process& process() { return *process_; }
  // Restarts it on the same port and folder after a kill.
  bool Run();
  // Runs one command; returns the reply as text: nested lists are joined by spaces, errors start
  // with "ERROR ".
  std::string Command(const std::vector<std::string>& words, int timeout_ms = 2000) const;

 private:
  TestRedis() = default;
  test::TempDir folder_;
  test::TestPort port_, cluster_port_;
  bool sentinel_ = false;
  std::unique_ptr<test::Process> process_;
};

// A master with a replica, and three sentinels that monitor it as "limits".
struct TestSentinels {
  std::unique_ptr<TestRedis> master;
  std::unique_ptr<TestRedis> replica;
  std::vector<std::unique_ptr<TestRedis>> sentinels;
  std::string url() const;
  // Returns nullptr if a part does not start.
  static std::unique_ptr<TestSentinels> Start();
  // The port of the master that the sentinels name now.
  int MasterPort() const;
};

// Three masters with a replica each; fails over within about two seconds.
struct TestRedisCluster {
  std::vector<std::unique_ptr<TestRedis>> nodes;
  std::string url() const;
  static std::unique_ptr<TestRedisCluster> Start();
  // The master of the slot; nullptr if no node is.
  TestRedis* MasterOf(int slot) const;
};

}  // namespace tollgate::testing
