// Load on a ledger without RPC: pairs of authorize and settle through group commit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "services/billing/commit/ledger_service.h"
#include "tests/bench/histogram.h"

namespace tollgate::bench {

constexpr int kKeysOfWorkspace = 5;

struct LedgerMeasured {
  int64_t pairs = 0;
  double seconds = 0;
  int64_t refused = 0;
  Histogram authorize, settle;
  double pairs_per_second() const { return static_cast<double>(pairs) / seconds; }
};

// One run of concurrent calls; each is over when its settle has been answered.
class LedgerLoad {
 public:
  // Uses the workspaces bench-0, bench-1, … in turn.
  LedgerLoad(billing::LedgerService& ledger, int workspaces)
      : ledger_(ledger), workspaces_(static_cast<uint64_t>(workspaces)) {}

  // Closed loop: each caller starts its next pair when the last one is settled.
  LedgerMeasured Closed(int callers, double seconds);
  // Steady rate, independent of responses. Latency counts from when a request was due.
  LedgerMeasured Paced(int64_t rate, double seconds);

 private:
  void Begin(int64_t due_us);
  void Refused();
  void End();
  LedgerMeasured Finish(int64_t begin_us);

  struct Times {
    void Add(std::mutex& mutex, int64_t us) {
      const std::lock_guard lock(mutex);
      values.Add(us);
    }
    Histogram values;
  };

  billing::LedgerService& ledger_;
  const uint64_t workspaces_;
  bool closed_ = false;
  int64_t end_us_ = 0;
  std::atomic<int64_t> running_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  Times authorize_, settle_;
};

// Gives each of the workspaces bench-0, bench-1, … credit; false, with a message, when it is
// refused.
bool AddCredit(billing::LedgerService& ledger, int workspaces);

}  // namespace tollgate::bench
