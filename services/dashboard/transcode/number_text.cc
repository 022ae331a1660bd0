#include "services/dashboard/transcode/number_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "common/base/ascii.h"
#include "services/dashboard/transcode/skip.h"

namespace tollgate::transcode {
namespace {

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = IsUpper(text[i]) ? static_cast<char>(text[i] | 0x20) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// Whether the text is a decimal or hexadecimal number in Go's syntax, without a sign.
bool IsGoNumber(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
  if (hex) text.remove_prefix(2);
  const auto digits = [&] {
    const size_t before = text.size();
    while (!text.empty() && (hex ? HexValue(text[0]) >= 0 : IsDigit(text[0])))
      text.remove_prefix(1);
    return text.size() != before;
  };
  const bool before_point = digits();
  const bool after_point = Skip(text, ".") && digits();
  if (!before_point && !after_point) return false;
  if (Skip(text, hex ? "pP" : "eE")) {
    Skip(text, "+-");
    if (!SkipDigits(text)) return false;
  } else if (hex) {
    return false;
  }
  return text.empty();
}

// Removes the underscores that Go allows between digits and after 0x. nullopt if one is elsewhere.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  const bool hex = text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == 'x';
  std::string out;
  bool digit = false, underscore = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '_' && !digit) return std::nullopt;
    const bool is_digit = hex ? HexValue(c) >= 0 || i == 1 : IsDigit(c);
    if (underscore && !is_digit) return std::nullopt;
    underscore = c == '_';
    digit = is_digit;
    if (!underscore) out += c;
  }
  if (underscore) return std::nullopt;
  return out;
}

// strtod and strtof parse both forms and distinguish underflow from overflow.
template <typename T>
std::optional<T> Convert(const std::string& text) {
  T value;
  if constexpr (sizeof(T) == sizeof(float)) {
    value = std::strtof(text.c_str(), nullptr);
  } else {
    value = std::strtod(text.c_str(), nullptr);
  }
  if (std::isinf(value)) return std::nullopt;
  return value;
}

template <typename T>
std::string ShortestText(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  char buffer[64];
  const char* end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (Skip(text, "-")) out = "-";
  const size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  const T size = std::fabs(value);
  if (size < static_cast<T>(1e-6) || size >= static_cast<T>(1e21)) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + (exponent < 0 ? "e-" : "e+") + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(-exponent - 1, '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0');
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace

std::optional<std::string> IntegralText(std::string_view number) {
  const bool negative = Skip(number, "-");
  std::string digits;
  int64_t exponent = 0;
  bool fraction = false;
  while (!number.empty() && (IsDigit(number[0]) || number[0] == '.')) {
    if (number[0] == '.') {
      fraction = true;
    } else {
      if (fraction) --exponent;
      if (number[0] != '0' || !digits.empty()) digits += number[0];
    }
    number.remove_prefix(1);
  }
  if (Skip(number, "eE")) {
    const bool minus = !number.empty() && number[0] == '-';
    Skip(number, "+-");
    int64_t written = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), written);
    if (error != std::errc() || written > INT32_MAX) return std::nullopt;
    exponent += minus ? -written : written;
  }
  if (digits.empty()) return "0";
  while (exponent < 0 && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  // No type has more than 20 digits.
  if (exponent < 0 || exponent + static_cast<int64_t>(digits.size()) > 20) return std::nullopt;
  return (negative ? "-" : "") + digits + std::string(static_cast<size_t>(exponent), '0');
}

bool IsJsonNumber(std::string_view text) {
  std::string_view rest = text;
  Skip(rest, "-");
  if (!Skip(rest, "0") && !SkipDigits(rest)) return false;
  if (Skip(rest, ".") && !SkipDigits(rest)) return false;
  if (Skip(rest, "eE")) {
    Skip(rest, "+-");
    if (!SkipDigits(rest)) return false;
  }
  return rest.empty();
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  const bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  if (sign && !std::is_signed_v<T>) return std::nullopt;
  if (sign && text[0] == '+') text.remove_prefix(1);
  if (text.starts_with("-") && sign && text.size() > 1 && !IsDigit(text[1])) return std::nullopt;
  if (!sign && (text.empty() || !IsDigit(text[0]))) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
template std::optional<int32_t> ParseInteger(std::string_view);
template std::optional<int64_t> ParseInteger(std::string_view);
template std::optional<uint32_t> ParseInteger(std::string_view);
template std::optional<uint64_t> ParseInteger(std::string_view);

template <typename T>
std::optional<T> ParseFloat(std::string_view text) {
  std::string_view rest = text;
  const bool minus = rest.starts_with("-");
  const bool sign = Skip(rest, "+-");
  if (EqualsIgnoringCase(rest, "inf") || EqualsIgnoringCase(rest, "infinity")) {
    const T infinity = std::numeric_limits<T>::infinity();
    return minus ? -infinity : infinity;
  }
  if (!sign && EqualsIgnoringCase(rest, "nan")) {
    // Go's NaN, so that requests have the same bytes.
    return static_cast<T>(std::bit_cast<double>(uint64_t{0x7FF8000000000001}));
  }
  const auto number = WithoutUnderscores(rest);
  if (!number || !IsGoNumber(*number)) return std::nullopt;
  return Convert<T>((minus ? "-" : "") + *number);
}
template std::optional<float> ParseFloat(std::string_view);
template std::optional<double> ParseFloat(std::string_view);

template <typename T>
std::optional<T> NumberValue(std::string_view number) {
  return Convert<T>(std::string(number));
}
template std::optional<float> NumberValue(std::string_view);
template std::optional<double> NumberValue(std::string_view);

std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::string NumberText(double value) { return ShortestText(value); }
std::string NumberText(float value) { return ShortestText(value); }

}  // namespace tollgate::transcode
