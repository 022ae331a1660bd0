// Byte scanning shared by the reader and the writer of string literals: sixteen bytes a step where
// the processor has SSE2 (every x86-64 has), one byte a step otherwise and at the end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tollgate::json::internal {

static_assert(std::endian::native == std::endian::little,
              "the word tricks below read bytes in order");

using Byte = unsigned char;

// First byte in [p, end) that needs a look: a quote, a backslash, a control character, or (with
// kStopAtNonAscii) any byte of a multi-byte character. end when there is none.
template <bool kStopAtNonAscii>
inline const Byte* FindSpecial(const Byte* p, const Byte* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i control = _mm_set1_epi8(0x1f);
  while (end - p >= 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash));
    hit = _mm_or_si128(hit, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
    // The top bit of each byte is what movemask takes, so non-ASCII comes for free.
    if constexpr (kStopAtNonAscii) hit = _mm_or_si128(hit, v);
    const int mask = _mm_movemask_epi8(hit);
    if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
    p += 16;
  }
#endif
  for (; p != end; ++p) {
    if (*p == '"' || *p == '\\' || *p < 0x20) return p;
    if (kStopAtNonAscii && *p >= 0x80) return p;
  }
  return end;
}

// Length of the UTF-8 sequence at p, whose first byte is >= 0x80; 0 when it is not a valid one
// (truncated, overlong, a surrogate, above U+10FFFF).
inline int Utf8Length(const Byte* p, const Byte* end) {
  const auto left = end - p;
  const auto continues = [](Byte b) { return (b & 0xC0) == 0x80; };
  if (p[0] >= 0xE1 && p[0] <= 0xEF && p[0] != 0xED) {  // most of the world's text
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

// Walks over the multi-byte characters at p, up to the next ASCII byte. Null when one is invalid,
// which then stands at `bad`.
inline const Byte* SkipMultiByte(const Byte* p, const Byte* end, const Byte** bad) {
  while (p != end && *p >= 0x80) {
    // Three-byte characters, two at a time: most text that is neither Latin nor Greek nor Cyrillic.
    while (end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      const uint64_t lead1 = word & 0x0F, lead2 = (word >> 24) & 0x0F;
      if ((word & 0xC0C0F0C0C0F0) != 0x8080E08080E0) break;
      // E0 and ED have rules of their own.
      if (lead1 == 0 || lead1 == 0xD || lead2 == 0 || lead2 == 0xD) break;
      p += 6;
    }
    if (p == end || *p < 0x80) break;
    const int length = Utf8Length(p, end);
    if (length == 0) {
      *bad = p;
      return nullptr;
    }
    p += length;
  }
  return p;
}

// Value of four hexadecimal digits at p, or -1.
inline int32_t Hex4(const Byte* p) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const Byte c = p[i];
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = (c | 0x20) - 'a' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

inline bool IsHighSurrogate(int32_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
inline bool IsLowSurrogate(int32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace tollgate::json::internal
