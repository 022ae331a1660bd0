// Hashes, random bytes and hexadecimal text, mostly from OpenSSL. All functions except RandomBytes
// are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

// Text as OpenSSL's functions take it.
inline const unsigned char* UnsignedBytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
inline unsigned char* UnsignedBytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

// 32 bytes.
std::string Sha256(std::string_view data);
// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view data);
// From OpenSSL's secure random generator. Aborts the process if it fails.
std::string RandomBytes(size_t count);
// Compares in time that depends only on the lengths.
bool ConstantTimeEquals(std::string_view a, std::string_view b);
// CRC-32 (IEEE 802.3), as in zip and Ethernet. To continue a checksum, pass it as the seed.
uint32_t Crc32(std::string_view data, uint32_t seed = 0);

// Lower-case hexadecimal.
std::string HexEncode(std::string_view bytes);
std::optional<std::string> HexDecode(std::string_view hex);

}  // namespace tollgate
