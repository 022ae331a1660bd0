// Refused calls (the caller lacks the right), on their way to the audit log. Noting one costs a map
// look-up; a refusal never waits for a database. A flood cannot fill the log. Each combination of
// caller, method and workspace gets at most two entries a minute: one at once, and one with the
// number of further refusals. All callers together get at most kMaxRefusedEntries a minute, plus
// one entry that counts the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tollgate::audit {

inline constexpr int kMaxRefusedEntries = 100;

struct RefusedCall {
  std::string actor;      // as in the audit log
  std::string address;    // of the client; may be empty
  std::string method;     // "tollgate.admin.v1.KeyService/CreateKey"
  std::string workspace;  // whose log gets the entry; empty for none
  std::string reason;     // UPPER_SNAKE_CASE, or a sentence
};

// Thread-safe.
class RefusedCalls {
 public:
  // The instance of the process. Calls are dropped while the process has no writer.
  static RefusedCalls& OfProcess();

  // at_us: time of the refusal, Unix.
  void Note(RefusedCall call, int64_t at_us);

  struct Summary {
    RefusedCall first;  // empty method: calls of several callers
    int64_t at_us = 0;  // time of the first call
    int64_t count = 0;
  };
  // Returns the entries that are due; now_us is monotonic. all: also those not due yet, at
  // shutdown.
  std::vector<Summary> Take(int64_t now_us, bool all = false);

  // Calls are kept while at least one writer is registered.
  void AddWriter() { ++writers_; }
  void RemoveWriter() { --writers_; }

 private:
  struct Slot {
    Summary waiting;
    int64_t taken_us = 0;
    bool taken = false;
  };
  std::atomic<int> writers_{0};
  std::mutex mutex_;
  std::map<std::string, Slot> slots_;  // by actor, method and workspace
  Summary others_;
  int64_t minute_us_ = 0;  // start of the current minute
  int entries_ = 0;
  bool others_taken_ = false;  // whether the current minute's entry for others_ was taken
};

}  // namespace tollgate::audit
