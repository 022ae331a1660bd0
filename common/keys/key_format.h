// The format of virtual keys: sk-<brand>-, a 12-character public id, a 43-character secret (256
// bits) and a 6-character CRC-32, all base62. The checksum lets the gateway refuse mistyped and
// made-up keys without a lookup; it is not a secret. See decision 15, docs/design/keys.md 1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tollgate {

inline constexpr size_t kKeyIdLength = 12;
inline constexpr size_t kKeySecretLength = 43;
inline constexpr size_t kKeyChecksumLength = 6;
// Legacy keys have no fixed length. Anything longer is refused before hashing (H44).
inline constexpr size_t kMaxLegacyKeyLength = 256;
inline constexpr size_t kMinLegacyKeyLength = 20;

struct ParsedKey {
  // The public id: safe to log and to show. Empty for a legacy key, whose id comes from the
  // look-up.
  std::string key_id;
  // Whether the key has one of the configured legacy prefixes. Legacy keys have no checksum, so
  // only a look-up shows whether the key exists.
  bool legacy = false;
};

struct MadeKey {
  // The whole key. Shown once to its owner, never stored or logged.
  std::string text;
  std::string key_id;
  // The last four characters of the text, which its owner sees.
  std::string last_four;
};

// Parses a well-formed key: exact prefix, length, alphabet and checksum. Text that starts with
// sk-<brand>- is never a legacy key, even if it has a legacy prefix. The time is bounded by the
// length of a key, not of the text.
std::optional<ParsedKey> ParseKey(std::string_view text, std::string_view brand,
                                  std::span<const std::string> legacy_prefixes = {});

// The public id within a key that ParseKey accepts; empty for a legacy key.
std::string_view PublicIdOf(std::string_view key, std::string_view brand);

// Generates a key from RandomBytes.
MadeKey MakeKey(std::string_view brand);

// SHA-256 of the key as the client sent it, 32 bytes. A key leaves the gateway only in this form.
std::string KeyDigest(std::string_view text);

// Whether the text has the form of a public key id.
bool IsKeyId(std::string_view text);

// Whether the text may be the brand in a key prefix: 1 to 32 lower-case letters, digits and
// hyphens; the first and the last character are not hyphens.
bool IsBrand(std::string_view text);

}  // namespace tollgate
