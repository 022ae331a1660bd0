#include "common/http/trusted_proxies.h"

#include <algorithm>

#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

// The text without its port and without the brackets of an IPv6 address.
std::string_view WithoutPort(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
  }
  const size_t colon = text.find(':');
  const bool one_colon = colon != std::string_view::npos && colon == text.rfind(':');
  return one_colon ? text.substr(0, colon) : text;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::Parse(const std::vector<std::string>& list) {
  TrustedProxies proxies;
  for (const std::string& text : list) {
    const auto network = IpNetwork::Parse(text);
    if (!network) {
      const bool is_address = ParseIpAddress(text.substr(0, text.find('/'))).has_value();
      return Internal(
          "trusted_proxies: \"" + text + "\" " +
          (is_address ? "has no valid prefix length" : "is neither an address nor a network"));
    }
    proxies.networks_.push_back(*network);
  }
  return proxies;
}

bool TrustedProxies::Matches(const IpAddress& address) const {
  return std::any_of(networks_.begin(), networks_.end(),
                     [&](const IpNetwork& network) { return network.Contains(address); });
}

bool TrustedProxies::Contains(std::string_view text) const {
  if (networks_.empty()) return false;
  const auto address = ParseIpAddress(text);
  return address && Matches(*address);
}

std::string TrustedProxies::ClientAddress(const std::string& peer_address,
                                          const Headers& headers) const {
  if (!Contains(peer_address)) return peer_address;
  std::string client = peer_address;
  for (auto field = headers.rbegin(); field != headers.rend(); ++field) {
    if (field->first != "x-forwarded-for") continue;
    std::string_view list = field->second;
    while (!list.empty()) {
      const size_t comma = list.rfind(',');
      const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
      const std::string_view hop = WithoutPort(TrimSpace(list.substr(begin)));
      list = list.substr(0, begin == 0 ? 0 : comma);
      const auto address = ParseIpAddress(hop);
      // The proxy forwarded no address, so the proxy's own address is used.
      if (!address) return client;
      client = hop;
      if (!Matches(*address)) return client;
    }
  }
  return client;
}

}  // namespace tollgate::http
