// UTF-8 decoding steps for code that scans text itself. For checks on whole strings see text.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tollgate::utf8 {

using Byte = unsigned char;

static_assert(std::endian::native == std::endian::little,
              "SkipMultiByte loads words in byte order");

// Length of the sequence at p, whose first byte is >= 0x80; 0 if it is invalid (truncated,
// overlong, a surrogate, above U+10FFFF).
inline int LengthAt(const Byte* p, const Byte* end) {
  const auto left = end - p;
  const auto continues = [](Byte b) { return (b & 0xC0) == 0x80; };
  if (p[0] >= 0xE1 && p[0] <= 0xEF && p[0] != 0xED) {  // the most common case
    return left >= 3 && continues(p[1]) && continues(p[2]) ? 3 : 0;
  }
  if (p[0] >= 0xC2 && p[0] <= 0xDF) return left >= 2 && continues(p[1]) ? 2 : 0;
  if (p[0] == 0xE0) {
    return left >= 3 && p[1] >= 0xA0 && p[1] <= 0xBF && continues(p[2]) ? 3 : 0;
  }
  if (p[0] == 0xED) {
    return left >= 3 && p[1] >= 0x80 && p[1] <= 0x9F && continues(p[2]) ? 3 : 0;
  }
  if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    if (left < 4 || !continues(p[1]) || !continues(p[2]) || !continues(p[3])) return 0;
    if (p[0] == 0xF0 && p[1] < 0x90) return 0;
    if (p[0] == 0xF4 && p[1] > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// Skips the multi-byte characters at p and returns the next ASCII byte or end. Returns null if a
// character is invalid, and sets *bad to it.
inline const Byte* SkipMultiByte(const Byte* p, const Byte* end, const Byte** bad) {
  while (p != end && *p >= 0x80) {
    // Fast path for scripts with three bytes per character (such as CJK): two characters at a time.
    while (end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      const uint64_t lead1 = word & 0x0F, lead2 = (word >> 24) & 0x0F;
      if ((word & 0xC0C0F0C0C0F0) != 0x8080E08080E0) break;
      // E0 and ED restrict their second byte: LengthAt checks these.
      if (lead1 == 0 || lead1 == 0xD || lead2 == 0 || lead2 == 0xD) break;
      p += 6;
    }
    if (p == end || *p < 0x80) break;
    const int length = LengthAt(p, end);
    if (length == 0) {
      *bad = p;
      return nullptr;
    }
    p += length;
  }
  return p;
}

}  // namespace tollgate::utf8
