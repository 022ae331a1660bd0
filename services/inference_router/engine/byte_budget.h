// Limit on the bytes of one engine answer in this process, and in a gateway that collects it (H75).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tollgate::inference_router {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t bytes) : left_(bytes) {}

  // Returns false if the answer exceeds its limit. bytes: at most the size of one event.
  bool Take(size_t bytes) {
    left_ -= static_cast<int64_t>(bytes);
    return left_ >= 0;
  }
  bool exceeded() const { return left_ < 0; }

 private:
  int64_t left_;
};

}  // namespace tollgate::inference_router
