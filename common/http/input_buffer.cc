#include "common/http/input_buffer.h"

#include <algorithm>
#include <cstring>

namespace tollgate::http {
namespace {

constexpr size_t kFirstCapacity = 4 * 1024;

}  // namespace

size_t InputBuffer::MakeRoom(size_t wanted, size_t limit) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (capacity_ - end_ >= wanted) return capacity_ - end_;
  if (begin_ > 0) {
    std::memmove(data_.get(), data(), size());
    end_ -= begin_;
    begin_ = 0;
    if (capacity_ - end_ >= wanted) return capacity_ - end_;
  }
  size_t capacity = std::min(std::max({capacity_ * 2, end_ + wanted, kFirstCapacity}), limit);
  if (capacity > capacity_) {
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > 0) std::memcpy(data.get(), data_.get(), end_);
    data_ = std::move(data);
    capacity_ = capacity;
  }
  return capacity_ - end_;
}

void InputBuffer::Shrink() {
  if (begin_ == end_ && capacity_ > kFirstCapacity) *this = InputBuffer();
}

}  // namespace tollgate::http
