// Which addresses and hosts belong to the public internet. What customers name (webhooks, media
// URLs) must, unless the operator allows more.
#pragma once

#include <string_view>

#include "common/base/ip_network.h"

namespace tollgate {

// False for private, loopback, link-local, shared, multicast and reserved addresses (IANA's
// special-purpose registries), and for IPv6 addresses that embed an IPv4 address (NAT64, Teredo,
// 6to4), except ::ffff:a.b.c.d, which is the IPv4 address.
bool IsPublicAddress(const IpAddress& address);

// host: a name, an IPv4 address or an IPv6 address in brackets, in lower case. False for an address
// that is not public, a name without a dot, and a name in a domain that is reserved for private
// use: localhost, local, internal, home.arpa, lan, svc. Resolves nothing.
bool IsPublicHost(std::string_view host);

}  // namespace tollgate
