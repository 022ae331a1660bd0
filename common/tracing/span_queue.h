// The finished spans that wait for the exporter: bounded in bytes, and whoever puts some never
// waits for whoever takes them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "common/tracing/span.h"

namespace tollgate::tracing {

class SpanQueue {
 public:
  explicit SpanQueue(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Takes all spans, or none when they do not fit: then false. Thread-safe.
  bool Put(std::vector<Span> spans);
  // Waits until so many spans are there, some have waited for so long, or Close; then takes at most
  // so many, which count as waiting until Forget. Empty: closed, or nothing has come.
  std::vector<Span> Take(size_t most, int64_t linger_ms);
  // The spans of the last Take are gone.
  void Forget();
  // Take waits no longer. What is there can still be taken; what is put from now on is refused.
  void Close();
  bool closed() const;
  // Bytes that wait.
  size_t bytes() const;
  // Spans that nobody has taken.
  size_t size() const;

 private:
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Span> spans_;
  size_t bytes_ = 0;
  size_t taken_bytes_ = 0;
  size_t wanted_ = 0;  // by the Take that waits
  bool closed_ = false;
};

}  // namespace tollgate::tracing
