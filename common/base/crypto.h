// Hashes, random bytes and text encodings, on OpenSSL. All functions are pure but RandomBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

// 32 bytes.
std::string Sha256(std::string_view data);
// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view data);
// From the system's secure source. Never fails: without randomness the process must not go on.
std::string RandomBytes(size_t count);
// Compares in a time that depends on the lengths only.
bool ConstantTimeEquals(std::string_view a, std::string_view b);
// CRC-32 (IEEE 802.3), as in zip and Ethernet.
uint32_t Crc32(std::string_view data, uint32_t seed = 0);

// Lower-case hexadecimal.
std::string HexEncode(std::string_view bytes);
std::optional<std::string> HexDecode(std::string_view hex);

}  // namespace tollgate
