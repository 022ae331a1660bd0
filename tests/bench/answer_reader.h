// Reads one HTTP response incrementally, counts the events of a stream and records their times.
// Visits every byte once and buffers only a few.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/bench/load.h"

namespace tollgate::bench {

class AnswerReader {
 public:
  enum class State { kMore, kDone, kBroken };
  void Start(int64_t due_us);
  // Consumes the next bytes. `counts`: the current time is within the measurement window.
  State Take(std::string_view data, int64_t now_us, bool counts, LoadReport& report);
  bool ok() const { return status_ == 200 && (!stream_ || finished_); }
  int status() const { return status_; }
  int64_t due_us() const { return due_us_; }
  const std::string& head() const { return head_; }

 private:
  bool ParseHead();
  void Body(std::string_view data, int64_t now_us, bool counts, LoadReport& report);
  State Chunked(std::string_view data, int64_t now_us, bool counts, LoadReport& report);

  enum class Part { kHead, kSized, kSize, kData, kDataEnd, kTrailer };
  Part part_ = Part::kHead;
  std::string head_;
  std::string line_;   // current chunk size line
  std::string first_;  // body bytes before the first token
  std::string tail_;   // last bytes of the body, to find [DONE]
  int64_t rest_ = 0;
  int64_t due_us_ = 0;
  int64_t last_event_us_ = 0;
  int status_ = 0;
  bool stream_ = false;
  bool finished_ = false;
  bool first_seen_ = false;
  bool after_newline_ = false;
};

}  // namespace tollgate::bench
