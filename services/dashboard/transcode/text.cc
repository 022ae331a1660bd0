#include "services/dashboard/transcode/text.h"

#include <cstdint>
#include <cstdio>

#include "common/base/ascii.h"
#include "common/base/utf8.h"

namespace tollgate::transcode {

std::optional<std::string> ParseBytes(std::string_view text) {
  // Go ignores line breaks, but chooses alphabet and padding before removing them.
  const bool url = text.find_first_of("-_") != std::string_view::npos;
  const bool padded = text.size() % 4 == 0;
  std::string digits;
  for (const char c : text) {
    if (c != '\r' && c != '\n') digits += c;
  }
  size_t padding = 0;
  while (padded && padding < 2 && digits.ends_with('=')) {
    digits.pop_back();
    ++padding;
  }
  if (digits.size() % 4 == 1) return std::nullopt;
  if (padded && (digits.size() + padding) % 4 != 0) return std::nullopt;
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    int value = -1;
    if (IsUpper(c)) value = c - 'A';
    if (IsLower(c)) value = c - 'a' + 26;
    if (IsDigit(c)) value = c - '0' + 52;
    if (c == (url ? '-' : '+')) value = 62;
    if (c == (url ? '_' : '/')) value = 63;
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count);
    }
  }
  return out;
}

namespace {

// Letters, digits and "_" in parts that do not begin with a digit, joined by ".".
bool IsFullName(std::string_view text) {
  bool start = true;
  for (const char c : text) {
    if (c == '.') {
      if (start) return false;
      start = true;
      continue;
    }
    if (!IsAlnum(c) && c != '_') return false;
    if (start && IsDigit(c)) return false;
    start = false;
  }
  return !start;
}

std::string ToSnake(std::string_view camel) {
  std::string snake;
  for (const char c : camel) {
    if (IsUpper(c)) {
      snake += '_';
      snake += static_cast<char>(c | 0x20);
    } else {
      snake += c;
    }
  }
  return snake;
}

}  // namespace

std::optional<std::string> SnakeCasePath(std::string_view camel) {
  std::string snake = ToSnake(camel);
  if (camel.find('_') != std::string_view::npos || !IsFullName(snake)) return std::nullopt;
  return snake;
}

std::optional<std::string> CamelCasePath(std::string_view snake) {
  if (!IsFullName(snake)) return std::nullopt;
  std::string camel;
  bool after_underscore = false;
  for (const char c : snake) {
    if (c != '_') {
      camel += after_underscore && IsLower(c) ? static_cast<char>(c & ~0x20) : c;
    }
    after_underscore = c == '_';
  }
  if (ToSnake(camel) != snake) return std::nullopt;
  return camel;
}

Unescaped PercentDecode(std::string_view text, bool plus_is_space) {
  Unescaped out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.text += ' ';
    } else if (text[i] != '%') {
      out.text += text[i];
    } else {
      const int high = i + 1 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) return {"", std::string(text.substr(i, 3))};
      out.text += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::string GoQuoted(std::string_view text) {
  std::string out = "\"";
  const auto* p = reinterpret_cast<const utf8::Byte*>(text.data());
  const auto* const end = p + text.size();
  char code[8];
  while (p != end) {
    const char c = static_cast<char>(*p);
    if (*p >= 0x80) {
      const int length = utf8::LengthAt(p, end);
      if (length == 0) {
        std::snprintf(code, sizeof code, "\\x%02x", *p);
        out += code;
        ++p;
      } else {
        out.append(reinterpret_cast<const char*>(p), static_cast<size_t>(length));
        p += length;
      }
      continue;
    }
    ++p;
    constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\\\"", kLetters = "abfnrtv\\\"";
    if (const size_t at = kNamed.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kLetters[at];
    } else if (c < 0x20 || c == 0x7F) {
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace tollgate::transcode
