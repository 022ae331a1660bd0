#include "common/base/address_subject.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "common/base/mix.h"

namespace tollgate {

namespace {

// "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255" and its terminator.
constexpr size_t kMaxText = INET6_ADDRSTRLEN;
constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<uint8_t, 12> kTranslated{0, 0x64, 0xff, 0x9b};

uint64_t BigEndian(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

AddressSubject AddressSubject::FromText(std::string_view address) {
  address = address.substr(0, address.find('%'));
  if (address.size() >= kMaxText) return {};
  char text[kMaxText] = {};
  std::memcpy(text, address.data(), address.size());
  std::array<uint8_t, 4> ipv4{};
  if (inet_pton(AF_INET, text, ipv4.data()) == 1) return FromIpv4(ipv4);
  std::array<uint8_t, 16> ipv6{};
  if (inet_pton(AF_INET6, text, ipv6.data()) == 1) return FromIpv6(ipv6);
  return {};
}

AddressSubject AddressSubject::FromIpv4(const std::array<uint8_t, 4>& bytes) {
  return {Kind::kIpv4, BigEndian(bytes.data(), bytes.size())};
}

AddressSubject AddressSubject::FromIpv6(const std::array<uint8_t, 16>& bytes) {
  const auto starts_with = [&bytes](const std::array<uint8_t, 12>& prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  if (starts_with(kMapped) || starts_with(kTranslated)) {
    return {Kind::kIpv4, BigEndian(bytes.data() + 12, 4)};
  }
  return {Kind::kIpv6Network, BigEndian(bytes.data(), 8)};
}

std::string AddressSubject::ToText() const {
  if (kind_ == Kind::kOther) return "other";
  std::array<uint8_t, 16> bytes{};
  const size_t count = kind_ == Kind::kIpv4 ? 4 : 8;
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(bits_ >> (8 * (count - 1 - i)));
  char text[kMaxText] = {};
  inet_ntop(kind_ == Kind::kIpv4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text));
  return kind_ == Kind::kIpv4 ? text : std::string(text) + "/64";
}

uint64_t AddressSubject::Hash(uint64_t seed) const {
  return MixBits(MixBits(bits_ + seed) ^
                 (seed + 0x9e3779b97f4a7c15U * (1 + static_cast<uint64_t>(kind_))));
}

}  // namespace tollgate
