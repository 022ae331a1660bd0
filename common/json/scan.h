// Byte scanning shared by the parser and the writer of string literals: sixteen bytes per step with
// SSE2 (which every x86-64 processor has), one byte per step otherwise.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tollgate::json::internal {

using Byte = unsigned char;

// Returns the first byte in [p, end) that needs handling, or end: a quote, a backslash, a control
// character, or (with kStopAtNonAscii) any byte of a multi-byte character.
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
    // movemask collects the top bits, which are set in all non-ASCII bytes.
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

// The value of the four hexadecimal digits at p, or -1.
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
