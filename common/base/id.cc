#include "common/base/id.h"

#include <chrono>
#include <cstring>
#include <random>

#include "common/base/ascii.h"
#include "common/base/crypto.h"

namespace tollgate {
namespace {

__extension__ typedef unsigned __int128 Number;
// 62^22 is above 2^128.
constexpr size_t kBase62Digits = 22;

// Ids must be unique but need not be secret: a generator per thread is enough.
std::mt19937_64& ThreadRandom() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return random;
}

}  // namespace

Id Id::Make(int64_t unix_ms, uint64_t random_high, uint64_t random_low) {
  Id id;
  for (int i = 0; i < 6; ++i) id.bytes_[i] = static_cast<uint8_t>(unix_ms >> (40 - 8 * i));
  for (int i = 0; i < 2; ++i) id.bytes_[6 + i] = static_cast<uint8_t>(random_high >> (8 * i));
  for (int i = 0; i < 8; ++i) id.bytes_[8 + i] = static_cast<uint8_t>(random_low >> (8 * i));
  return id;
}

Id Id::New() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto& random = ThreadRandom();
  return Make(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), random(),
              random());
}

std::optional<Id> Id::FromBytes(std::string_view bytes) {
  if (bytes.size() != kBytes) return std::nullopt;
  Id id;
  std::memcpy(id.bytes_.data(), bytes.data(), kBytes);
  return id;
}

std::optional<Id> Id::FromHex(std::string_view hex) {
  if (hex.size() != 2 * kBytes) return std::nullopt;
  Id id;
  for (size_t i = 0; i < kBytes; ++i) {
    const char* digits = hex.data() + 2 * i;
    if (IsUpper(digits[0]) || IsUpper(digits[1])) return std::nullopt;
    const int high = HexValue(digits[0]);
    const int low = HexValue(digits[1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes_[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return id;
}

std::optional<Id> Id::FromBase62(std::string_view text) {
  if (text.size() != kBase62Digits) return std::nullopt;
  Number number = 0;
  for (const char c : text) {
    const size_t digit = std::string_view(kBase62).find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    if (number > (~Number{0} - digit) / 62) return std::nullopt;  // above 128 bits
    number = number * 62 + digit;
  }
  Id id;
  for (size_t i = kBytes; i-- > 0; number >>= 8) id.bytes_[i] = static_cast<uint8_t>(number);
  return id;
}

std::string Id::ToBase62() const {
  Number number = 0;
  for (const uint8_t byte : bytes_) number = number << 8 | byte;
  std::string text(kBase62Digits, '0');
  for (size_t i = kBase62Digits; i-- > 0; number /= 62) {
    text[i] = kBase62[static_cast<size_t>(number % 62)];
  }
  return text;
}

std::string Id::ToBytes() const {
  return std::string(reinterpret_cast<const char*>(bytes_.data()), kBytes);
}

std::string Id::ToHex() const { return HexEncode(ToBytes()); }

int64_t Id::unix_ms() const {
  int64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | bytes_[i];
  return ms;
}

size_t IdHash::operator()(const Id& id) const {
  uint64_t low;
  std::memcpy(&low, id.bytes().data() + 8, sizeof low);  // these bytes are random
  return low;
}

std::string RandomBase62(size_t length) {
  std::string text;
  text.reserve(length);
  std::string bytes;
  while (text.size() < length) {
    bytes = RandomBytes(length + 8);
    for (unsigned char byte : bytes) {
      // 248 = 4 * 62: taking only lower values keeps every character equally likely.
      if (byte < 248 && text.size() < length) text += kBase62[byte % 62];
    }
  }
  return text;
}

}  // namespace tollgate
