// Write queue of the router's side of a link: batches the frames of all its requests into messages
// of bounded size. gRPC writes one message at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "common/observability/coarse_gauge.h"
#include "common/rpc/link_protocol.h"

namespace tollgate {

// Message: LinkResponse. Lives on one loop.
template <typename Message, typename Frame>
class LinkQueue {
 public:
  explicit LinkQueue(prometheus::Gauge& gauge) : queued_(gauge) {}

  // bytes: size of the content that the caller puts into the frame.
  Frame& Add(uint64_t stream_id, int64_t bytes) {
    Entry& entry = frames_.emplace_back();
    entry.bytes = bytes;
    entry.frame.set_stream_id(stream_id);
    queued_.Add(bytes);
    return entry.frame;
  }

  // The next message to write; null while one is being written or if no frame waits. The message
  // does not change until Written is called.
  const Message* Next() {
    if (writing_ || frames_.empty()) return nullptr;
    message_.Clear();
    for (; !frames_.empty() && writing_bytes_ < kMessageBytes; frames_.pop_front()) {
      writing_bytes_ += frames_.front().bytes;
      *message_.add_frames() = std::move(frames_.front().frame);
    }
    writing_ = true;
    return &message_;
  }
  void Written() {
    writing_ = false;
    queued_.Add(-std::exchange(writing_bytes_, 0));
  }
  bool writing() const { return writing_; }

  // Bytes of frames that wait or are being written.
  int64_t queued_bytes() const { return queued_.bytes(); }
  void Clear() {
    frames_.clear();
    queued_.Add(writing_bytes_ - queued_.bytes());
  }

 private:
  static constexpr int64_t kMessageBytes = kLinkMessageBytes;
  struct Entry {
    Frame frame;
    int64_t bytes = 0;
  };

  std::deque<Entry> frames_;
  Message message_;
  metrics::CoarseGauge queued_;
  int64_t writing_bytes_ = 0;
  bool writing_ = false;
};

}  // namespace tollgate
