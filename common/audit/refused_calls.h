// Calls that were refused since the caller may not make them, on their way into the audit log. To
// note one costs a map look-up: a refusal never waits for a database. A flood cannot fill the log:
// of one caller, method and workspace there are two entries a minute at most, one at once and one
// with the number of those that followed, and of all callers kMaxRefusedEntries a minute, besides
// one that counts the rest.
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
  std::string workspace;  // in whose log it shall be; empty for none
  std::string reason;     // UPPER_SNAKE_CASE, or a sentence
};

// Thread-safe.
class RefusedCalls {
 public:
  // That of the process. Where nobody writes an audit log, nothing is kept.
  static RefusedCalls& OfProcess();

  // at_us: time of the refusal, Unix.
  void Note(RefusedCall call, int64_t at_us);

  struct Summary {
    RefusedCall first;  // an empty method: calls of several callers
    int64_t at_us = 0;  // of the first one
    int64_t count = 0;
  };
  // What is to be written now; now_us is monotonic. all: also what is not due yet, at the end.
  std::vector<Summary> Take(int64_t now_us, bool all = false);

  // While there is a writer, calls are kept.
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
  int64_t minute_us_ = 0;  // when the count of entries began
  int entries_ = 0;
  bool others_taken_ = false;  // in this minute
};

}  // namespace tollgate::audit
