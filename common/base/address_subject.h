// What limits per address count: an IPv4 address, or the /64 network of an IPv6 address, since a
// client usually controls all addresses of a /64. An IPv4 address written as IPv6 (mapped,
// ::ffff:0:0/96, or translated, 64:ff9b::/96) counts as IPv4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tollgate {

class AddressSubject {
 public:
  // All texts that are not IP addresses, such as the empty one of a Unix socket, share one subject.
  AddressSubject() = default;
  // A zone ("%eth0") is ignored.
  static AddressSubject FromText(std::string_view address);
  static AddressSubject FromIpv4(const std::array<uint8_t, 4>& bytes);
  static AddressSubject FromIpv6(const std::array<uint8_t, 16>& bytes);

  bool operator==(const AddressSubject&) const = default;
  // "203.0.113.1", "2001:db8:1:2::/64", or "other" if it is not an IP address. Each subject has
  // exactly one text.
  std::string ToText() const;
  // A different function for each seed. With a random seed an attacker cannot choose addresses
  // whose hashes collide.
  uint64_t Hash(uint64_t seed) const;

 private:
  enum class Kind : uint8_t { kOther, kIpv4, kIpv6Network };
  AddressSubject(Kind kind, uint64_t bits) : bits_(bits), kind_(kind) {}

  uint64_t bits_ = 0;
  Kind kind_ = Kind::kOther;
};

}  // namespace tollgate

template <>
struct std::hash<tollgate::AddressSubject> {
  size_t operator()(const tollgate::AddressSubject& subject) const {
    return static_cast<size_t>(subject.Hash(0));
  }
};
