#include "common/base/ip_network.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace tollgate {

std::optional<IpAddress> ParseIpAddress(std::string_view text) {
  char copy[INET6_ADDRSTRLEN];
  if (text.empty() || text.size() >= sizeof copy) return std::nullopt;
  copy[text.copy(copy, text.size())] = '\0';
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  IpAddress address;
  std::memcpy(address.data(), kMapped, sizeof kMapped);
  if (::inet_pton(AF_INET, copy, address.data() + sizeof kMapped) == 1 ||
      ::inet_pton(AF_INET6, copy, address.data()) == 1) {
    return address;
  }
  return std::nullopt;
}

std::optional<IpNetwork> IpNetwork::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const auto address = ParseIpAddress(host);
  if (!address) return std::nullopt;
  const int most = host.find(':') == std::string_view::npos ? 32 : 128;
  int bits = most;
  if (slash != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc() || stop != end || bits < 0 || bits > most) return std::nullopt;
  }
  return IpNetwork(*address, bits + 128 - most);
}

bool IpNetwork::Contains(const IpAddress& address) const {
  const auto whole = static_cast<size_t>(bits_ / 8);
  const int rest = bits_ % 8;
  if (std::memcmp(address.data(), address_.data(), whole) != 0) return false;
  return rest == 0 || (address[whole] ^ address_[whole]) >> (8 - rest) == 0;
}

}  // namespace tollgate
