// Mixes the bits of an integer, for hash tables and sketches. Not a cryptographic hash.
#pragma once

#include <cstdint>

namespace tollgate {

// The finalizer of splitmix64, a bijection: each bit of the input changes each bit of the result
// with probability 1/2.
constexpr uint64_t MixBits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace tollgate
