// Memory for the fields of one head while it is written: from the stack, so that a field costs no
// allocation. Internal to common/http.
#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <type_traits>

namespace tollgate::http {

class HeadArena {
 public:
  HeadArena() = default;
  HeadArena(const HeadArena&) = delete;
  HeadArena& operator=(const HeadArena&) = delete;

  // What does not fit comes from the heap.
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

}  // namespace tollgate::http
