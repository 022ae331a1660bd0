// The hosts that media URLs may name (GatewaySettings.media_hosts, decision 45). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::gateway {

// Reads a host name or address, "*." and a name, or "*". Returns it in lower case. Empty for
// anything else, for example text with a scheme or a port.
std::optional<std::string> ReadMediaHostRule(std::string_view text);

// host: as in CanonicalRequest::media_hosts. "*", or no rules at all: every public host
// (common/base/public_address.h), since engines fetch from inside the operator's network.
bool IsMediaHostAllowed(const std::vector<std::string>& rules, std::string_view host);

}  // namespace tollgate::gateway
