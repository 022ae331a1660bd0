// Rules for the addresses of receivers.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace tollgate::billing::alerts {

// Returns "", or why a webhook must not have this URL. Allowed is https; with allow_private also
// plain http to the loopback of this machine.
std::string CheckWebhookUrl(const std::string& url, bool allow_private);

// Whether a socket address is public (common/base/public_address.h), or this machine's loopback.
// An IPv4 address as IPv6 is neither.
bool IsPublicPeer(const sockaddr& address);
bool IsLoopbackPeer(const sockaddr& address);

}  // namespace tollgate::billing::alerts
