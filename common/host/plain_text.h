// Finds addresses of a configuration that would be plain text on TCP.
#pragma once

#include <string_view>

#include "common/error/error.h"

namespace tollgate::config::v1 {
class HostConfig;
class TargetsConfig;
}  // namespace tollgate::config::v1

namespace tollgate::host {

// Fails if a listen address or a target is TCP and neither host.tls nor host.insecure_plaintext is
// set. Unix sockets and calls within the process are exempt.
Result<void> CheckPlainText(const config::v1::HostConfig& host,
                            const config::v1::TargetsConfig& targets);

// Fails if an HTTP address is reachable from other machines without TLS and no setting allows it.
// field: configuration field, for example "gateway.listen"; remedy: what the operator may set.
Result<void> CheckPlainHttp(std::string_view field, std::string_view address, bool has_tls,
                            bool allowed, std::string_view remedy);

}  // namespace tollgate::host
