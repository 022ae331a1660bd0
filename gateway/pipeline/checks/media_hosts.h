// The operator's list of hosts that media URLs may name (GatewaySettings.media_hosts). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::gateway {

// Reads a host name or address, or "*." and a name. Returns it in lower case. Empty for anything
// else, for example text with a scheme or a port.
std::optional<std::string> ReadMediaHostRule(std::string_view text);

// host: as in CanonicalRequest::media_hosts. Without rules every host is allowed.
bool IsMediaHostAllowed(const std::vector<std::string>& rules, std::string_view host);

}  // namespace tollgate::gateway
