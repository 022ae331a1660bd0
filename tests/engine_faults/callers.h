// Callers of every surface, streamed and not; some of them disconnect early. Each answer is checked
// as it arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine_faults/verdict.h"
#include "tests/support/cluster.h"

namespace tollgate::test {

// One call and its outcome.
struct FaultCall {
  Surface surface = Surface::kChat;
  bool streamed = false;
  std::string workspace;
  std::string tag;
  int64_t took_us = 0;
  int64_t longest_wait_us = 0;  // longest wait of a stream, for its head or its next bytes
  Verdict verdict;
  std::string bytes;  // beginning of a wrong answer
};

class Callers {
 public:
  static constexpr int kWorkers = 12;
  static constexpr int64_t kCredit = 1'000'000'000'000;
  // The models; see CatalogOf.
  static constexpr const char* kModels[] = {"sim/model", "sim/lone"};

  Callers(Cluster& cluster, int64_t seed);
  ~Callers();  // stops

  void Start();
  // Waits for the calls that run.
  void Stop();
  // Makes one call of every kind, all at once, while the engines work normally.
  void AskEverything();

  const std::vector<ApiKey>& customers() const { return customers_; }
  // Call after Stop.
  const std::deque<FaultCall>& calls() const { return calls_; }
  int64_t whole() const { return whole_; }

 private:
  FaultCall& Next();
  void Work(int64_t seed);
  Question Ask(std::mt19937& random, Surface surface, bool streamed, const char* model,
               const std::string& tag) const;
  // patience_ms: time until the caller disconnects; 0: never.
  void Run(FaultCall& call, const Question& question, const ApiKey& key, int64_t patience_ms,
           int64_t reads);

  Cluster& cluster_;
  const int64_t seed_;
  std::vector<ApiKey> customers_;
  std::mutex mutex_;
  std::deque<FaultCall> calls_;
  std::atomic<int64_t> whole_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::test
