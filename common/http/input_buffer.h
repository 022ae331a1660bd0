// Bytes read from a socket and not yet understood. Internal to common/http.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace tollgate::http {

// Bytes are added at the end, even while a read of the socket is under way, and taken from the
// front; they move only in MakeRoom.
class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  char* data() { return data_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  char* tail() { return data_.get() + end_; }
  void Added(size_t count) { end_ += count; }
  void Consume(size_t count) { begin_ += count; }
  // Makes room for this many more bytes if that keeps within limit bytes in all; returns the room
  // there is, 0 when it is full. Not while a read is under way.
  size_t MakeRoom(size_t wanted, size_t limit);

 private:
  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tollgate::http
