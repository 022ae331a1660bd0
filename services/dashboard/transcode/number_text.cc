#include "services/dashboard/transcode/number_text.h"

#include <charconv>
#include <cstdint>
#include <type_traits>

#include "common/base/ascii.h"
#include "services/dashboard/transcode/skip.h"

namespace tollgate::transcode {
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

std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace tollgate::transcode
