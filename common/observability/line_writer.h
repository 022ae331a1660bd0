// Writes lines to a descriptor on a thread of its own: a reader that stops reading never blocks the
// threads that log. Lines that do not fit into the queue are dropped and counted.
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
    // Limit of queued bytes, including the batch being written.
    size_t max_queued_bytes = size_t{4} * 1024 * 1024;
    // Returns the line that replaces `dropped` lines; called on the writer's thread.
    std::function<std::string(size_t dropped)> dropped_line;
    // Called when lines are dropped, on any thread. Must be fast.
    std::function<void(size_t dropped)> on_dropped;
  };

  explicit LineWriter(Options options);
  ~LineWriter();  // as Stop(0)
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Queues one line, which ends with a line break. Never waits for the reader. Returns false if the
  // line was dropped.
  bool Put(std::string_view line);
  // Waits until all lines queued before are written. Returns false on a timeout.
  bool Flush(int timeout_ms);
  // Like Flush, then ends the thread. Later lines are dropped.
  bool Stop(int timeout_ms);
  // Flush for a signal handler: takes no lock and allocates nothing. Does nothing on the writer's
  // thread.
  void FlushInSignalHandler(int timeout_ms) noexcept;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the thread, which a stuck write may keep alive
  std::thread thread_;
};

}  // namespace tollgate::log
