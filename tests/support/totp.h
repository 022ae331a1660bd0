// Codes of an authenticator app. Shares no code with the product.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace tollgate::test {

// RFC 4648, without padding.
inline std::string Base32Decode(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567").find(c);
    if (value == std::string::npos) continue;
    bits = bits << 5 | static_cast<uint32_t>(value);
    if ((count += 5) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

// RFC 6238 with SHA-1, six digits and 30 s.
inline std::string TotpCode(const std::string& seed, int64_t step) {
  unsigned char counter[8];
  for (int i = 0; i < 8; ++i) counter[i] = static_cast<unsigned char>(step >> (56 - 8 * i));
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha1(), seed.data(), static_cast<int>(seed.size()), counter, sizeof counter, mac, &size);
  const unsigned at = mac[19] & 15;
  const uint32_t value = (mac[at] & 0x7fU) << 24 | static_cast<uint32_t>(mac[at + 1]) << 16 |
                         static_cast<uint32_t>(mac[at + 2]) << 8 | mac[at + 3];
  char text[7];
  std::snprintf(text, sizeof text, "%06u", value % 1'000'000);
  return text;
}

}  // namespace tollgate::test
