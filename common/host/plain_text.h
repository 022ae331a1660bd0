// Which addresses of a configuration would be plain text on TCP.
#pragma once

#include <string_view>

#include "common/error/error.h"

namespace tollgate::config::v1 {
class HostConfig;
class TargetsConfig;
}  // namespace tollgate::config::v1

namespace tollgate::host {

// An error if an address to listen on or a target is TCP, and there is neither host.tls nor
// host.insecure_plaintext. Unix sockets and calls within the process are exempt.
Result<void> CheckPlainText(const config::v1::HostConfig& host,
                            const config::v1::TargetsConfig& targets);

// An error if an address for HTTP can be reached from other machines without TLS and nothing allows
// that. field: of the configuration, for example "gateway.listen"; remedy: what may be set.
Result<void> CheckPlainHttp(std::string_view field, std::string_view address, bool has_tls,
                            bool allowed, std::string_view remedy);

}  // namespace tollgate::host
