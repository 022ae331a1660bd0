#include "tests/secrets/canaries.h"

#include <algorithm>
#include <cstdint>

namespace tollgate::test {
namespace {

std::string Hex(std::string_view bytes, const char* digits) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

// The part of the base64 of any text that contains these bytes at this place of a group of three.
std::string Base64(std::string_view bytes, size_t place, std::string_view last) {
  const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + std::string(last);
  bytes.remove_prefix((3 - place) % 3);
  bytes = bytes.substr(0, bytes.size() / 3 * 3);
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << 16 |
                           static_cast<uint32_t>(static_cast<uint8_t>(bytes[i + 1])) << 8 |
                           static_cast<uint8_t>(bytes[i + 2]);
    for (int shift = 18; shift >= 0; shift -= 6) text += digits[group >> shift & 63];
  }
  return text;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    encoded += plain ? std::string(1, c) : "%" + Hex({&c, 1}, "0123456789ABCDEF");
  }
  return encoded;
}

}  // namespace

bool Canaries::Add(const std::string& kind, const std::string& text) {
  if (text.size() < 8) return false;
  Canary canary{
      kind,
      {text, Hex(text, "0123456789abcdef"), Hex(text, "0123456789ABCDEF"), PercentEncoded(text)}};
  for (size_t place = 0; place < 3; ++place) {
    canary.forms.push_back(Base64(text, place, "+/"));
    canary.forms.push_back(Base64(text, place, "-_"));
  }
  // Half of a secret also counts: truncation must not hide it.
  if (text.size() >= 24) canary.forms.push_back(text.substr(0, text.size() / 2));
  if (text.size() >= 24) canary.forms.push_back(text.substr(text.size() / 2));
  std::erase_if(canary.forms, [](const std::string& form) { return form.size() < 8; });
  canaries_.push_back(std::move(canary));
  return true;
}

std::vector<std::string> Canaries::FindIn(const std::string& where, std::string_view text) const {
  std::vector<std::string> found;
  for (const Canary& canary : canaries_) {
    for (const std::string& form : canary.forms) {
      const size_t at = text.find(form);
      if (at == std::string_view::npos) continue;
      const size_t from = at < 120 ? 0 : at - 120;
      std::string around(text.substr(from, at - from + form.size() + 60));
      std::replace_if(around.begin(), around.end(), [](char c) { return c < ' ' || c > '~'; }, '.');
      found.push_back(canary.kind + " in " + where + ": …" + around + "…");
      break;
    }
  }
  return found;
}

}  // namespace tollgate::test
