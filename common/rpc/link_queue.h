// The write queue of one side of a link: batches the frames of all its requests into messages. gRPC
// writes one message at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace tollgate {

// Message: LinkRequest or LinkResponse. Lives on one loop.
template <typename Message, typename Frame>
class LinkQueue {
 public:
  Frame& Add(uint64_t stream_id) {
    Frame& frame = frames_.emplace_back();
    frame.set_stream_id(stream_id);
    return frame;
  }

  // The next message to write; null while one is being written or if no frame waits. Not changed
  // before Written is called.
  const Message* Next() {
    if (writing_ || frames_.empty()) return nullptr;
    message_.Clear();
    for (size_t bytes = 0; !frames_.empty() && bytes < kMessageBytes; frames_.pop_front()) {
      bytes += frames_.front().ByteSizeLong();
      *message_.add_frames() = std::move(frames_.front());
    }
    writing_ = true;
    return &message_;
  }
  void Written() { writing_ = false; }
  bool writing() const { return writing_; }

  // Frames not yet in a message.
  const std::deque<Frame>& waiting() const { return frames_; }
  void Clear() { frames_.clear(); }

 private:
  // A message gets no more frames once it has this size.
  static constexpr size_t kMessageBytes = 1024 * 1024;

  std::deque<Frame> frames_;
  Message message_;
  bool writing_ = false;
};

}  // namespace tollgate
