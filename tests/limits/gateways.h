// Whole gateways in front of several ratelimit processes on one Redis: a cluster of real processes,
// and callers over HTTP, each with a connection of its own to one of the gateways.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {

class Gateways {
 public:
  static constexpr int kGateways = 4;
  static constexpr int kLimiters = 3;

  // settings: lines of the section ratelimit, such as "redis_url: …", the same for all processes.
  explicit Gateways(std::vector<std::string> settings);
  ~Gateways();
  // Returns "" or why the cluster does not run.
  std::string Start();

  struct Load {
    Limits limits;          // limits of the workspace, which is new
    int callers = 20;       // callers of all gateways together
    int64_t pause_ms = 10;  // between two requests of one caller
    int64_t run_ms = 0;     // how long the engine works on a request
  };
  struct Count {
    int64_t granted = 0;
    int64_t refused = 0;        // responses with 429
    int64_t least_refused = 0;  // refusals of the gateway that refused the fewest
    int64_t failed = 0;         // any other failure
    // Decisions by a local share, of ratelimit processes and of gateways.
    int64_t local = 0;
    double seconds = 0;  // from before the first request until after the last one
    // Highest number of concurrent requests of this load at the engine.
    int64_t most_running = 0;
    std::string running;  // these requests, for the text of a failure
    std::string failure;  // one of those that failed
  };
  // Highest number of concurrent requests of this or the last load at the engine within this
  // period, and which requests they were.
  std::pair<int64_t, std::string> MostRunning(int64_t from_us, int64_t until_us);
  // Starts the load in the background. Taken may be called meanwhile, without most_running.
  void StartLoad(const Load& load);
  Count Taken();
  Count StopLoad();
  // Kills all ratelimit processes (SIGKILL).
  void KillLimiters();
  // Returns "" or why they do not run.
  std::string RestartLimiters();
  // Stops all processes. Returns "" or what has crashed.
  std::string Stop() { return cluster_->StopOrderly(); }
  std::string Logs() { return cluster_->Logs(); }

 private:
  void Call(int number);
  int64_t LocalDecisions();

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  Load load_;
  ApiKey key_;
  std::vector<std::thread> callers_;
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> granted_{0}, failed_{0};
  std::array<std::atomic<int64_t>, kGateways> refused_{};
  int64_t local_before_ = 0, from_us_ = 0;
  std::mutex mutex_;
  std::string failure_;  // guarded by the mutex
};

}  // namespace tollgate::test
