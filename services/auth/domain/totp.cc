#include "services/auth/domain/totp.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdio>

#include "common/base/crypto.h"

namespace tollgate::auth {
namespace {

constexpr uint32_t kCodes = 1'000'000;
constexpr size_t kDigits = 6;

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
        c == '-' || c == '_' || c == '@') {
      out += c;
    } else {
      out += '%' + HexEncode(std::string_view(&c, 1));
    }
  }
  return out;
}

}  // namespace

std::string TotpCode(std::string_view secret, int64_t step) {
  std::array<unsigned char, 8> counter{};
  for (size_t i = 0; i < counter.size(); ++i) {
    counter[i] = static_cast<unsigned char>(static_cast<uint64_t>(step) >> (56 - 8 * i));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  HMAC(EVP_sha1(), secret.data(), static_cast<int>(secret.size()), counter.data(), counter.size(),
       mac.data(), &size);
  if (size != 20) return "";
  const size_t at = mac[19] & 15U;
  const uint32_t number = (mac[at] & 0x7fU) << 24 | uint32_t{mac[at + 1]} << 16 |
                          uint32_t{mac[at + 2]} << 8 | uint32_t{mac[at + 3]};
  const std::string digits = std::to_string(number % kCodes);
  return std::string(kDigits - digits.size(), '0') + digits;
}

std::optional<int64_t> MatchTotp(std::string_view secret, std::string_view code, int64_t now_us,
                                 int64_t last_step) {
  const int64_t now = now_us / kTotpStepUs;
  std::optional<int64_t> found;
  // Compares with all three codes, so that the time taken does not reveal which one matched.
  for (const int64_t step : {now - 1, now, now + 1}) {
    const std::string right = TotpCode(secret, step);
    if (!right.empty() && ConstantTimeEquals(right, code) && step > last_step) found = step;
  }
  return found;
}

std::string Base32(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 5; count -= 5) out += kAlphabet[bits >> (count - 5) & 31];
  }
  if (count > 0) out += kAlphabet[bits << (5 - count) & 31];
  return out;
}

std::string TotpUri(std::string_view issuer, std::string_view account, std::string_view secret) {
  return "otpauth://totp/" + Escaped(issuer) + ":" + Escaped(account) +
         "?secret=" + Base32(secret) + "&issuer=" + Escaped(issuer);
}

}  // namespace tollgate::auth
