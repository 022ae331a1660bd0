// The beginnings of a prompt as a chain of hashes: two prompts of one seed have the same hash at a
// point if and only if (but for chance) they have the same bytes up to there. Engines keep what
// they have computed of a prompt for the next one that begins alike (ADR 0029).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tollgate::inference_router {

// A keyed hash, for tables in memory only.
uint64_t HashBytes(uint64_t seed, std::string_view bytes);

// Where the prompt begins in the members of an engine's request (inference.proto): members before
// it, such as a seed, may differ while the prompt is the same.
std::string_view PromptBytes(std::string_view members);

class PrefixChain {
 public:
  struct Point {
    uint64_t hash = 0;
    int64_t bytes = 0;  // from the beginning of the prompt
  };
  // Points: each 512 bytes at first, then ever farther apart, by an eighth. What is beyond
  // kMostBytes is not looked at.
  static constexpr size_t kFirstBytes = 512;
  static constexpr size_t kMostBytes = 1 << 20;
  static constexpr size_t kMostPoints = 64;

  PrefixChain() = default;
  // Prompts of different seeds have nothing in common.
  PrefixChain(uint64_t seed, std::string_view prompt);

  // The shortest first.
  std::span<const Point> points() const { return {points_.data(), size_}; }
  // Of the whole prompt.
  int64_t bytes() const { return bytes_; }

 private:
  std::array<Point, kMostPoints> points_;
  size_t size_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace tollgate::inference_router
