#include "services/people/domain/password.h"

#include <sodium.h>

#include <array>
#include <cstdlib>

#include "common/base/crypto.h"

namespace tollgate::people {
namespace {

constexpr unsigned long long kPasses = crypto_pwhash_OPSLIMIT_INTERACTIVE;
constexpr size_t kMemory = crypto_pwhash_MEMLIMIT_INTERACTIVE;

}  // namespace

PasswordHasher::PasswordHasher() {
  if (sodium_init() < 0) std::abort();
  nobodys_ = Hash(HexEncode(RandomBytes(16)));
}

std::string PasswordHasher::Hash(std::string_view password) const {
  std::array<char, crypto_pwhash_STRBYTES> out{};
  if (crypto_pwhash_str(out.data(), password.data(), password.size(), kPasses, kMemory) != 0) {
    return "";
  }
  return out.data();
}

bool PasswordHasher::Matches(const std::string& hash, std::string_view password) const {
  const std::string& compared = hash.empty() ? nobodys_ : hash;
  const bool same =
      crypto_pwhash_str_verify(compared.c_str(), password.data(), password.size()) == 0;
  return same && !hash.empty();
}

}  // namespace tollgate::people
