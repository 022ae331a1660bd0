#include "common/base/base64.h"

#include <array>
#include <cstdint>

namespace tollgate {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kForeign = 0xFF;

constexpr std::array<uint8_t, 256> MakeValues() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kForeign;
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}
constexpr std::array<uint8_t, 256> kValues = MakeValues();

uint8_t Byte(char c) { return static_cast<uint8_t>(c); }

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  size_t at = 0;
  for (; at + 3 <= bytes.size(); at += 3) {
    const uint32_t group = static_cast<uint32_t>(Byte(bytes[at])) << 16 |
                           static_cast<uint32_t>(Byte(bytes[at + 1])) << 8 | Byte(bytes[at + 2]);
    out.push_back(kAlphabet[group >> 18]);
    out.push_back(kAlphabet[group >> 12 & 63]);
    out.push_back(kAlphabet[group >> 6 & 63]);
    out.push_back(kAlphabet[group & 63]);
  }
  if (const size_t rest = bytes.size() - at; rest > 0) {
    uint32_t group = static_cast<uint32_t>(Byte(bytes[at])) << 16;
    if (rest == 2) group |= static_cast<uint32_t>(Byte(bytes[at + 1])) << 8;
    out.push_back(kAlphabet[group >> 18]);
    out.push_back(kAlphabet[group >> 12 & 63]);
    out.push_back(rest == 2 ? kAlphabet[group >> 6 & 63] : '=');
    out.push_back('=');
  }
  return out;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const size_t marks = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < marks ? kValues[Byte(text[at + i])] : 0;
      if (value == kForeign) return std::nullopt;
      group = group << 6 | value;
    }
    const size_t bytes = marks - 1;
    if (bytes < 3 && (group & (0xFFFFFFU >> (8 * bytes))) != 0) return std::nullopt;
    for (size_t i = 0; i < bytes; ++i) {
      out.push_back(static_cast<char>(group >> (16 - 8 * i) & 0xFF));
    }
  }
  return out;
}

}  // namespace tollgate
