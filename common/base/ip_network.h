// IP addresses and networks, for example "192.0.2.7", "10.0.0.0/8" and "fd00::/8". An IPv4 address
// written as IPv6 (::ffff:192.0.2.7) equals the IPv4 address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

using IpAddress = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

std::optional<IpAddress> ParseIpAddress(std::string_view text);

class IpNetwork {
 public:
  // An address parses as a network of one. nullopt for any other text, and for a prefix length that
  // is out of range.
  static std::optional<IpNetwork> Parse(std::string_view text);

  bool Contains(const IpAddress& address) const;

 private:
  IpNetwork(const IpAddress& address, int bits) : address_(address), bits_(bits) {}
  IpAddress address_;
  int bits_;
};

}  // namespace tollgate
