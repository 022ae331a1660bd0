// Authenticated encryption of small texts that others store: AES-256-GCM from OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

inline constexpr size_t kSealKeyBytes = 32;

// A random nonce, the encrypted text and its tag. The key has kSealKeyBytes; unsealing needs the
// same context. Aborts the process if OpenSSL fails.
std::string Seal(std::string_view key, std::string_view context, std::string_view text);
// Empty: another key or context, or changed bytes.
std::optional<std::string> Unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed);

}  // namespace tollgate
