// Authenticated encryption of small texts stored by other parties: AES-256-GCM from OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate {

inline constexpr size_t kSealKeyBytes = 32;

// The key has kSealKeyBytes. Returns a random nonce, the encrypted text and its tag. Unseal needs
// the same context. Aborts the process if OpenSSL fails.
std::string Seal(std::string_view key, std::string_view context, std::string_view text);
// nullopt if the key or context is another one, or bytes were changed.
std::optional<std::string> Unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed);

// The keys of a file: one per line, each of 64 hexadecimal digits; empty lines are skipped. By
// convention the first key seals and all keys unseal, so that keys can be rotated. Returns an empty
// list if the file cannot be read or a line is not a key.
std::vector<std::string> ReadSealKeys(const std::string& file);

}  // namespace tollgate
