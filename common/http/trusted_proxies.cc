#include "common/http/trusted_proxies.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

// The text without a port, and without the brackets of an IPv6 address.
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

bool TrustedProxies::Read(std::string_view text, Address* address) {
  char copy[INET6_ADDRSTRLEN];
  if (text.empty() || text.size() >= sizeof copy) return false;
  copy[text.copy(copy, text.size())] = '\0';
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(address->data(), kMapped, sizeof kMapped);
  return ::inet_pton(AF_INET, copy, address->data() + sizeof kMapped) == 1 ||
         ::inet_pton(AF_INET6, copy, address->data()) == 1;
}

Result<TrustedProxies> TrustedProxies::Parse(const std::vector<std::string>& list) {
  TrustedProxies proxies;
  for (const std::string& text : list) {
    const size_t slash = text.find('/');
    const std::string_view address = std::string_view(text).substr(0, slash);
    Network network{};
    if (!Read(address, &network.address)) {
      return Internal("trusted_proxies: \"" + text + "\" is neither an address nor a network");
    }
    const int most = address.find(':') == std::string_view::npos ? 32 : 128;
    int bits = most;
    if (slash != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
      if (error != std::errc() || stop != end || bits < 0 || bits > most) {
        return Internal("trusted_proxies: \"" + text + "\" has no valid prefix length");
      }
    }
    network.bits = bits + 128 - most;
    proxies.networks_.push_back(network);
  }
  return proxies;
}

bool TrustedProxies::Matches(const Address& address) const {
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    const int whole = network.bits / 8;
    const int rest = network.bits % 8;
    if (std::memcmp(address.data(), network.address.data(), static_cast<size_t>(whole)) != 0) {
      return false;
    }
    return rest == 0 ||
           (address[static_cast<size_t>(whole)] ^ network.address[static_cast<size_t>(whole)]) >>
                   (8 - rest) ==
               0;
  });
}

bool TrustedProxies::Contains(std::string_view text) const {
  Address address;
  return !networks_.empty() && Read(text, &address) && Matches(address);
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
      Address address;
      // The proxy did not forward an address: its own is the best known.
      if (!Read(hop, &address)) return client;
      client = hop;
      if (!Matches(address)) return client;
    }
  }
  return client;
}

}  // namespace tollgate::http
