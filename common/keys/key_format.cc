#include "common/keys/key_format.h"

#include <algorithm>

#include "common/base/ascii.h"
#include "common/base/crypto.h"
#include "common/base/id.h"

namespace tollgate {
namespace {

constexpr std::string_view kDigits = kBase62;
constexpr size_t kTailLength = kKeyIdLength + kKeySecretLength + kKeyChecksumLength;

bool IsBase62(std::string_view text) { return std::all_of(text.begin(), text.end(), IsAlnum); }

std::string Prefix(std::string_view brand) {
  std::string prefix = "sk-";
  prefix.append(brand).append("-");
  return prefix;
}

// Covers the prefix too: a key of one brand is malformed under another.
std::string Checksum(std::string_view before) {
  uint32_t crc = Crc32(before);
  std::string text(kKeyChecksumLength, '0');
  for (size_t i = kKeyChecksumLength; i-- > 0;) {
    text[i] = kDigits[crc % kDigits.size()];
    crc /= static_cast<uint32_t>(kDigits.size());
  }
  return text;
}

bool IsLegacyBody(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_'; });
}

}  // namespace

std::optional<ParsedKey> ParseKey(std::string_view text, std::string_view brand,
                                  std::span<const std::string> legacy_prefixes) {
  const std::string prefix = Prefix(brand);
  if (text.starts_with(prefix)) {
    if (text.size() != prefix.size() + kTailLength) return std::nullopt;
    const std::string_view tail = text.substr(prefix.size());
    if (!IsBase62(tail)) return std::nullopt;
    const size_t checked = text.size() - kKeyChecksumLength;
    if (Checksum(text.substr(0, checked)) != text.substr(checked)) return std::nullopt;
    return ParsedKey{.key_id = std::string(tail.substr(0, kKeyIdLength))};
  }
  if (text.size() < kMinLegacyKeyLength || text.size() > kMaxLegacyKeyLength) return std::nullopt;
  for (const std::string& legacy : legacy_prefixes) {
    if (!legacy.empty() && text.size() > legacy.size() && text.starts_with(legacy) &&
        IsLegacyBody(text.substr(legacy.size()))) {
      return ParsedKey{.legacy = true};
    }
  }
  return std::nullopt;
}

std::string_view PublicIdOf(std::string_view key, std::string_view brand) {
  constexpr std::string_view kStart = "sk-";
  const size_t prefix = kStart.size() + brand.size() + 1;
  if (key.size() != prefix + kTailLength || key.substr(kStart.size(), brand.size()) != brand ||
      !key.starts_with(kStart) || key[prefix - 1] != '-') {
    return {};
  }
  return key.substr(prefix, kKeyIdLength);
}

MadeKey MakeKey(std::string_view brand) {
  MadeKey key;
  key.key_id = RandomBase62(kKeyIdLength);
  const std::string secret = RandomBase62(kKeySecretLength);
  key.text = Prefix(brand) + key.key_id + secret;
  key.text += Checksum(key.text);
  key.last_four = key.text.substr(key.text.size() - 4);
  return key;
}

std::string KeyDigest(std::string_view text) { return Sha256(text); }

bool IsKeyId(std::string_view text) { return text.size() == kKeyIdLength && IsBase62(text); }

bool IsBrand(std::string_view text) {
  if (text.empty() || text.size() > 32 || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsDigit(c) || IsLower(c) || c == '-'; });
}

}  // namespace tollgate
