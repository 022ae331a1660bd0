// Shared by the fuzz harnesses. Each harness is one file with the function that libFuzzer calls;
// its invariants are FUZZ_CHECKs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#define FUZZ_CHECK(condition)                                                            \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

namespace tollgate::fuzz {

inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Sizes for splitting an input into pieces, deterministic for each input.
class Cuts {
 public:
  explicit Cuts(std::string_view input) {
    for (const char c : input) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  size_t Next(size_t most) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    const size_t size = 1 + (state_ >> 33) % 12;
    return size < most ? size : most;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace tollgate::fuzz
