#include "services/billing/payments/stripe_signature.h"

#include <charconv>
#include <optional>

#include "common/base/crypto.h"

namespace tollgate::billing::payments {
namespace {

constexpr size_t kMaxHeader = 2048;
constexpr size_t kMaxSignatures = 16;

std::optional<int64_t> Seconds(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (value < 0 || value > 100'000'000'000) return std::nullopt;
  return value;
}

}  // namespace

bool SignatureIsValid(std::string_view header, std::string_view body,
                      const std::vector<std::string>& secrets, int64_t now_us) {
  if (header.size() > kMaxHeader) return false;
  std::string_view time_text;
  std::vector<std::string_view> given;
  while (!header.empty()) {
    const size_t comma = header.find(',');
    const std::string_view item = header.substr(0, comma);
    header.remove_prefix(comma == std::string_view::npos ? header.size() : comma + 1);
    if (item.starts_with("t=")) {
      if (!time_text.empty()) return false;
      time_text = item.substr(2);
    } else if (item.starts_with("v1=") && given.size() < kMaxSignatures) {
      given.push_back(item.substr(3));
    }
  }
  const auto seconds = Seconds(time_text);
  if (!seconds) return false;
  const int64_t age_us = now_us - *seconds * 1'000'000;
  if (age_us > kSignatureToleranceUs || age_us < -kSignatureToleranceUs) return false;
  const std::string signed_text = std::string(time_text) + "." + std::string(body);
  bool valid = false;
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    const std::string expected = HexEncode(HmacSha256(secret, signed_text));
    for (const std::string_view signature : given) {
      // Compares all signatures, so that timing does not reveal which one matched.
      if (ConstantTimeEquals(expected, signature)) valid = true;
    }
  }
  return valid;
}

}  // namespace tollgate::billing::payments
