// What an address of a receiver may be.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace tollgate::billing::alerts {

// "" or why a webhook must not have this URL. https only; plain http only for the loopback of this
// machine, and only with allow_private.
std::string CheckWebhookUrl(const std::string& url, bool allow_private);

// Whether the address is of the public internet: not private, loopback, link-local, shared,
// multicast, reserved or one that stands for another address (IPv4 in IPv6).
bool IsPublicAddress(const sockaddr& address);
bool IsLoopbackAddress(const sockaddr& address);

}  // namespace tollgate::billing::alerts
