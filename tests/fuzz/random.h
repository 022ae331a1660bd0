// Random choices from a seed, the same on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tollgate::fuzz {

class Random {
 public:
  // Mix the seed: neighbouring seeds would otherwise share all but one of their numbers.
  explicit Random(uint64_t seed) : state_(seed) { state_ = Next() ^ (seed << 32); }

  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, limit); 0 when limit is 0.
  size_t Below(size_t limit) { return limit == 0 ? 0 : Next() % limit; }
  size_t Between(size_t low, size_t high) { return low + Below(high - low + 1); }
  bool Percent(size_t chance) { return Below(100) < chance; }
  template <typename T>
  T Pick(std::initializer_list<T> list) {
    return list.begin()[Below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace tollgate::fuzz
