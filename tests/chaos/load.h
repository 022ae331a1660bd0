// The load of the kill tests: callers of chat completions, streamed and whole, and top-ups at the
// same time. Records what each of them received.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cluster.h"

namespace tollgate::test {

// A number from the environment.
int64_t FromEnvironment(const char* name, int64_t otherwise);

// One call and what its caller received.
struct Call {
  std::string workspace;
  std::string tag;  // its x-request-id, and its name at the engine
  bool streamed = false;
  int64_t begun_us = 0;  // monotonic
  int64_t ended_us = 0;
  int64_t engine_us = 0;  // how long the engine takes for it
  int status = 0;         // 0: no response
  std::string error;
  bool complete = false;       // [DONE], or the whole body
  bool told_of_error = false;  // an error status, or an error event
  int64_t prompt_tokens = 0;   // usage, as reported to the caller
  int64_t completion_tokens = 0;
  int64_t seen_tokens = 0;  // of a stream
};

// A top-up, and whether its caller was told that it is booked. Each has an id of its own.
struct TopUp {
  std::string workspace;
  std::string id;
  int64_t nano_usd = 0;
  bool acknowledged = false;
};

class Load {
 public:
  static constexpr int kWorkers = 12;
  // Initial credit of a workspace; more than all calls can cost.
  static constexpr int64_t kCredit = 1'000'000'000'000;
  static constexpr const char* kInputPrice = "0.150101";
  static constexpr const char* kOutputPrice = "0.600307";
  // Cost in nano-USD by the prices above.
  static int64_t Cost(int64_t prompt_tokens, int64_t completion_tokens);

  // Creates the workspaces, fewer than callers, so that callers share wallets; tags begin with the
  // name. Calls use the keys in turn.
  Load(Cluster& cluster, const std::string& name, int keys_of_a_workspace = 1, int workspaces = 6);
  ~Load();  // stops
  void Start();
  // Waits for the calls that run.
  void Stop();

  // Makes one short call in addition to the others, checked like them. Returns whether it got 200.
  bool Probe();
  int64_t complete() const { return complete_; }
  const std::vector<ApiKey>& customers() const { return customers_; }
  // Call after Stop.
  const std::deque<Call>& calls() const { return calls_; }
  const std::vector<TopUp>& top_ups() const { return top_ups_; }

 private:
  void Work();
  void GiveCredit();
  // The next call; no other thread touches it.
  Call& Next(int64_t& index);
  void Run(Call& call, const ApiKey& key, int delay_ms, int tokens);
  void RunStreamed(Call& call, const ApiKey& key, const std::string& body);
  void RunWhole(Call& call, const ApiKey& key, const std::string& body);

  Cluster& cluster_;
  std::string name_;
  std::vector<ApiKey> customers_;  // one key of each workspace
  std::vector<ApiKey> keys_;
  std::mutex mutex_;
  std::deque<Call> calls_;
  std::vector<TopUp> top_ups_;
  std::atomic<int64_t> complete_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::test
