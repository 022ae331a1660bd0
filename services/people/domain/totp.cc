#include "services/people/domain/totp.h"

#include <liboath/oath.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/crypto.h"

namespace tollgate::people {
namespace {

constexpr unsigned kDigits = 6;

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
  [[maybe_unused]] static const int ready = oath_init();  // the library requires it
  char code[kDigits + 1];
  const int status = oath_hotp_generate(secret.data(), secret.size(), static_cast<uint64_t>(step),
                                        kDigits, false, OATH_HOTP_DYNAMIC_TRUNCATION, code);
  return status == OATH_OK ? code : "";
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
  char* encoded = nullptr;
  size_t size = 0;
  if (oath_base32_encode(bytes.data(), bytes.size(), &encoded, &size) != OATH_OK) return "";
  std::string text(encoded, size);
  std::free(encoded);
  text.resize(std::min(text.find('='), text.size()));
  return text;
}

std::string TotpUri(std::string_view issuer, std::string_view account, std::string_view secret) {
  return "otpauth://totp/" + Escaped(issuer) + ":" + Escaped(account) +
         "?secret=" + Base32(secret) + "&issuer=" + Escaped(issuer);
}

}  // namespace tollgate::people
