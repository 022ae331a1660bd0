#include "common/money/money.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace tollgate {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t Saturate(Int128 value) {
  if (value > kMax) return kMax;
  if (value < std::numeric_limits<int64_t>::min()) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// value / 10^decimals as text, trailing zeros removed.
std::string Decimal(Int128 value, int decimals) {
  bool negative = value < 0;
  if (negative) value = -value;
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  if (static_cast<int>(digits.size()) <= decimals) {
    digits.insert(0, decimals + 1 - digits.size(), '0');
  }
  std::string text = digits.substr(0, digits.size() - decimals);
  std::string fraction = digits.substr(digits.size() - decimals);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (!fraction.empty()) text += "." + fraction;
  return negative && text != "0" ? "-" + text : text;
}

// Parses text as an integer count of 10^-decimals. nullopt if it is malformed, too precise or out
// of range.
std::optional<int64_t> ParseScaled(std::string_view text, int decimals) {
  bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  Int128 value = 0;
  int seen_decimals = -1;  // -1: before the point
  bool any_digit = false;
  for (char c : text) {
    if (c == '.') {
      if (seen_decimals >= 0 || !any_digit) return std::nullopt;
      seen_decimals = 0;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any_digit = true;
    if (seen_decimals >= 0 && ++seen_decimals > decimals) {
      if (c != '0') return std::nullopt;
      continue;
    }
    value = value * 10 + (c - '0');
    if (value > kMax) return std::nullopt;
  }
  if (!any_digit || (!text.empty() && text.back() == '.')) return std::nullopt;
  for (int i = seen_decimals < 0 ? 0 : (seen_decimals > decimals ? decimals : seen_decimals);
       i < decimals; ++i) {
    value *= 10;
  }
  if (value > kMax) return std::nullopt;
  return static_cast<int64_t>(negative ? -value : value);
}

}  // namespace

Int128 CostPicoUsd(const Rates& rates, int64_t input_tokens, int64_t output_tokens) {
  assert(input_tokens >= 0 && output_tokens >= 0);
  return static_cast<Int128>(rates.input_pico_usd) * input_tokens +
         static_cast<Int128>(rates.output_pico_usd) * output_tokens;
}

int64_t ChargeNanoUsd(Int128 cost_pico_usd) { return Saturate(cost_pico_usd / kPicoPerNano); }

int64_t HoldNanoUsd(Int128 cost_pico_usd) {
  return Saturate((cost_pico_usd + kPicoPerNano - 1) / kPicoPerNano);
}

int64_t OutputTokensAffordable(const Rates& rates, int64_t input_tokens,
                               int64_t authorized_nano_usd) {
  Int128 left =
      static_cast<Int128>(authorized_nano_usd) * kPicoPerNano - CostPicoUsd(rates, input_tokens, 0);
  if (left < 0) return 0;
  if (rates.output_pico_usd == 0) return kMax;
  return Saturate(left / rates.output_pico_usd);
}

std::string NanoToDecimalUsd(int64_t nano_usd) { return Decimal(nano_usd, 9); }
std::string PicoPerTokenToUsdPerMillion(int64_t pico_usd) { return Decimal(pico_usd, 6); }
std::string PicoPerTokenToUsdPerToken(int64_t pico_usd) { return Decimal(pico_usd, 12); }
std::string PicoToDecimalUsd(Int128 pico_usd) { return Decimal(pico_usd, 12); }

std::optional<int64_t> ParseDecimalUsdToNano(std::string_view text) { return ParseScaled(text, 9); }

std::optional<int64_t> ParseUsdPerMillionToPico(std::string_view text) {
  std::optional<int64_t> rate = ParseScaled(text, 6);
  return rate && *rate >= 0 ? rate : std::nullopt;
}

std::optional<int64_t> ParseUsdPerMillionDownToPico(std::string_view text) {
  constexpr int64_t kMaxExponent = 1'000'000;  // far above any price; sums do not overflow
  size_t at = 0;
  std::string digits;
  const auto read_digits = [&] {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    digits += text.substr(begin, at - begin);
    return at - begin;
  };
  if (read_digits() == 0) return std::nullopt;
  int64_t exponent = 6;
  if (at < text.size() && text[at] == '.') {
    ++at;
    const size_t decimals = read_digits();
    if (decimals == 0) return std::nullopt;
    exponent -= static_cast<int64_t>(decimals);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool negative = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (at == text.size()) return std::nullopt;
    int64_t given = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      given = std::min(given * 10 + (text[at] - '0'), kMaxExponent);
    }
    exponent += negative ? -given : given;
  }
  if (at != text.size()) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  const auto whole = static_cast<int64_t>(digits.size()) + exponent;  // digits before the point
  if (digits.empty() || whole <= 0) return 0;
  if (whole > 18) return INT64_MAX;
  digits.resize(static_cast<size_t>(whole), '0');
  int64_t pico_usd = 0;
  for (const char digit : digits) pico_usd = pico_usd * 10 + (digit - '0');
  return pico_usd;
}

}  // namespace tollgate
