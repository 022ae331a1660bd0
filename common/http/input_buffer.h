// A buffer of bytes that were read from a socket and are not yet parsed. Internal to common/http.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace tollgate::http {

// Bytes are added at the end and consumed from the front. Consuming is allowed while the socket is
// read into the end: only MakeRoom moves bytes.
class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  char* data() { return data_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  char* tail() { return data_.get() + end_; }
  void Added(size_t count) { end_ += count; }
  void Consume(size_t count) { begin_ += count; }
  // Makes room for `wanted` more bytes, within a capacity of `limit` bytes. Returns the available
  // room; 0: full. Not while a read is in progress.
  size_t MakeRoom(size_t wanted, size_t limit);
  // Releases large memory if the buffer is empty. Not while a read is in progress.
  void Shrink();

 private:
  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tollgate::http
