// What one answer of an engine may hold, in bytes, in this process and in a gateway that collects
// it (H75).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tollgate::inference_router {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t bytes) : left_(bytes) {}

  // False: the answer is above its bound. bytes: at most what one event may have.
  bool Take(size_t bytes) {
    left_ -= static_cast<int64_t>(bytes);
    return left_ >= 0;
  }
  bool exceeded() const { return left_ < 0; }

 private:
  int64_t left_;
};

}  // namespace tollgate::inference_router
