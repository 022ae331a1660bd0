#include "common/base/public_address.h"

#include <algorithm>
#include <vector>

namespace tollgate {
namespace {

constexpr std::string_view kPrivateDomains[] = {"localhost", "local", "internal",
                                                "home.arpa", "lan",   "svc"};

std::vector<IpNetwork> Networks(std::initializer_list<const char*> texts) {
  std::vector<IpNetwork> networks;
  for (const char* text : texts) networks.push_back(*IpNetwork::Parse(text));
  return networks;
}

bool IsIn(const std::vector<IpNetwork>& networks, const IpAddress& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const IpNetwork& network) { return network.Contains(address); });
}

}  // namespace

bool IsPublicAddress(const IpAddress& address) {
  static const std::vector<IpNetwork> ipv4 = Networks({"::ffff:0:0/96"});
  static const std::vector<IpNetwork> special4 = Networks(
      {"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
       "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
       "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"});
  if (IsIn(ipv4, address)) return !IsIn(special4, address);
  // Only 2000::/3 is allocated to hosts.
  static const std::vector<IpNetwork> unicast6 = Networks({"2000::/3"});
  static const std::vector<IpNetwork> special6 =
      Networks({"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/16"});
  return IsIn(unicast6, address) && !IsIn(special6, address);
}

bool IsPublicHost(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (const auto address = ParseIpAddress(brackets ? host.substr(1, host.size() - 2) : host)) {
    return IsPublicAddress(*address);
  }
  if (brackets || host.find('.') == std::string_view::npos) return false;
  return std::none_of(
      std::begin(kPrivateDomains), std::end(kPrivateDomains), [host](std::string_view domain) {
        return host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.';
      });
}

}  // namespace tollgate
