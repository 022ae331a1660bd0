// Authenticated encryption of small texts that others store: AES-256-GCM from OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate {

inline constexpr size_t kSealKeyBytes = 32;

// A random nonce, the encrypted text and its tag. The key has kSealKeyBytes; unsealing needs the
// same context. Aborts the process if OpenSSL fails.
std::string Seal(std::string_view key, std::string_view context, std::string_view text);
// Empty: another key or context, or changed bytes.
std::optional<std::string> Unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed);

// The keys of a file: one per line, each of 64 hexadecimal digits; empty lines are skipped. By
// convention the first one seals and all of them unseal, so that keys can be rotated. Empty: the
// file cannot be read or has a line that is not a key.
std::vector<std::string> ReadSealKeys(const std::string& file);

}  // namespace tollgate
