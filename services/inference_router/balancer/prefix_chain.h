// The prefixes of a prompt as a chain of hashes. Two prompts with the same seed have the same hash
// at a point if and only if (except by chance) their bytes up to the point are equal. Engines cache
// what they have computed for a prompt, for the next prompt with the same prefix (ADR 0029).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tollgate::inference_router {

// A keyed hash, for tables in memory only.
uint64_t HashBytes(uint64_t seed, std::string_view bytes);

// The part of an engine request's members (inference.proto) that starts with the prompt. Members
// before it, such as a seed, may differ for the same prompt.
std::string_view PromptBytes(std::string_view members);

class PrefixChain {
 public:
  struct Point {
    uint64_t hash = 0;
    int64_t bytes = 0;  // from the start of the prompt
  };
  // Points are 512 bytes apart at first; later the distance grows by an eighth each time. Bytes
  // after kMostBytes are ignored.
  static constexpr size_t kFirstBytes = 512;
  static constexpr size_t kMostBytes = 1 << 20;
  static constexpr size_t kMostPoints = 64;

  PrefixChain() = default;
  // Prompts with different seeds have no hashes in common.
  PrefixChain(uint64_t seed, std::string_view prompt);

  // The points, shortest prefix first.
  std::span<const Point> points() const { return {points_.data(), size_}; }
  // Bytes of the whole prompt.
  int64_t bytes() const { return bytes_; }

 private:
  std::array<Point, kMostPoints> points_;
  size_t size_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace tollgate::inference_router
