// The fields of one head while it is written. Their memory is on the stack, so that a field costs
// no allocation. Internal to common/http.
#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/fields.hpp>
#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/http/head_guard.h"

namespace tollgate::http {

class HeadArena {
 public:
  HeadArena() = default;
  HeadArena(const HeadArena&) = delete;
  HeadArena& operator=(const HeadArena&) = delete;

  // Falls back to the heap when the arena is full.
  void* Allocate(size_t bytes) {
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (size > sizeof bytes_ - used_) return ::operator new(bytes);
    void* memory = bytes_ + used_;
    used_ += size;
    return memory;
  }
  void Free(void* memory) {
    if (!Owns(memory)) ::operator delete(memory);
  }

 private:
  static constexpr size_t kAlignment = alignof(std::max_align_t);
  bool Owns(const void* memory) const {
    const std::less<const void*> before;
    return !before(memory, bytes_) && before(memory, bytes_ + sizeof bytes_);
  }

  size_t used_ = 0;
  alignas(kAlignment) char bytes_[4096];
};

// The allocator of Beast's fields. The arena must outlive them.
template <typename T>
class HeadAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  explicit HeadAllocator(HeadArena& arena) : arena_(&arena) {}
  template <typename Other>
  HeadAllocator(const HeadAllocator<Other>& other) : arena_(other.arena_) {}

  T* allocate(size_t count) { return static_cast<T*>(arena_->Allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t) { arena_->Free(memory); }
  template <typename Other>
  bool operator==(const HeadAllocator<Other>& other) const {
    return arena_ == other.arena_;
  }

 private:
  template <typename Other>
  friend class HeadAllocator;
  HeadArena* arena_;
};

using HeadFields = boost::beast::http::basic_fields<HeadAllocator<char>>;

// Line ends in the value become spaces, so that a value cannot inject a header. Returns false if
// Beast cannot hold the field (kMaxFieldBytes).
inline bool AddField(HeadFields& fields, std::string_view name, std::string_view value) {
  constexpr std::string_view kForbidden("\r\n\0", 3);
  if (name.size() > kMaxFieldBytes || value.size() > kMaxFieldBytes) return false;
  std::string clean;
  if (value.find_first_of(kForbidden) != std::string_view::npos) {
    clean = value;
    for (char& c : clean) c = kForbidden.find(c) == std::string_view::npos ? c : ' ';
    value = clean;
  }
  // Only for writing: Beast need not recognise the field.
  fields.insert(boost::beast::http::field::unknown, name, value);
  return true;
}

// Appends the bytes that Beast produces.
template <typename Buffers>
void AppendBuffers(std::string& out, const Buffers& buffers) {
  for (const auto bytes : boost::beast::buffers_range_ref(buffers)) {
    out.append(static_cast<const char*>(bytes.data()), bytes.size());
  }
}

}  // namespace tollgate::http
