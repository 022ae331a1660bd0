// Writes lines to a descriptor on a thread of its own: a reader that stops reading never holds up
// the threads that log. Lines that find the queue full are dropped and counted.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace tollgate::log {

class LineWriter {
 public:
  struct Options {
    int fd = 2;
    // Most bytes that wait, those that are being written included.
    size_t max_queued_bytes = size_t{4} * 1024 * 1024;
    // The line that stands in for so many dropped lines; called on the writer's thread.
    std::function<std::string(size_t dropped)> dropped_line;
    // Called for dropped lines, on any thread. Must be fast.
    std::function<void(size_t dropped)> on_dropped;
  };

  explicit LineWriter(Options options);
  ~LineWriter();  // as Stop(0)
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Takes one line with its line break. Never waits for the reader. False: dropped.
  bool Put(std::string_view line);
  // Waits until every line that was put before is written. False: not within the time.
  bool Flush(int timeout_ms);
  // The same, then ends the thread. Lines that are put afterwards are dropped.
  bool Stop(int timeout_ms);
  // Flush for a signal handler: takes no lock and no memory. Does nothing on the writer's thread.
  void FlushInSignalHandler(int timeout_ms) noexcept;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the thread, which a stuck write may keep alive
  std::thread thread_;
};

}  // namespace tollgate::log
