#include "common/base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "common/base/utf8.h"

namespace tollgate {
namespace {

std::string Fold(std::string_view name) {
  std::string folded;
  for (char c : name) {
    if (c == '_' || c == '-') continue;
    folded.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return folded;
}

// Damerau-Levenshtein distance: swapping two adjacent characters is one edit.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

// Length of the valid UTF-8 sequence at the start of the text (1 to 4), or 0.
size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto* begin = reinterpret_cast<const utf8::Byte*>(text.data());
  return *begin < 0x80 ? 1 : static_cast<size_t>(utf8::LengthAt(begin, begin + text.size()));
}

// The code point of a valid sequence.
char32_t CodePoint(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  char32_t point = byte(0) & (0xFF >> (sequence.size() + 1));
  for (size_t i = 1; i < sequence.size(); ++i) point = point << 6 | (byte(i) & 0x3F);
  return point;
}

// Unicode's categories Cc, Cf, Zl and Zp except U+200C and U+200D, which scripts and emoji need.
constexpr struct {
  char32_t first, last;
} kInvisible[] = {
    {0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x0600, 0x0605},
    {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},   {0x0890, 0x0891},
    {0x08E2, 0x08E2},   {0x180E, 0x180E},   {0x200B, 0x200B},   {0x200E, 0x200F},
    {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
    {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE007F},
};

bool IsInvisible(char32_t point) {
  return std::any_of(std::begin(kInvisible), std::end(kInvisible), [point](const auto& range) {
    return point >= range.first && point <= range.last;
  });
}

}  // namespace

bool IsVisibleText(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0 || IsInvisible(CodePoint(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string WithoutInvisible(std::string_view text, char substitute) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const std::string_view one = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || IsInvisible(CodePoint(one))) {
      out += substitute;
    } else {
      out += one;
    }
    text.remove_prefix(one.size());
  }
  return out;
}

bool IsValidUtf8(std::string_view text) {
  const auto* p = reinterpret_cast<const utf8::Byte*>(text.data());
  const auto* const end = p + text.size();
  while (p != end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    const utf8::Byte* bad = nullptr;
    p = utf8::SkipMultiByte(p, end, &bad);
    if (p == nullptr) return false;
  }
  return true;
}

std::string ToValidUtf8(std::string_view text, size_t max_bytes) {
  std::string out;
  // Nearly all texts are ASCII only.
  const std::string_view fits = text.substr(0, max_bytes);
  const auto ascii = static_cast<size_t>(
      std::ranges::find_if(fits, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }) -
      fits.begin());
  out = text.substr(0, ascii);
  text.remove_prefix(ascii);
  while (!text.empty()) {
    const size_t valid = Utf8SequenceLength(text);
    const size_t length = std::max<size_t>(valid, 1);
    if (out.size() + length > max_bytes) break;
    if (valid > 0) {
      out.append(text.substr(0, length));
    } else {
      out += '?';
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string wanted = Fold(name);
  std::string best;
  size_t best_distance = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(wanted, Fold(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tollgate
