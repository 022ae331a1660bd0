// 128-bit ids that sort by the time they were made: 48 bits of Unix milliseconds, 80 random bits
// (the layout of UUID version 7 without its fixed bits). Holds and charges are identified by such
// an id (decision 26); the ledger reads the time from it to refuse ids that are too old
// (docs/design/ledger.md 3).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

class Id {
 public:
  static constexpr size_t kBytes = 16;

  Id() = default;  // all zero: "no id"

  // random must be uniformly distributed; only its lower 80 bits are used.
  static Id Make(int64_t unix_ms, uint64_t random_high, uint64_t random_low);
  // A new id from the system clock and a random generator. Thread-safe.
  static Id New();
  // From exactly 16 bytes, the form in protos and SQL.
  static std::optional<Id> FromBytes(std::string_view bytes);
  // From 32 lower-case hexadecimal digits.
  static std::optional<Id> FromHex(std::string_view hex);
  // From 22 characters of [0-9A-Za-z], the form in public ids such as chatcmpl-….
  static std::optional<Id> FromBase62(std::string_view text);

  std::string ToBytes() const;
  std::string ToHex() const;
  std::string ToBase62() const;
  int64_t unix_ms() const;
  bool empty() const { return *this == Id(); }
  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }

  friend auto operator<=>(const Id&, const Id&) = default;

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

struct IdHash {
  size_t operator()(const Id& id) const;
};

// length characters of [0-9A-Za-z] from RandomBytes.
std::string RandomBase62(size_t length);

}  // namespace tollgate
