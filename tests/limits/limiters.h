// Real ratelimit processes and clients of them: each client is a gateway's, on its own event loop,
// over gRPC to all processes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/clients/factory.h"
#include "common/rpc/channel.h"
#include "common/runtime/loop.h"
#include "tests/support/process.h"

namespace tollgate::test {

class Limiters {
 public:
  // settings: lines of the section ratelimit, the same for all processes.
  Limiters(int processes, int clients, const std::string& settings);
  ~Limiters();
  // Returns false if a process does not serve.
  bool Start();
  Process& process(int index) { return *processes_[static_cast<size_t>(index)]; }

  struct Load {
    ratelimit::v1::SubjectLimits limits;
    int callers = 100;      // callers of all clients together
    int64_t pause_ms = 10;  // between two requests of one caller
    int64_t hold_ms = 0;    // how long a granted request runs
  };
  struct Count {
    int64_t granted = 0;
    int64_t refused = 0;
    int64_t failed = 0;  // the limiter was unreachable
    int64_t local = 0;   // granted by a local share
    int64_t most_running = 0;
  };
  // Starts the load in the background; Stop returns what was counted. Taken may be read meanwhile.
  void StartLoad(const Load& load);
  Count Taken() const;
  // Highest number of concurrent requests since the last call; resets the count.
  int64_t TakeMostRunning();
  Count StopLoad();

 private:
  struct Shared;
  static Task<void> Call(Loop& loop, RateLimitClient& client, std::shared_ptr<Shared> shared,
                         int64_t first_ms);
  static Task<void> RenewForEver(Loop& loop, RateLimitClient& client,
                                 std::shared_ptr<Shared> shared, size_t index);

  TempDir folder_;
  const int client_count_;
  std::vector<std::unique_ptr<Process>> processes_;
  rpc::ChannelSource channels_;
  DirectServices direct_;
  std::unique_ptr<ClientFactory> factory_;
  std::unique_ptr<LoopPool> loops_;
  std::vector<std::unique_ptr<RateLimitClient>> clients_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tollgate::test
