// The load of the kill tests: callers of chat completions, streamed and whole, and top-ups beside
// them. It keeps what each of them was told.
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

// One call and what its caller was told.
struct Call {
  std::string workspace;
  std::string tag;  // its x-request-id, and its name at the engine
  bool streamed = false;
  int64_t begun_us = 0;  // monotonic
  int64_t ended_us = 0;
  int64_t engine_us = 0;  // how long the engine takes for it
  int status = 0;         // 0: no answer
  std::string error;
  bool complete = false;       // [DONE], or the whole body
  bool told_of_error = false;  // an error status, or an error event
  int64_t prompt_tokens = 0;   // usage, as told
  int64_t completion_tokens = 0;
  int64_t seen_tokens = 0;  // of a stream
};

// Credit, and whether its caller was told that it is booked. Each has an id of its own.
struct TopUp {
  std::string workspace;
  std::string id;
  int64_t nano_usd = 0;
  bool acknowledged = false;
};

class Load {
 public:
  static constexpr int kWorkers = 12;
  // Credit of a workspace when it begins; more than all calls can cost.
  static constexpr int64_t kCredit = 1'000'000'000'000;
  static constexpr const char* kInputPrice = "0.150101";
  static constexpr const char* kOutputPrice = "0.600307";
  // By these prices, in nano-USD.
  static int64_t Cost(int64_t prompt_tokens, int64_t completion_tokens);

  // Makes the workspaces, fewer than callers, so that these meet in one wallet; tags begin with the
  // name. Each call has the next of the keys.
  Load(Cluster& cluster, const std::string& name, int keys_of_a_workspace = 1, int workspaces = 6);
  ~Load();  // stops
  void Start();
  // Waits for the calls that run.
  void Stop();

  // One short call beside the others, checked like them. Whether it was answered with 200.
  bool Probe();
  int64_t complete() const { return complete_; }
  const std::vector<ApiKey>& customers() const { return customers_; }
  // After Stop.
  const std::deque<Call>& calls() const { return calls_; }
  const std::vector<TopUp>& top_ups() const { return top_ups_; }

 private:
  void Work();
  void GiveCredit();
  // The next call, which no other thread touches.
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
