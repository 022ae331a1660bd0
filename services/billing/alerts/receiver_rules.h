// Rules for the addresses of receivers.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace tollgate::billing::alerts {

// Returns "", or why a webhook must not have this URL. Allowed is https; with allow_private also
// plain http to the loopback of this machine.
std::string CheckWebhookUrl(const std::string& url, bool allow_private);

// Whether the address is on the public internet: not private, loopback, link-local, shared,
// multicast, reserved, and not an IPv6 address that contains an IPv4 address.
bool IsPublicAddress(const sockaddr& address);
bool IsLoopbackAddress(const sockaddr& address);

}  // namespace tollgate::billing::alerts
