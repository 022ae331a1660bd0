// What an address of a receiver may be.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace tollgate::billing::alerts {

// One plain mailbox, local@domain: no spaces, quotes, brackets, commas or line ends, so that it is
// safe in a header and in an SMTP command.
bool IsEmail(std::string_view text);

// "" or why a webhook must not have this URL. https only; plain http only for the loopback of this
// machine, and only with allow_private.
std::string CheckWebhookUrl(const std::string& url, bool allow_private);

// Whether the address is of the public internet: not private, loopback, link-local, shared,
// multicast, reserved or one that stands for another address (IPv4 in IPv6).
bool IsPublicAddress(const sockaddr& address);
bool IsLoopbackAddress(const sockaddr& address);
// Whether the host of a URL is "localhost" or a literal loopback address.
bool IsLoopbackHost(std::string_view host);

}  // namespace tollgate::billing::alerts
