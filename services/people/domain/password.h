// Password hashes: argon2id from libsodium, 64 MiB and two passes for each (about 0.1 s).
#pragma once

#include <string>
#include <string_view>

namespace tollgate::people {

class PasswordHasher {
 public:
  // Aborts the process if libsodium cannot start.
  PasswordHasher();

  // Returns "" if there is not enough memory.
  std::string Hash(std::string_view password) const;
  // An empty hash matches no password but costs the same time, so that timing does not reveal who
  // has an account.
  bool Matches(const std::string& hash, std::string_view password) const;

 private:
  std::string nobodys_;
};

}  // namespace tollgate::people
