// The queue of finished spans for the exporter. It is bounded in bytes, and producers never wait
// for the consumer.
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

  // Takes all spans; returns false and takes none if they do not fit. Thread-safe.
  bool Put(std::vector<Span> spans);
  // Waits for `most` spans, or until the first one has waited for linger_ms, or for Close. Then
  // takes at most `most` spans, whose bytes count until Forget. Returns an empty list if closed or
  // if nothing came.
  std::vector<Span> Take(size_t most, int64_t linger_ms);
  // Releases the bytes of the last Take's spans.
  void Forget();
  // Ends the wait of Take. Queued spans can still be taken; Put refuses new ones.
  void Close();
  bool closed() const;
  // Bytes of waiting spans.
  size_t bytes() const;
  // Number of spans not yet taken.
  size_t size() const;

 private:
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Span> spans_;
  size_t bytes_ = 0;
  size_t taken_bytes_ = 0;
  size_t wanted_ = 0;  // by the waiting Take
  bool closed_ = false;
};

}  // namespace tollgate::tracing
